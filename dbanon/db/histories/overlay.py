"""Prove the models of all releases of a table together, or of all tables with the same persons.

A reader of several releases can distinguish persons unless they were always in the same classes of
every table. Such persons form a cell, which must be as safe as a class (algorithm reference,
section 7.2). Models that compare a class with the whole do not apply: the whole differs.

A publication starts from the results of the previous release and counts only affected persons. A
history check counts everything again; both must agree.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from psycopg import sql

from dbanon.db.histories import cells, membership, memory
from dbanon.db.histories.cells import CELLS, NOW, Figures, carried, carried_pair
from dbanon.db.histories.memory import BEFORE
from dbanon.db.metadata import ledger
from dbanon.db.queries import named, query, template
from dbanon.db.session import at_once, only
from dbanon.domain.release import CellResult, Composition

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import psycopg

    from dbanon.db.histories.memory import Memory
    from dbanon.db.releases.publication import Publication
    from dbanon.db.session import Session
    from dbanon.domain.policy import Policy
    from dbanon.domain.release import Against, CheckResult
    from dbanon.domain.table import TableName

    Numbers = Mapping[TableName, tuple[str, ...]]
    """The columns of each table with only numeric stored values."""
    Relations = Mapping[TableName, TableName]
    """The relation of each table, that of the persons first."""

_LINKED = sql.Identifier("pg_temp", "history_linked")


def remember(
    session: Session,
    publication: Publication,
    *,
    starts_series: bool = False,
    series_of: TableName | None = None,
    is_compared: bool = True,
) -> Composition:
    """Store a table release before it is served, and compare it with all earlier releases.

    The first release of a series is compared too; later ones are not compared with its
    predecessors. Others must have the persons of their series: raise CheckFailed if their keys
    changed. series_of: join the series of this relation, by default its own, otherwise the latest;
    is_compared: False if nobody read the predecessors of a series that it starts.
    """
    before = None
    if starts_series and is_compared:
        before = memory.of_series(
            session, publication.info.name, publication.view, person=publication.person
        )
    known = memory.remember(session, publication, starts_series=starts_series, series_of=series_of)
    if not starts_series:
        membership.require_lasting_keys(session, publication, known)
    compared = _comparable(session, [known], [publication])
    # Of a person of several rows, no figure is kept: what tells them is numbered anew every time.
    is_kept = compared.policies.keys() == known.relations.keys() and not known.several
    beside = None
    if is_kept and len(known.relations) == 1:
        beside = before and memory.unpack_alike(session, before, publication)
        if beside is None:
            memory.count_classes(session)
        found, of_cells = _count_first(session, compared), None
    else:
        found, of_cells = _counted(session, compared, base=compared.base, is_kept=is_kept)
    with at_once(session.pg):
        if is_kept:
            cells.keep(session, found)
        if before is None:
            memory.forget(session)
        elif beside is None:
            beside = memory.unpack_with_new(session, before, publication)
    if beside is None:
        return _composition(compared, found, of_cells)
    compared = _comparable(session, [beside], [publication])
    counted, of_cells = _counted(session, compared)
    memory.forget(session)
    return _composition(compared, counted, of_cells)


def is_linked(session: Session, relations: Relations) -> bool:
    """Return True if all tables share a hash key and the first published all persons."""
    linked = _unpacked(session, _of_series(session, relations))
    if linked:
        memory.forget(session)
    return linked


def recall(
    session: Session, relations: Relations, *, new: Sequence[Publication] = ()
) -> Composition:
    """Compare all releases in the series of some relations, from stored membership only.

    new: releases about to be served, of which a first one of every table is proved by ``prove``;
    live ones are not comparable. Those of several tables are unknown unless ``is_linked``.
    """
    session.allow_memory()
    found = _of_series(session, relations)
    compared = _comparable(session, found, new)
    if all(len(known.relations) == 1 for known in found) and (new or len(found) == 1):
        return _composition(compared)
    if not _unpacked(session, found):
        return _composition(_not_linked(session, compared, relations))
    counted, of_cells = _counted(session, compared)
    memory.forget(session)
    newest = max(compared.policies, default=0)
    kept = compared.base.get(newest)
    if of_cells is not None and kept is not None and not counted.agrees(kept):
        compared = replace(compared, altered={*compared.altered, newest})
    return _composition(compared, counted, of_cells)


def _not_linked(session: Session, compared: _Compared, relations: Relations) -> _Compared:
    """Name the releases of tables whose membership does not link their persons."""
    newest = (ledger.latest_entry(session, relation) for relation in relations.values())
    unknown = {*compared.policies, *(one.id for one in newest if one is not None)}
    live = [ledger.live_releases(session, table) for table in relations]
    return replace(compared, unknown=unknown, live=unknown & set().union(*live))


def recall_before(session: Session, publications: Sequence[Publication]) -> Composition:
    """Check the cells of the releases before stored ones, also against the policies of these.

    Results of these use the values of the earlier release that shares most sensitive columns. Pairs
    of releases are not compared. Without results if the cells are unknown.
    """
    session.allow_memory()
    relations = {one.info.name: one.view for one in publications}
    found = _of_series(session, relations, until=min(one.id for one in publications))
    composition = Composition(publications[0].info.name, 0, (), (), (), ())
    if not _unpacked(session, found):
        return composition
    compared = _comparable(session, found, publications)
    results, small, policies = list[CellResult](), 0, compared.policies
    if policies:
        memory.cells(session, CELLS)
        asked = [one.policy for one in publications]
        of_k, small = cells.of_releases(session, found, policies, asked=asked)
        results.append(CellResult(max(policies), publications[-1].view, of_k))
        numbers = _numbers(session, compared)
        results += _of_each(compared, _results(session, compared, numbers))
        for one in publications:
            results += _as_asked(session, compared, one, numbers)
        memory.drop(session, CELLS)
    memory.forget(session)
    return replace(composition, results=tuple(results), small=small)


def _as_asked(
    session: Session, compared: _Compared, asked: Publication, numbers: Numbers
) -> Iterator[CellResult]:
    """Check the earlier values of cells against the policy of a new release."""
    (known,) = (one for one in compared.found if one.table == asked.info.name)
    wanted = cells.sensitive_columns(asked.policy)
    both = {
        number: [name for name in wanted if name in cells.sensitive_columns(policy)]
        for number, policy in compared.of(known).items()
    }
    if not both:
        return
    number = max(both, key=lambda one: (len(both[one]), known.relations[one] == asked.view, one))
    found = cells.of_values(
        session, known, {number: asked.policy}, numbers[known.table], sensitive=both[number]
    )
    for result in found[number]:
        yield CellResult(asked.id, asked.view, result)


def prove(session: Session, publications: Sequence[Publication]) -> list[tuple[CheckResult, ...]]:
    """Check the persons of each release, by class and by the classes of all tables.

    Only stored membership links rows of a copy to persons. publications: the table of persons
    first; all are stored, with as many rows of every class as the copies have.
    """
    session.allow_memory()
    found = _of_series(session, {one.info.name: one.view for one in publications})
    memory.unpack(session, found)
    session.pg.execute(template("overlays.create_linked", linked=_LINKED))
    for part, (known, one) in enumerate(zip(found, publications, strict=True)):
        memory.rows(session, known, one.id, BEFORE)
        times = sql.SQL("count(*)" if one.policy.rows_per_subject is not None else "''")
        slots = {"linked": _LINKED, "rows": BEFORE, "part": sql.Literal(part), "times": times}
        session.pg.execute(template("overlays.link", **slots))
        memory.drop(session, BEFORE)
    every = [*range(len(found))]
    results = []
    for part, (known, one) in enumerate(zip(found, publications, strict=True)):
        subject = one.policy.subject or ""
        by = subject if one.policy.rows_per_subject is None else f"{subject} by number of rows"
        proved = _proved(session, known, one, parts=[part], by=by)
        if len(found) > 1:
            proved += _proved(session, known, one, parts=every, by=f"{subject} by all tables")
        results.append(tuple(proved))
    memory.drop(session, _LINKED)
    memory.forget(session)
    return results


def _proved(
    session: Session, known: Memory, publication: Publication, *, parts: Sequence[int], by: str
) -> list[CheckResult]:
    """Check one release's models for the cells of some tables."""
    slots = {"cells": CELLS, "linked": _LINKED, "parts": sql.Literal(list(parts))}
    session.pg.execute(template("overlays.linked_cells", **slots))
    of_k = replace(cells.of_persons(session, publication.policy.k), column=by)
    asked = {publication.id: publication.policy}
    found = cells.of_values(session, known, asked, _numeric(session, known))[publication.id]
    memory.drop(session, CELLS)
    return [*(replace(one, column=f"{one.column} by {by}") for one in found), of_k]


