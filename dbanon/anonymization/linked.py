"""Grouping persons whose rows are in several tables: one partition of the persons for all of them.

Whoever compares the published tables looks at the persons who share a class in each of them. So all
persons of a group have rows in the same tables, and equally many where a policy asks for that: then
the classes of any table, and those of any join of them, are unions of whole groups (the atoms of
the algorithm reference, section 7.2).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.adjusting.feasible import rows_in_reach
from dbanon.anonymization.adjusting.merging import merge_with_nearest, numbered
from dbanon.anonymization.adjusting.repair import failing
from dbanon.anonymization.loss.metrics import publication, report
from dbanon.anonymization.occurrences import places
from dbanon.anonymization.parameters import timed
from dbanon.anonymization.persons import (
    Persons,
    is_possible,
    of_profiles,
    profiles,
    require_safe,
)
from dbanon.anonymization.pipeline import Outcome, certify, check_feasible, published_values, run
from dbanon.anonymization.refreshing import nobody, wait, without
from dbanon.anonymization.registry import METRICS
from dbanon.domain.assignment import Assignment, GroupValues
from dbanon.domain.errors import Unsatisfiable
from dbanon.domain.table import quote_identifier
from dbanon.models.demands import all_demands

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from dbanon.domain.assignment import EncodedTable
    from dbanon.domain.policy import Policy
    from dbanon.domain.progress import Stages

    Level = tuple[int, ...]
    """How many rows of each table."""
    Alike = dict[Level, NDArray[np.int64]]
    """The persons who keep so many of each."""


@dataclass(frozen=True, eq=False, slots=True)
class Linked:
    """A table whose rows belong to the persons of another.

    encoded: its own columns; policy: what must hold of it; subjects: (n,) int32, the person of each
    row, by its row in the table of persons; draws: (n,) uint64, where some rows of a person are
    left out, those with the least are kept.
    """

    encoded: EncodedTable
    policy: Policy
    subjects: NDArray[np.int32]
    draws: NDArray[np.uint64]

    def levels(self, n_persons: int) -> NDArray[np.int64]:
        """Return how many rows may be known to be each person's, (p,): at least whether any is."""
        times = np.bincount(self.subjects, minlength=n_persons)
        most = self.policy.rows_per_subject
        if most is None:
            return np.minimum(times, 1)
        return np.minimum(times, most) if isinstance(most, int) else times

    def beside(self, persons: EncodedTable) -> EncodedTable:
        """Return its rows with the quasi-identifiers of their persons before its own."""
        shared = tuple(replace(c, codes=c.codes[self.subjects]) for c in persons.quasi)
        return replace(self.encoded, quasi=(*shared, *self.encoded.quasi))


def run_linked(
    persons: EncodedTable,
    policy: Policy,
    tables: Sequence[Linked],
    *,
    seed: int,
    stages: Stages,
) -> list[Outcome]:
    """Group the persons, and let the rows of each inherit its group in every table.

    persons: one row each; policy: what must hold of them; tables: one or more. Returns what is
    published of the persons and of each table, in which the quasi-identifiers of the persons come
    before its own. k persons share each combination of classes, and the models of each table hold
    of its classes, by rows and by persons. Persons that too few are like have rows left out, as few
    as possible.

    Raises Unsatisfiable when no partition meets all that is asked.
    """
    whole = _Whole(persons, policy, tables)
    alike = whole.alike(np.column_stack([t.levels(persons.n_rows) for t in tables]))
    group = np.full(persons.n_rows, -1, np.int32)
    n_groups = 0
    for level, members in sorted(alike.items()):
        part = whole.take(members, level)
        share = len(members) / persons.n_rows
        found = part.search(timed(policy, share=share), seed=seed, stages=stages)
        group[members] = np.where(found.group < 0, -1, found.group + n_groups)
        n_groups += found.n_groups
    return whole.outcomes(Assignment(group, n_groups), alike)


def wait_linked(
    persons: EncodedTable,
    tables: Sequence[Linked],
    outcomes: Sequence[Outcome],
    *,
    loss: float,
    room: float,
) -> list[Outcome]:
    """Leave out the persons of the coarsest classes in all tables; loss, room: as of ``wait``."""
    first = wait(persons, outcomes[0], loss=loss, room=room)
    waiting = first.assignment.group < 0
    found = [first]
    for table, outcome in zip(tables, outcomes[1:], strict=True):
        rows = waiting[table.subjects]
        some = (outcome.assignment.group[~rows] >= 0).any()
        joined = table.beside(persons)
        found.append(without(joined, outcome, rows) if some else nobody(joined))
    return found


