"""Compute the models of cells, compare pairs of releases, and store the figures.

The next release starts from these. It affects the changed persons and all in their cells or
classes. Their former counts are subtracted and the new ones added. If a worst value may have
disappeared, all is counted again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from itertools import count, islice
from typing import TYPE_CHECKING, Any, cast

from psycopg import sql
from psycopg.types.json import Jsonb

from dbanon.db.histories import memory
from dbanon.db.histories.memory import COUNTED, ENTRIES, NEVER
from dbanon.db.models.functions import class_in_run, demands, judged_in_runs, reads_classes
from dbanon.db.proofs import subjects
from dbanon.db.proofs.subjects import verdict
from dbanon.db.queries import identifiers, query, template
from dbanon.db.session import at_once
from dbanon.domain.policy import K_ANONYMITY, L_DIVERSITY, Role
from dbanon.domain.release import Against, CheckResult, Exposure, Verdict
from dbanon.models.base import Bound, Scope
from dbanon.models.registry import MODELS, arguments, model_of, sensitive_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from dbanon.db.histories.memory import Memory
    from dbanon.db.models.functions import Demand
    from dbanon.db.session import Session
    from dbanon.domain.policy import Policy


CELLS = sql.Identifier("pg_temp", "history_cells")
NOW = sql.Identifier("pg_temp", "history_now")
_VALUES = sql.SQL("(SELECT e.value_id FROM {} AS e WHERE e.relation = ANY ({}))")
_LEAST = 2  # values that a person is to have where a policy asks for no number of them


def of_persons(session: Session, k: int, count: sql.SQL | None = None) -> CheckResult:
    """Check that each cell has at least k persons; by default the cells in ``CELLS``."""
    statement = count or query("overlays.count_cells")
    cells, smallest, failing, persons = session.one(statement, {"k": k})
    found = subjects.verdict(cells, failing)
    return CheckResult(K_ANONYMITY, None, k, smallest, cells, failing, persons, found)


def of_releases(
    session: Session,
    known: Sequence[Memory],
    policies: Mapping[int, Policy],
    *,
    asked: Iterable[Policy] = (),
    count: sql.SQL | None = None,
) -> tuple[CheckResult, int]:
    """Check each cell against the smallest k of the releases that ever published its persons.

    Return also the number of cells smaller than the greatest k of ``policies`` (by release) and
    ``asked``; a release must not add any. count: as in ``of_persons``.
    """
    by_release = {number: policy.k for number, policy in policies.items()}
    most = max([*by_release.values(), *(policy.k for policy in asked)])
    found = of_persons(session, most, count)
    small = found.failing_classes
    if not small or set(by_release.values()) == {most}:
        return found, small
    first = {number: number_of for one in known for number, number_of in one.firsts().items()}
    promised = {
        "most": most,
        "releases": [*by_release],
        "relations": [first[number] for number in by_release],
        "ks": [*by_release.values()],
    }
    memory.widen(session, known[0])
    failing, k, least = session.one(query("overlays.count_owed"), promised)
    if failing:
        return replace(found, required=k, achieved=least, failing_classes=failing), small
    required = min(by_release.values())
    return replace(found, required=required, failing_classes=0, verdict=Verdict.PASSED), small


def sensitive_columns(policy: Policy) -> list[str]:
    """Return the sensitive columns of a policy."""
    return [rule.column for rule in policy.with_role(Role.SENSITIVE)]


def asked_of_values(
    policy: Policy, sensitive: Sequence[str] | None = None
) -> tuple[list[str], list[Demand]]:
    """Return unused names, and the models of ``sensitive`` values.

    The names are of run, cell, person, persons and of the code of each sensitive column.
    """
    sensitive = sensitive_columns(policy) if sensitive is None else sensitive
    unused = (name for i in count() if (name := f"c{i}") not in sensitive)
    free = [*islice(unused, 4 + len(sensitive))]
    cell = free[1]
    asked = [
        demand
        for demand in demands(policy.models, quasi=[cell], sensitive=sensitive)
        if MODELS[demand.spec.name].scope is Scope.SENSITIVE
        and not MODELS[demand.spec.name].of_whole
        and demand.column in sensitive
    ]
    return free, asked


def of_values(
    session: Session,
    known: Memory,
    policies: Mapping[int, Policy],
    numbers: Collection[str],
    *,
    shown: Mapping[int, int] | None = None,
    sensitive: Sequence[str] | None = None,
    cells: sql.Identifier = CELLS,
    known_as: str = "cell",
    entries: sql.Identifier = ENTRIES,
) -> dict[int, list[CheckResult]]:
    """Check the cells of each release against the value models of its policy.

    policies: by release; numbers: numeric columns; shown: by release, another one that provides the
    values; sensitive: columns, by default those of the policies; cells, known_as: table and column
    of cells; entries: the membership of their persons.
    """
    first, shown = known.firsts(), shown or {}
    rows = {n: (n, one := shown.get(n, n), first[one]) for n in policies}
    names = ("release_id", "shown_id", "relation")
    each = memory.shown_by_each(entries)
    several: set[int] = set()
    if known.several and rows:
        asked = template(
            "overlays.of_several", releases=memory.listed([*rows.values()], *names), shown=each
        )
        several = {row[0] for row in session.pg.execute(asked)}
    found: dict[int, list[CheckResult]] = {number: [] for number in policies}
    for alike in _asked_alike(policies, several, sensitive):
        overlay = _Overlay.of(policies[alike[0]], numbers, sensitive)
        slots = {"entries": entries, "never": NEVER}
        within = {"cells": cells, "known_as": sql.Identifier(known_as)}
        selected = template("overlays.overlay", **overlay.slots, **slots, **within)
        listed = [rows[number] for number in alike]
        results = overlay.judge(
            session,
            selected,
            runs=template("overlays.runs", **slots, releases=memory.listed(listed, *names)),
            # in other tables, the same column may not be numeric
            among=_VALUES.format(entries, sql.Literal(sorted({r[2] for r in listed}))),
            several=alike[0] in several,
        )
        for number in alike:
            found[number] = [result(number) for result in results]
    return found


def _asked_alike(
    policies: Mapping[int, Policy], several: Collection[int], sensitive: Sequence[str] | None
) -> list[list[int]]:
    """Group the releases that the same statements can check."""
    found: list[tuple[object, list[int]]] = []
    for number, policy in policies.items():
        columns = sensitive_columns(policy) if sensitive is None else sensitive
        asked = (asked_of_values(policy, sensitive), [*columns], number in several)
        alike = next((numbers for other, numbers in found if other == asked), None)
        if alike is None:
            found.append((asked, [number]))
        else:
            alike.append(number)
    return [numbers for _, numbers in found]


def of_first(
    session: Session, number: int, policy: Policy, numbers: Collection[str]
) -> list[CheckResult]:
    """Check the classes of the first release of a series, as ``of_values`` does."""
    overlay = _Overlay.of(policy, numbers, None)
    selected = template("overlays.overlay_first", **overlay.slots)
    run = sql.SQL("SELECT 1::bigint AS run, ARRAY[{}::bigint] AS releases").format(number)
    found = overlay.judge(session, selected, runs=run, among=COUNTED, several=False)
    return [result(number) for result in found]


@dataclass(frozen=True, slots=True)
class _Overlay:
    """Requirements for published values, with cells as classes.

    slots: column names, and the columns of ``value``, by position, because any name is possible;
    code: the name of each column's ranks; numbers: numeric columns.
    """

    run: str
    cell: str
    person: str
    asked: list[Demand]
    slots: Mapping[str, sql.Composable]
    code: Mapping[str, sql.Identifier]
    numbers: Collection[str]

    @classmethod
    def of(
        cls, policy: Policy, numbers: Collection[str], sensitive: Sequence[str] | None
    ) -> _Overlay:
        """Build it from a policy; sensitive: only these columns."""
        sensitive = sensitive_columns(policy) if sensitive is None else sensitive
        free, asked = asked_of_values(policy, sensitive)
        code = dict(zip(sensitive, map(sql.Identifier, free[4:]), strict=True))
        columns, codes, names = sql.Composed([]), sql.Composed([]), sql.Composed([])
        for place, (name, rank) in enumerate(code.items()):
            parts = {"column": sql.Identifier(f"v{place}"), "rank": rank}
            kind = sql.SQL("::numeric" if name in numbers else ' COLLATE "C"')
            value = sql.SQL(", (v.value ->> {}){} AS {column}")
            columns += value.format(sql.Literal(name), kind, **parts)
            codes += sql.SQL(", dense_rank() OVER (ORDER BY c.{column}) AS {rank}").format(**parts)
            names += sql.SQL(", u.{column} AS {}, u.{rank}").format(sql.Identifier(name), **parts)
        slots: dict[str, sql.Composable] = {"columns": columns, "codes": codes, "names": names}
        for slot, name in zip(("run", "cell", "person", "persons"), free, strict=False):
            slots[slot] = sql.Identifier(name)
        run, cell, person, *_ = free
        return cls(run, cell, person, asked, slots, code, numbers)

    def judge(
        self,
        session: Session,
        overlay: sql.Composable,
        *,
        runs: sql.Composable,
        among: sql.Composable,
        several: bool,
    ) -> Sequence[Callable[[int], CheckResult]]:
        """Return the results by release, one column at a time.

        overlay: the rows of each run; runs: the releases that show the same rows; among: a table
        with all their values; several: a person can have several rows.
        """
        sent = []
        with at_once(session.pg):
            for demand in self.asked:
                model = MODELS[demand.spec.name]
                by_person = several and model.of_persons and demand.quasi == (self.cell,)
                statement = template(
                    "overlays.judge",
                    **self.slots,
                    among=among,
                    runs=runs,
                    overlay=overlay,
                    judged=self._by_person(demand) if by_person else self._by_row(demand),
                )
                result_of = subjects.result_of_persons if by_person else subjects.result_of_rows
                sent.append((demand, result_of, session.pg.execute(statement)))
        found = []
        for demand, result_of, rows in sent:
            results = [(r, result_of(demand, row, column=demand.column)) for r, _, *row in rows]
            found.append(partial(_of_release, demand, results))
        return found

    def _by_person(self, demand: Demand) -> sql.Composed:
        overlay, run = sql.Identifier("overlay"), sql.Identifier(self.run)
        return subjects.persons_statement(overlay, demand, subject=self.person, run=run)

    def _by_row(self, demand: Demand) -> sql.Composed:
        value = sql.SQL("min({})").format(sql.Identifier("o", demand.column))
        label: sql.Composable = value
        number: sql.Composable = sql.SQL("NULL::double precision")
        if demand.column in self.numbers:
            label = sql.SQL("trim_scale({})::text").format(value)
            number = sql.SQL("{}::double precision").format(value)
        run, quasi = sql.Identifier("o", self.run), identifiers(demand.quasi, of="o")
        given = template(
            "overlays.input_of_overlay",
            **{"class": class_in_run(run, quasi)},
            run=run,
            quasi=quasi,
            code=self.code[demand.column],
            label=label,
            number=number,
            persons=self.slots["persons"],
        )
        if reads_classes(demand.spec.name):
            given += sql.SQL(",\n") + template("overlays.classes_of_overlay")
        return judged_in_runs(demand, given=given)


def _of_release(
    demand: Demand, results: Sequence[tuple[Collection[int], CheckResult]], number: int
) -> CheckResult:
    """Add the results of all runs of a release."""
    own = [result for releases, result in results if number in releases]
    if own:
        return combined(own)
    model = model_of(demand.spec)
    limit = getattr(model, model.limit)
    return CheckResult(demand.spec.name, demand.column, limit, None, 0, 0, 0, Verdict.NOT_CHECKED)


def against(
    session: Session,
    known: Memory,
    compared: Mapping[int, int],
    policies: Mapping[int, Policy],
    *,
    now: sql.Identifier = NOW,
    before: sql.Identifier = ENTRIES,
    shown: sql.Identifier = ENTRIES,
) -> dict[int, Against]:
    """Compare the newest release, in ``now``, with other releases.

    compared: by release, the release that provides the rows; before: the membership of the persons;
    shown: that of everyone ever in their classes.
    """
    if not compared:
        return {}
    newest, first = max(policies), known.firsts()
    k = {number: max(policies[number].k, policies[newest].k) for number in compared}
    rows = [(number, one, first[one], k[number]) for number, one in compared.items()]
    required = {number: required_of(policies[number], policies[newest]) for number in compared}
    counted = "overlays.counted_all" if before == shown else "overlays.counted_among"
    statement = template(
        "overlays.compare",
        **_asked(required),
        releases=memory.listed(rows, "release_id", "shown_id", "relation", "k"),
        now=now,
        shown=template(counted, shown=shown, before=before),
        never=NEVER,
    )
    found = {}
    for number, persons, smallest, below, in_both, *left in session.pg.execute(statement):
        columns = zip(required[number].items(), *(each or () for each in left), strict=True)
        found[number] = Against(
            release=number,
            relation=known.relations[number],
            persons=persons,
            in_both=in_both,
            required=k[number],
            smallest=smallest or 0,
            below=below,
            exposures=tuple(Exposure(*asked_of, *few) for asked_of, *few in columns),
        )
    return {number: found[number] for number in compared}


def _asked(required: Mapping[int, Mapping[str, int]]) -> dict[str, sql.Literal]:
    """Compose the slots that list the columns of each release, with the values they are to have."""
    asked = [
        (number, place, column, l)
        for number, columns in required.items()
        for place, (column, l) in enumerate(columns.items())
    ]
    lists = zip(*asked, strict=True) if asked else ((), (), (), ())
    names = ("numbers", "places", "columns", "least")
    return {name: sql.Literal([*values]) for name, values in zip(names, lists, strict=True)}


def first_pair(session: Session, known: Memory, policy: Policy) -> Against:
    """Compare the first release of a series with itself: its classes are the cells."""
    ((number, relation),) = known.relations.items()
    required, exposures = required_of(policy, policy), []
    for column, l in (required or {"": _LEAST}).items():
        asked = {"column": column, "l": l, "k": policy.k}
        persons, smallest, below, *few = session.one(query("overlays.compare_first"), asked)
        exposures.append(Exposure(column, l, *few))
    return Against(
        release=number,
        relation=relation,
        persons=persons,
        in_both=persons,
        required=policy.k,
        smallest=smallest or 0,
        below=below,
        exposures=tuple(exposures) if required else (),
    )


def required_of(earlier: Policy, newest: Policy) -> dict[str, int]:
    """Return the common sensitive columns of two releases, with the required number of values."""
    before = {rule.column for rule in earlier.with_role(Role.SENSITIVE)}
    both = [r.column for r in newest.with_role(Role.SENSITIVE) if r.column in before]
    required = dict.fromkeys(both, _LEAST)
    for spec in newest.models:
        if spec.name == L_DIVERSITY:
            asked = set(sensitive_of(spec, both)) & required.keys()
            required |= dict.fromkeys(asked, cast("int", arguments(spec)["l"]))
    return required


_TOLERANCE = 1e-9  # within which two sums of the same numbers may differ by their order


@dataclass(frozen=True, slots=True)
class Figures:
    """The result of comparing a release with earlier ones.

    releases: all compared, the newest last; persons: in all of them; numbers: numeric columns;
    results: model results of cells, by release; pairs: comparison with each release, itself
    included; changed: changed rows per release.
    """

    releases: tuple[int, ...]
    persons: int
    numbers: tuple[str, ...]
    results: Mapping[int, tuple[CheckResult, ...]]
    pairs: Mapping[int, Against]
    changed: Mapping[int, int]

    def agrees(self, other: Figures) -> bool:
        """Return True if both results are equal."""
        same = (self.releases, self.persons) == (other.releases, other.persons)
        pairs = all(other.pairs.get(number) == pair for number, pair in self.pairs.items())
        return (
            same
            and pairs
            and all(
                len(found) == len(other.results.get(number, ()))
                and all(map(_is_same, found, other.results[number]))
                for number, found in self.results.items()
            )
        )


def keep(session: Session, figures: Figures) -> None:
    """Store the figures of the newest release; delete those that the next one does not need."""
    results = {
        str(release): [_written(result) for result in found]
        for release, found in figures.results.items()
    }
    pairs = {
        str(release): [
            *(pair.persons, pair.in_both, pair.required, pair.smallest, pair.below),
            [[e.column, e.required, e.below, e.to_one] for e in pair.exposures],
        ]
        for release, pair in figures.pairs.items()
    }
    document = {
        "releases": figures.releases,
        "persons": figures.persons,
        "numbers": figures.numbers,
        "results": results,
        "pairs": pairs,
        "changed": {str(release): rows for release, rows in figures.changed.items()},
    }
    noted = {"release": figures.releases[-1], "figures": Jsonb(document)}
    session.pg.execute(query("histories.add_figures"), noted)
    session.pg.execute(query("histories.forget_figures"), {"releases": list(figures.releases)})


def kept(session: Session, known: Memory) -> dict[int, Figures]:
    """Return the readable stored figures of comparable releases."""
    asked = {"releases": list(known.relations)}
    found = {}
    for release, document in session.pg.execute(query("histories.figures"), asked):
        try:
            found[release] = _read(document, known)
        except (AttributeError, KeyError, TypeError, ValueError):
            continue  # it was damaged, and is counted anew
    return found


def _is_same(one: CheckResult, other: CheckResult) -> bool:
    """Compare two results; sums may differ by rounding."""
    same = replace(one, achieved=None) == replace(other, achieved=None)
    if one.achieved is None or other.achieved is None:
        return same and one.achieved is other.achieved
    return same and math.isclose(
        one.achieved, other.achieved, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE
    )


def _written(result: CheckResult) -> list[object]:
    values = (result.required, result.achieved)
    numbers = [repr(value) if isinstance(value, float) else value for value in values]
    counts = (result.classes, result.failing_classes, result.n_rows)
    return [result.model, result.column, *numbers, *counts, result.verdict]


def _read(document: dict[str, Any], known: Memory) -> Figures:
    return Figures(
        releases=tuple(document["releases"]),
        persons=document["persons"],
        numbers=tuple(document["numbers"]),
        results={
            int(release): tuple(map(_result, found))
            for release, found in document["results"].items()
        },
        pairs={
            int(release): _pair(int(release), known, pair)
            for release, pair in document["pairs"].items()
        },
        changed={int(release): rows for release, rows in document["changed"].items()},
    )


def _result(values: list[Any]) -> CheckResult:
    model, column, *numbers, classes, failing, n_rows, verdict = values
    required, achieved = (float(v) if isinstance(v, str) else v for v in numbers)
    return CheckResult(
        model, column, required, achieved, classes, failing, n_rows, Verdict(verdict)
    )


def _pair(release: int, known: Memory, values: list[Any]) -> Against:
    persons, in_both, required, smallest, below, exposures = values
    return Against(
        release=release,
        relation=known.relations[release],
        persons=persons,
        in_both=in_both,
        required=required,
        smallest=smallest,
        below=below,
        exposures=tuple(Exposure(*values) for values in exposures),
    )


def combined(parts: Sequence[CheckResult]) -> CheckResult:
    """Add the results of different classes; a value that is no number is above all others."""
    model = MODELS[parts[0].model]
    worst = min if model.bound is Bound.AT_LEAST else max
    values = [part.achieved for part in parts if part.achieved is not None]
    classes = sum(part.classes for part in parts)
    return replace(
        parts[0],
        achieved=worst(values, key=lambda value: (math.isnan(value), value), default=None),
        classes=classes,
        failing_classes=sum(part.failing_classes for part in parts),
        n_rows=sum(part.n_rows for part in parts),
        verdict=verdict(classes, sum(part.verdict is Verdict.FAILED for part in parts)),
    )


def carried(base: CheckResult, removed: CheckResult, added: CheckResult) -> CheckResult | None:
    """Subtract some classes from a result and add others; None if that is impossible."""
    model = MODELS[base.model]
    asked = {(one.model, one.column, one.required) for one in (base, removed, added)}
    classes = base.classes - removed.classes + added.classes
    failing = base.failing_classes - removed.failing_classes + added.failing_classes
    n_rows = base.n_rows - removed.n_rows + added.n_rows
    if len(asked) > 1 or model.floor is not None or min(classes, failing, n_rows) < 0:
        return None
    least = model.bound is Bound.AT_LEAST
    known, worst = _worst(base.achieved, removed.achieved, added.achieved, least=least)
    if not known or (worst is None) != (classes == 0):
        return None
    return replace(
        base,
        achieved=worst,
        classes=classes,
        failing_classes=failing,
        n_rows=n_rows,
        verdict=verdict(classes, failing),
    )


def carried_pair(base: Against, removed: Against, added: Against) -> Against | None:
    """Subtract some groups of persons from a pair and add others; None if that is impossible."""
    asked = {
        (pair.required, *((e.column, e.required) for e in pair.exposures))
        for pair in (base, removed, added)
    }
    sizes = [pair.smallest if pair.persons else None for pair in (base, removed, added)]
    known, smallest = _worst(*sizes, least=True)
    if len(asked) > 1 or not known:
        return None
    exposures = tuple(
        replace(e, below=e.below - r.below + a.below, to_one=e.to_one - r.to_one + a.to_one)
        for e, r, a in zip(base.exposures, removed.exposures, added.exposures, strict=True)
    )
    pair = replace(
        base,
        persons=base.persons - removed.persons + added.persons,
        in_both=base.in_both - removed.in_both + added.in_both,
        smallest=int(smallest or 0),
        below=base.below - removed.below + added.below,
        exposures=exposures,
    )
    counts = [pair.persons, pair.in_both, pair.below]
    counts += [n for e in exposures for n in (e.below, e.to_one)]
    if min(counts) < 0 or (smallest is None) != (pair.persons == 0):
        return None
    return pair


def _worst(
    base: float | None, removed: float | None, added: float | None, *, least: bool
) -> tuple[bool, float | None]:
    """Return (is known, worst value or None without classes); least: the smallest is worst."""
    if base is None or added is None:
        worst, known = (added if base is None else base), removed is None or base is None
    else:
        worst = min(base, added) if least else max(base, added)
        known = removed is None or worst == added
    if not known and base is not None and removed is not None:
        # What is left has the worst value still if those that went were better.
        known = removed > base + _TOLERANCE if least else removed < base - _TOLERANCE
    return known, worst