def _of_series(session: Session, relations: Relations, *, until: int | None = None) -> list[Memory]:
    return [
        memory.of_series(session, table, relation, until=until)
        for table, relation in relations.items()
    ]


def _unpacked(session: Session, found: Sequence[Memory]) -> bool:
    """Unpack the membership of tables; return False if it does not link their persons."""
    keys, first = {known.key if known.relations else None for known in found}, found[0]
    if len(found) > 1 and (len(keys) > 1 or None in keys):
        return False
    memory.unpack(session, found)
    if len(found) == 1:
        return True
    linked = session.one(query("overlays.knows_all"), {"releases": list(first.relations)})[0]
    if not linked:
        memory.forget(session)
    return bool(linked)


@dataclass(frozen=True, slots=True)
class _Compared:
    """The releases to compare, each with its policy, and the incomparable ones.

    found: the tables, that of the persons first. Of a single one, live: live views; altered: stored
    data differs from that at publication; base: results at each publication; changed: changed rows
    per release. Linked tables are compared alone before.
    """

    found: Sequence[Memory]
    policies: Mapping[int, Policy]
    unknown: set[int] = field(default_factory=set)
    live: set[int] = field(default_factory=set)
    altered: set[int] = field(default_factory=set)
    base: Mapping[int, Figures] = field(default_factory=dict)
    changed: Mapping[int, int] = field(default_factory=dict)

    @property
    def known(self) -> Memory:
        """The table, or that of the persons."""
        return self.found[0]

    @property
    def relations(self) -> dict[int, TableName]:
        """The relation of each release of any table."""
        return {number: name for one in self.found for number, name in one.relations.items()}

    def of(self, known: Memory) -> dict[int, Policy]:
        """Return the releases of a table."""
        return {n: self.policies[n] for n in known.relations if n in self.policies}