def require_each(tables: Sequence[Linked], outcomes: Sequence[Outcome]) -> None:
    """Raise Unsatisfiable for a table of which nothing would be published."""
    for table, outcome in zip(tables, outcomes, strict=True):
        if not outcome.assignment.n_groups:
            raise Unsatisfiable(
                f"no row of {quote_identifier(table.policy.table.name)} can be published: too few"
                " persons have any",
                hint="ask for less, or leave the table out of the dataset",
            )


class _Rows:
    """The rows of one table, by their persons."""

    def __init__(self, table: Linked, persons: EncodedTable) -> None:
        self.table, self.joined = table, table.beside(persons)
        self._order = np.argsort(table.subjects, kind="stable")
        size = np.bincount(table.subjects, minlength=persons.n_rows)
        self._starts = np.concatenate([[0], np.cumsum(size)])
        by_number = table.policy.rows_per_subject is not None
        self._places = places(table.subjects, table.draws) if by_number else None

    def of(self, members: NDArray[np.int64], most: int) -> NDArray[np.int64]:
        """Return the rows that some persons keep, if each has so many, in their order."""
        if not most:
            return np.zeros(0, np.int64)
        starts = self._starts[members]
        size = self._starts[members + 1] - starts
        steps = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size)
        rows = np.sort(self._order[np.repeat(starts, size) + steps])
        return rows if self._places is None else rows[self._places[rows] < most]


