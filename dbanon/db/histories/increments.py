"""Count what a release changes of the figures of those before, by the persons whom it concerns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from psycopg import sql

from dbanon.db.histories import cells, memory
from dbanon.db.histories.cells import CELLS, NOW
from dbanon.db.histories.figures import carried, carried_pair
from dbanon.db.queries import query, template
from dbanon.db.session import at_once, only

if TYPE_CHECKING:
    from collections.abc import Mapping

    import psycopg

    from dbanon.db.histories.figures import Figures
    from dbanon.db.histories.memory import Memory
    from dbanon.db.session import Session
    from dbanon.domain.checks import CheckResult
    from dbanon.domain.composition import Against
    from dbanon.domain.policy import Policy

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


@dataclass(frozen=True, slots=True)
class Increment:
    """The newest release, as it differs from the release of its relation before.

    former: that release; last: what was found when all but the newest were compared; base: what was
    found with each; added: the persons who were in none before; is_split: whether some members of a
    cell left the others; pairs: whether pairs of releases are counted by it, too.
    """

    session: Session
    known: Memory
    policies: Mapping[int, Policy]
    former: int
    last: Figures
    base: Mapping[int, Figures]
    added: int
    is_split: bool
    pairs: bool

    def results(self, numbers: tuple[str, ...]) -> dict[int, tuple[CheckResult, ...] | None]:
        """Return what the cells achieve by the values of each release.

        None of one of which all have to be counted. numbers: the columns all of whose values are
        numbers.
        """
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
        """Return what some persons make of results; before: the release that each starts from."""
        policies = {number: self.policies[one] for number, one in before.items()}
        removed = self._of_values(policies, numbers, entries, known_as="former", shown=before)
        policies = {number: self.policies[number] for number in before}
        added = self._of_values(policies, numbers, entries, known_as="cell")
        found: dict[int, tuple[CheckResult, ...] | None] = dict.fromkeys(before)
        for number, one in before.items():
            base = self.last.results[one]
            if len(base) == len(removed[number]) == len(added[number]):
                three = zip(base, removed[number], added[number], strict=True)
                told = [carried(*each) for each in three]
                known = tuple(each for each in told if each is not None)
                found[number] = known if len(known) == len(told) else None
        return found

    def _of_values(
        self,
        policies: Mapping[int, Policy],
        numbers: tuple[str, ...],
        entries: sql.Identifier,
        *,
        known_as: str,
        shown: Mapping[int, int] | None = None,
    ) -> dict[int, list[CheckResult]]:
        return cells.of_values(
            self.session,
            self.known,
            policies,
            numbers,
            shown=shown,
            cells=_MOVED,
            known_as=known_as,
            entries=entries,
        )

    def compared(self) -> dict[int, Against | None]:
        """Return the newest release held against each, itself included.

        None of one of which all persons are to be counted.
        """
        found: dict[int, Against | None] = dict.fromkeys(self.policies)
        if not self.pairs:
            return found
        newest = max(self.policies)
        bases = {n: base for n in self.policies if (base := self._base(n)) is not None}
        of_former = {n: self.former if n == newest else n for n in bases}
        removed = self._against(of_former, now=_WAS)
        added = self._against({number: number for number in bases}, now=_IS)
        for number, base in bases.items():
            found[number] = carried_pair(base, removed[number], added[number])
        return found

    def _base(self, number: int) -> Against | None:
        """Return the release before the newest, of its relation, held against another."""
        newest, former = max(self.policies), self.former
        first, second = sorted((former, former if number == newest else number))
        if second not in self.base or first not in self.base[second].pairs:
            return None
        pair = self.base[second].pairs[first]
        return replace(pair, release=number, relation=self.known.relations[number])

    def _against(self, compared: Mapping[int, int], *, now: sql.Identifier) -> dict[int, Against]:
        """Hold the persons concerned, in ``now``, against what releases show of them.

        Others were in these classes, too, and what these show is not theirs alone.
        """
        return cells.against(
            self.session,
            self.known,
            compared,
            self.policies,
            now=now,
            before=_OF_PAIRED,
            shown=_CLASSES,
        )

    def end(self) -> None:
        """Drop what was found."""
        of_pairs = (_OF_PAIRED, _CLASSES, _WAS, _IS) if self.pairs else ()
        memory.drop(self.session, _MOVED, _OF_MOVED, _OF_SPLIT, *of_pairs)


def begin(
    session: Session, known: Memory, policies: Mapping[int, Policy], *, base: Mapping[int, Figures]
) -> Increment | None:
    """Find whom the newest release concerns; None if all figures are to be counted anew.

    base: what was found with each release before. The cells of whom it may concern are in CELLS.
    """
    *earlier, newest = known.relations
    same = [number for number in earlier if known.relations[number] == known.relations[newest]]
    if known.several or not same:
        return None
    last = base.get(earlier[-1])
    if last is None or last.releases != tuple(earlier):
        return None
    with at_once(session.pg):
        near = _find_near(session, known, newest)
        counted = _find_moved(session, near)
    added, is_split, moved = only(counted)
    increment, found = None, [_NEWEST, _EARLIER, _LEFT, *([_NEAR] if near is _NEAR else [])]
    if moved <= _SHARE * last.persons:
        most = _SHARE * last.persons
        pairs = _find_paired(session, known, newest, former=same[-1], near=near, most=most)
        increment = Increment(
            session, known, policies, same[-1], last, base, added, is_split, pairs
        )
    else:
        found += [_MOVED, _OF_MOVED, _OF_SPLIT, CELLS]
    memory.drop(session, *found)
    return increment


def _find_near(session: Session, known: Memory, newest: int) -> sql.Identifier:
    """Write the cells of those whom a release may concern; return what is remembered of them.

    Who was only in the first release of all is in the newest one of its relation as well, in a
    class that may be as it was. With other relations in between, everybody may be concerned.
    """
    for name in ("overlays.find_newest", "overlays.find_earlier"):
        session.pg.execute(query(name), {"newest": newest})
    near, first = memory.ENTRIES, min(known.relations)
    if known.relations[first] == known.relations[newest]:
        near = _NEAR
        session.pg.execute(query("overlays.find_near"), {"first": first})
        session.pg.execute(sql.SQL("ANALYZE {}").format(near))
    memory.cells(session, CELLS, entries=near)
    return near


def _find_moved(session: Session, near: sql.Identifier) -> psycopg.Cursor:
    """Write whose cell may be another one, and what is remembered of them.

    The row of what is returned is how many were in none before, whether cells were split, and how
    many they all are.
    """
    session.pg.execute(template("overlays.cells", cells=_LEFT, entries=_EARLIER))
    session.pg.execute(query("overlays.find_moved"))
    counted = session.pg.execute(query("overlays.count_moved"))
    for table, condition in ((_OF_MOVED, "true"), (_OF_SPLIT, "p.is_split")):
        _find_entries(session, table, near, persons=_MOVED, condition=condition)
    return counted


def _find_paired(
    session: Session,
    known: Memory,
    newest: int,
    *,
    former: int,
    near: sql.Identifier,
    most: float,
) -> bool:
    """Write whom pairs of releases concern, as they were and are; return False if too many."""
    with at_once(session.pg):
        memory.rows(session, known, former, _WAS, entries=_EARLIER)
        memory.rows(session, known, newest, NOW, entries=near)
        paired = session.pg.execute(query("overlays.find_paired"))
        memory.drop(session, _WAS, NOW)
    few = paired.rowcount <= most
    with at_once(session.pg):
        if few:
            _find_entries(session, _OF_PAIRED, near, persons=_PAIRED)
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
    """Write what is remembered of some persons."""
    slots = {"entries": entries, "persons": persons, "condition": sql.SQL(condition)}
    session.pg.execute(template("overlays.entries_of", among=near, **slots))
    session.pg.execute(sql.SQL("ANALYZE {}").format(entries))


def _values_asked(policy: Policy) -> object:
    """Return what tells the results of the values of a policy from those of others."""
    return cells.asked_of_values(policy), [rule.column for rule in policy.columns]