def _comparable(session: Session, found: Sequence[Memory], new: Sequence[Publication]) -> _Compared:
    policies: dict[int, Policy] = {}
    for known in found:
        asked = {one.id: one.policy for one in new if one.info.name == known.table}
        policies |= ledger.policies_by_release(session, known.table, known=asked.values()) | asked
    if len(found) > 1:
        numbers = [number for known in found for number in known.relations]
        return _Compared(found, {n: policies[n] for n in numbers if n in policies})
    (known,), added = found, {one.id for one in new}
    series, own = memory.series(session, known.table), known.series
    policies = {
        number: policy
        for number, policy in policies.items()
        if number in added or memory.series_of(series, number, own) == own
    }
    base, changed = cells.kept(session, known), memory.changes(session, known.table)
    damaged = {
        release
        for kept in base.values()
        for release, rows in kept.changed.items()
        if changed.get(release, rows) != rows
    }
    of_known = {n: policies[n] for n in known.relations if n in policies and n not in damaged}
    altered = damaged & known.relations.keys() & policies.keys()
    unknown = policies.keys() - of_known.keys() - altered if len(policies) > 1 else set()
    live = {*added, *ledger.live_releases(session, known.table)} - known.relations.keys()
    return _Compared(found, of_known, unknown, unknown & live, altered, base, changed)


def _counted(
    session: Session,
    compared: _Compared,
    *,
    base: Mapping[int, Figures] | None = None,
    is_kept: bool = False,
) -> tuple[Figures, tuple[CheckResult, int] | None]:
    """Count cells and pairs, starting from ``base``; return also the result of of_releases.

    is_kept: results will be stored, so count even a single release.
    """
    known, policies = compared.known, compared.policies
    changed = {number: compared.changed.get(number, 0) for number in policies}
    if len(policies) < 1 + (not is_kept):
        return Figures(tuple(policies), 0, (), {}, {}, changed), None
    numbers, increment = _numbers(session, compared), None
    if base and is_kept:
        increment = begin(session, known, policies, base=base, changed=compared.changed)
    results: Mapping[int, tuple[CheckResult, ...] | None] = dict.fromkeys(policies)
    others = [*policies][: None if is_kept else -1] if len(compared.found) == 1 else []
    pairs: Mapping[int, Against | None] = dict.fromkeys(others)
    if increment is None:
        _all_cells(session, compared.found)
        of_cells = cells.of_releases(session, compared.found, policies)
    else:
        all_cells = query("overlays.count_all_cells")
        of_cells = cells.of_releases(session, [known], policies, count=all_cells)
        results = increment.results(numbers[known.table])
        pairs = increment.compared()
        with at_once(session.pg):
            increment.end()
            if None in results.values():
                memory.drop(session, CELLS)
                _all_cells(session, compared.found)
    found = Figures(
        tuple(policies),
        of_cells[0].n_rows,
        numbers[known.table],
        _results(session, compared, numbers, known=results),
        _pairs(session, compared, known=pairs),
        changed,
    )
    memory.drop(session, CELLS)
    return found, of_cells