class _Whole:
    """Some persons, and all tables that have rows of them."""

    def __init__(self, persons: EncodedTable, policy: Policy, tables: Sequence[Linked]) -> None:
        self._persons, self._policy = persons, policy
        self._tables = [_Rows(table, persons) for table in tables]

    def alike(self, levels: NDArray[np.int64]) -> Alike:
        """Return the persons who keep as many rows of each table, by these numbers.

        levels: (p, t) how many each has. All of them, where the persons with as many in every table
        meet the policies among themselves. Otherwise as many of the most similar others as are
        needed keep no more than what they have in common. O(v^2 t) for v combinations of numbers.
        """
        vectors, number = np.unique(levels, axis=0, return_inverse=True)
        order = np.argsort(number.ravel(), kind="stable")
        parts = np.split(order, np.cumsum(np.bincount(number.ravel()))[:-1])
        alike = dict(zip(map(tuple, vectors.tolist()), parts, strict=True))
        waiting = [(-sum(level), level) for level in alike]
        heapify(waiting)
        while waiting:
            _, level = heappop(waiting)
            if level not in alike or self.take(alike[level], level).is_possible():
                continue
            if len(alike) == 1:
                msg = "all persons together do not meet what is asked of their tables"
                raise Unsatisfiable(msg, hint="ask for less, or publish fewer tables together")
            for changed in self._lower(alike, level):
                heappush(waiting, (-sum(changed), changed))
        return alike

    def _lower(self, alike: Alike, level: Level) -> list[Level]:
        """Let those who keep so many rows have others beside them, at least loss of rows.

        They become k, or twice as many where k do not suffice. Returns what changed.
        """
        members = alike.pop(level)
        levels = list(alike)
        size = np.array([len(alike[other]) for other in levels])
        k = self._policy.k
        need = k - len(members) if len(members) < k else len(members)
        shared = np.minimum(level, levels)
        given = np.where(size - need < k, size, need)
        lost = len(members) * (np.array(level) - shared).sum(axis=1)
        lost += given * (np.array(levels) - shared).sum(axis=1)
        i = int(lost.argmin())
        other, common = levels[i], tuple(shared[i].tolist())
        if common != other:
            near = self._nearest(alike.pop(other), members)
            members = np.append(members, near[: given[i]])
            if len(near) > given[i]:
                alike[other] = np.sort(near[given[i] :])
        alike[common] = np.sort(np.append(alike.get(common, members[:0]), members))
        return [common, other] if other in alike else [common]

    def _nearest(self, others: NDArray[np.int64], members: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return others by how far they are from the middle of some persons, by their codes."""
        found = np.zeros(len(others))
        for column in self._persons.quasi:
            middle = np.median(column.codes[members])
            found += np.abs(column.codes[others] - middle) / max(column.size, 1)
        return others[np.argsort(found, kind="stable")]

    def take(self, members: NDArray[np.int64], level: Level) -> _Alike:
        """Return some persons with the rows that they keep, if each has so many of each table."""
        place = np.full(self._persons.n_rows, -1, np.int32)
        place[members] = np.arange(len(members))
        tables = []
        for rows_of, most in zip(self._tables, level, strict=True):
            rows = rows_of.of(members, most)
            if len(rows):
                table = rows_of.table
                own, subjects = table.encoded.take(rows), place[table.subjects[rows]]
                tables.append(_Part(own, rows_of.joined.take(rows), table.policy, subjects))
        return _Alike(self._persons.take(members), self._policy, tables)

    def outcomes(self, assignment: Assignment, alike: Alike) -> list[Outcome]:
        """Return what is published, after every model was verified."""
        values = published_values(self._persons, assignment)
        found = [_outcome(self._persons, self._policy, assignment, values, n_kept=None)]
        for i, rows_of in enumerate(self._tables):
            table = rows_of.table
            kept = np.concatenate([rows_of.of(m, level[i]) for level, m in alike.items()])
            of_rows = np.full(table.encoded.n_rows, -1, np.int32)
            of_rows[kept] = assignment.group[table.subjects[kept]]
            own = numbered(of_rows)
            if not own.n_groups:
                found.append(nobody(rows_of.joined))
                continue
            groups = np.unique(of_rows[of_rows >= 0])
            shared = tuple(column.of_groups(groups) for column in values.columns)
            shown = published_values(table.encoded, own)
            both = GroupValues((*shared, *shown.columns), own.n_groups)
            found.append(_outcome(rows_of.joined, table.policy, own, both, n_kept=len(kept)))
        return found


@dataclass(frozen=True, eq=False, slots=True)
class _Part:
    """The published rows of some persons in one table, each of whom has one at least.

    own: its columns alone; joined: with those of the persons; subjects: (n,) 0..p-1 without gaps.
    """

    own: EncodedTable
    joined: EncodedTable
    policy: Policy
    subjects: NDArray[np.int32]

    def judge(self) -> Callable[[Assignment], NDArray[np.bool_]]:
        """Return what tells which groups of persons fail in this table.

        Raises Unsatisfiable when all as one group do.
        """
        table, policy, subjects = self.joined, self.policy, self.subjects
        requirement = check_feasible(table, policy)
        of_rows = all_demands(table, policy)
        varying = require_safe(table, policy, subjects)
        persons = Persons(table, policy, subjects, varying)
        persons.require_possible(Assignment(np.zeros(table.n_rows, np.int32), 1), requirement)
        # Where all rows of a person have one value, models hold of persons with one row each.
        one_each = table.take(np.unique(subjects, return_index=True)[1])
        profiled = replace(policy, models=tuple(of_profiles(policy, table, varying)))
        of_persons = all_demands(one_each, profiled)

        def fail(groups: Assignment) -> NDArray[np.bool_]:
            rows = Assignment(groups.group[subjects], groups.n_groups)
            bad = failing(table, rows, replace(requirement, demands=of_rows))
            bad |= failing(one_each, groups, replace(requirement, demands=of_persons))
            return bad | persons.failing(rows)[0]

        return fail


@dataclass(frozen=True, eq=False, slots=True)
class _Alike:
    """Persons with rows in the same tables, who may be grouped."""

    persons: EncodedTable
    policy: Policy
    tables: Sequence[_Part]

    def is_possible(self) -> bool:
        """Whether all of them as one group meet every policy."""
        try:
            requirement = check_feasible(self.persons, self.policy)
            rows_in_reach(self.persons, replace(requirement, max_suppressed=0.0))
        except Unsatisfiable:
            return False
        return all(is_possible(part.joined, part.policy, part.subjects) for part in self.tables)

    def search(self, policy: Policy, *, seed: int, stages: Stages) -> Assignment:
        """Group them by all that may be known of them, and merge what fails in some table."""
        known = [column for t in self.tables for column in profiles(t.own, t.subjects).quasi]
        whole = replace(self.persons, quasi=(*self.persons.quasi, *known))
        found = run(whole, policy, seed=seed, stages=stages).assignment
        judges = [table.judge() for table in self.tables]
        while True:
            bad = np.zeros(found.n_groups, np.bool_)
            for fail in judges:
                bad |= fail(found)
            if not bad.any():
                return found
            if found.n_groups == 1:
                msg = "without the persons who are left out, the others do not meet what is asked"
                raise Unsatisfiable(msg, hint="ask for less, or set --max-suppressed to 0")
            found = merge_with_nearest(whole, found, bad)


def _outcome(
    table: EncodedTable,
    policy: Policy,
    assignment: Assignment,
    values: GroupValues,
    *,
    n_kept: int | None,
) -> Outcome:
    """Verify and measure what is published of a table; n_kept: rows of it that may be."""
    requirement = check_feasible(table, policy)
    n_sampled = 0 if n_kept is None else table.n_rows - n_kept
    budget = requirement.budget(table.n_rows - n_sampled)
    if assignment.n_suppressed - n_sampled > budget:
        raise Unsatisfiable(
            f"the persons left out have {assignment.n_suppressed - n_sampled:,} rows of"
            f" {quote_identifier(policy.table.name)}, more than allowed",
            hint="raise --max-suppressed, or set it to 0",
        )
    published = publication(table, assignment, values, k=policy.k)
    certify(published, policy, None, budget=budget + n_sampled)
    loss = report(published, METRICS)
    loss = replace(loss, sensitive_aware=requirement.sensitive_aware, n_sampled=n_sampled)
    return Outcome(assignment, values, loss)