def _all_cells(session: Session, found: Sequence[Memory]) -> None:
    """Write the cell of each person to CELLS; merge persons of the same rows in ENTRIES."""
    memory.widen(session, found[0])
    if not any(known.several or known.is_merged for known in found):
        memory.rewrite(session, "histories.merge_alike")
    memory.cells(session, CELLS)


def _count_first(session: Session, compared: _Compared) -> Figures:
    """Count the only release of a series, in COUNTED, as a count of all cells and pairs would."""
    ((number, policy),) = compared.policies.items()
    numbers = _numeric(session, compared.known)
    if not policy.anatomy:  # no refresh keeps its buckets, of which each shows few values alike
        memory.keep_classes(session, number)
    pair = cells.first_pair(session, compared.known, policy)
    results = {number: tuple(cells.of_first(session, number, policy, numbers))}
    memory.drop(session, memory.COUNTED)
    changed = {number: compared.changed.get(number, 0)}
    return Figures((number,), pair.persons, numbers, results, {number: pair}, changed)


def _numbers(session: Session, compared: _Compared) -> Numbers:
    return {known.table: _numeric(session, known) for known in compared.found}


def _numeric(session: Session, known: Memory) -> tuple[str, ...]:
    """Return the columns with only numeric stored values."""
    found = session.pg.execute(query("overlays.numbers"), named(known.table))
    return tuple(sorted(row[0] for row in found))


def _of_each(
    compared: _Compared, found: Mapping[int, tuple[CheckResult, ...]]
) -> Iterator[CellResult]:
    """Yield the results of each release, with its relation."""
    relations = compared.relations
    for number, results in found.items():
        for result in results:
            yield CellResult(number, relations[number], result)


def _results(
    session: Session,
    compared: _Compared,
    numbers: Numbers,
    *,
    known: Mapping[int, tuple[CheckResult, ...] | None] | None = None,
) -> dict[int, tuple[CheckResult, ...]]:
    """Check the cells by the values of each release, unless already known."""
    found = {number: one for number, one in (known or {}).items() if one is not None}
    for table in compared.found:
        missing = {n: policy for n, policy in compared.of(table).items() if n not in found}
        counted = cells.of_values(session, table, missing, numbers[table.table])
        found |= {number: tuple(results) for number, results in counted.items()}
    return {number: found[number] for number in compared.policies}


def _pairs(
    session: Session, compared: _Compared, *, known: Mapping[int, Against | None]
) -> dict[int, Against]:
    """Compare the newest release with others, unless already known."""
    pairs = {number: pair for number, pair in known.items() if pair is not None}
    missing = {number: number for number, pair in known.items() if pair is None}
    if missing:
        memory.widen(session, compared.known)
        memory.rows(session, compared.known, max(compared.policies), NOW)
        pairs |= cells.against(session, compared.known, missing, compared.policies)
        memory.drop(session, NOW)
    return {number: pairs[number] for number in known}


def _composition(
    compared: _Compared,
    found: Figures | None = None,
    of_cells: tuple[CheckResult, int] | None = None,
) -> Composition:
    policies, relations = compared.policies, compared.relations
    composition = Composition(
        table=compared.known.table,
        persons=0,
        releases=tuple(sorted(policies)),
        unknown=tuple(sorted(compared.unknown)),
        results=(),
        against=(),
        altered=tuple(sorted(compared.altered)),
        live=tuple(sorted(compared.live)),
        beside=tuple(known.table for known in compared.found[1:]),
    )
    if found is None or of_cells is None or len(policies) == 1:
        return composition
    (of_k, small), newest = of_cells, max(policies)
    results = [CellResult(newest, relations[newest], of_k), *_of_each(compared, found.results)]
    return replace(
        composition,
        persons=found.persons,
        results=tuple(results),
        against=tuple(pair for number, pair in found.pairs.items() if number != newest),
        small=small,
    )


_NEWEST = sql.Identifier("pg_temp", "history_newest")
_EARLIER = sql.Identifier("pg_temp", "history_earlier")
_NEAR = sql.Identifier("pg_temp", "history_near")
_LEFT = sql.Identifier("pg_temp", "history_left")
_MOVED = sql.Identifier("pg_temp", "history_moved")
_OF_MOVED = sql.Identifier("pg_temp", "history_of_moved")
_OF_SPLIT = sql.Identifier("pg_temp", "history_of_split")
_PAIRED = sql.Identifier("pg_temp", "history_paired")
_OF_PAIRED = sql.Identifier("pg_temp", "history_of_paired")
_CLASSES = sql.Identifier("pg_temp", "history_classes")
_WAS = sql.Identifier("pg_temp", "history_was")
_IS = sql.Identifier("pg_temp", "history_is")
_SHARE = 0.5  # of all persons: to count more of them twice takes longer than to count all once
_FEW = 0.05  # of all persons: the classes of fewer are not counted before


@dataclass(frozen=True, slots=True)
class Increment:
    """The changes between the newest release and the previous one of its relation.

    former: the previous release; last: results of all but the newest; base: results per release;
    is_split: a cell was split; pairs: also update pairs.
    """

    session: Session
    known: Memory
    policies: Mapping[int, Policy]
    former: int
    last: Figures
    base: Mapping[int, Figures]
    is_split: bool
    pairs: bool

    def results(self, numbers: tuple[str, ...]) -> dict[int, tuple[CheckResult, ...] | None]:
        """Return the cell results per release, None to recount; numbers: numeric columns."""
        newest, results = max(self.policies), self.last.results
        found: dict[int, tuple[CheckResult, ...] | None] = dict.fromkeys(self.policies)
        if numbers != self.last.numbers:
            return found
        earlier = {n: n for n in self.policies if n != newest and n in results}
        if self.is_split:
            found |= self._carried(earlier, numbers, entries=_OF_SPLIT)
        else:
            found |= {number: results[number] for number in earlier}
        asked = _values_asked(self.policies[self.former]), _values_asked(self.policies[newest])
        if self.former in results and asked[0] == asked[1]:
            found |= self._carried({newest: self.former}, numbers, entries=_OF_MOVED)
        return found

    def _carried(
        self, before: Mapping[int, int], numbers: tuple[str, ...], *, entries: sql.Identifier
    ) -> dict[int, tuple[CheckResult, ...] | None]:
        """Update results by some persons; before: the release that provides each initial result."""
        policies = {number: self.policies[one] for number, one in before.items()}
        count = partial(cells.of_values, self.session, self.known, numbers=numbers)
        count = partial(count, cells=_MOVED, entries=entries)
        removed = count(policies=policies, known_as="former", shown=before)
        added = count(policies={number: self.policies[number] for number in before})
        found: dict[int, tuple[CheckResult, ...] | None] = dict.fromkeys(before)
        for number, one in before.items():
            base = self.last.results[one]
            if len(base) == len(removed[number]) == len(added[number]):
                three = zip(base, removed[number], added[number], strict=True)
                told = [carried(*each) for each in three]
                known = tuple(each for each in told if each is not None)
                found[number] = known if len(known) == len(told) else None
        return found

    def compared(self) -> dict[int, Against | None]:
        """Compare the newest release with each, itself included; None to count all persons."""
        found: dict[int, Against | None] = dict.fromkeys(self.policies)
        if not self.pairs:
            return found
        newest = max(self.policies)
        bases = {n: base for n in self.policies if (base := self._base(n)) is not None}
        of_former = {n: self.former if n == newest else n for n in bases}
        # All members of the classes of affected persons count.
        against = partial(cells.against, self.session, self.known, policies=self.policies)
        against = partial(against, before=_OF_PAIRED, shown=_CLASSES)
        removed = against(compared=of_former, now=_WAS)
        added = against(compared={number: number for number in bases}, now=_IS)
        for number, base in bases.items():
            found[number] = carried_pair(base, removed[number], added[number])
        return found

    def _base(self, number: int) -> Against | None:
        """Return the stored comparison of the relation's previous release with another."""
        newest, former = max(self.policies), self.former
        first, second = sorted((former, former if number == newest else number))
        if second not in self.base or first not in self.base[second].pairs:
            return None
        pair = self.base[second].pairs[first]
        return replace(pair, release=number, relation=self.known.relations[number])

    def end(self) -> None:
        """Drop the temporary tables."""
        of_pairs = (_OF_PAIRED, _CLASSES, _WAS, _IS) if self.pairs else ()
        memory.drop(self.session, _MOVED, _OF_MOVED, _OF_SPLIT, *of_pairs)


def begin(
    session: Session,
    known: Memory,
    policies: Mapping[int, Policy],
    *,
    base: Mapping[int, Figures],
    changed: Mapping[int, int],
) -> Increment | None:
    """Find persons affected by the newest release, and write CELLS; None to count all again.

    changed: the changed rows of each release, of one row a person.
    """
    *earlier, newest = known.relations
    same = [number for number in earlier if known.relations[number] == known.relations[newest]]
    if known.several or not same:
        return None
    last = base.get(earlier[-1])
    if last is None or last.releases != tuple(earlier):
        return None
    most = _SHARE * last.persons
    if changed[newest] > most:
        return None
    if changed[newest] > _FEW * last.persons:
        memory.widen(session, known)
        asked = {"newest": newest, "relation": known.firsts()[newest]}
        if session.one(query("overlays.count_touched"), asked)[0] > most:
            return None
    with at_once(session.pg):
        for name in ("overlays.find_newest", "overlays.find_earlier"):
            session.pg.execute(query(name), {"newest": newest})
        near = _find_near(session, known)
        counted = _find_moved(session, near)
    is_split, moved = only(counted)
    increment, found = None, [_NEWEST, _EARLIER, _LEFT, *([_NEAR] if near is _NEAR else [])]
    if moved <= most:
        pairs = _find_paired(session, known, newest, former=same[-1], near=near, most=most)
        increment = Increment(session, known, policies, same[-1], last, base, is_split, pairs)
    else:
        found += [_MOVED, _OF_MOVED, _OF_SPLIT, CELLS]
    memory.drop(session, *found)
    return increment


def _find_near(session: Session, known: Memory) -> sql.Identifier:
    """Write the cells of possibly affected persons; return the table of their membership.

    Persons only in the very first release are also in the newest of its relation, perhaps in an
    unchanged class. With other relations in between, all persons may be affected.
    """
    near, first = memory.ENTRIES, min(known.relations)
    if known.relations[first] == known.relations[max(known.relations)]:
        near = _NEAR
        session.pg.execute(query("overlays.find_near"), {"first": first})
        session.pg.execute(sql.SQL("ANALYZE {}").format(near))
    memory.cells(session, CELLS, entries=near)
    return near


def _find_moved(session: Session, near: sql.Identifier) -> psycopg.Cursor:
    """Write persons with a changed cell, and their membership; count new ones, splits, all."""
    session.pg.execute(template("overlays.cells", cells=_LEFT, entries=_EARLIER))
    session.pg.execute(query("overlays.find_moved"))
    counted = session.pg.execute(query("overlays.count_moved"))
    for table, condition in ((_OF_MOVED, "true"), (_OF_SPLIT, "p.is_split")):
        _find_entries(session, table, near, persons=_MOVED, condition=condition)
    return counted


def _find_paired(
    session: Session, known: Memory, newest: int, *, former: int, near: sql.Identifier, most: float
) -> bool:
    """Write persons affected in pairs, before and after; return False if there are too many."""
    with at_once(session.pg):
        memory.rows(session, known, former, _WAS, entries=_EARLIER)
        memory.rows(session, known, newest, NOW, entries=near)
        paired = session.pg.execute(query("overlays.find_paired"))
        memory.drop(session, _WAS, NOW)
    few = paired.rowcount <= most
    with at_once(session.pg):
        if few:
            _find_entries(session, _OF_PAIRED, near, persons=_PAIRED)
            shown = sql.SQL("SELECT p.shown FROM {} AS p").format(_OF_PAIRED)
            memory.widen(session, known, shown)
            session.pg.execute(query("overlays.find_classes"))
            session.pg.execute(sql.SQL("ANALYZE {}").format(_CLASSES))
            memory.rows(session, known, former, _WAS, entries=_OF_PAIRED)
            memory.rows(session, known, newest, _IS, entries=_OF_PAIRED)
        memory.drop(session, _PAIRED)
    return few


def _find_entries(
    session: Session,
    entries: sql.Identifier,
    near: sql.Identifier,
    *,
    persons: sql.Identifier,
    condition: str = "true",
) -> None:
    """Write the membership of some persons."""
    slots = {"entries": entries, "persons": persons, "condition": sql.SQL(condition)}
    session.pg.execute(template("overlays.entries_of", among=near, **slots))
    session.pg.execute(sql.SQL("ANALYZE {}").format(entries))


def _values_asked(policy: Policy) -> object:
    """Return a key that identifies the value results of a policy."""
    return cells.asked_of_values(policy), [rule.column for rule in policy.columns]
