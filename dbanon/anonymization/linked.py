"""Group persons with rows in several tables: one partition of the persons for all tables.

Comparing published tables reveals which persons share a class in each of them. So all persons of a
group have rows in the same tables, and equally many if the policy requires that. Then the classes
of any table or join are unions of whole groups (atoms; algorithm reference, section 7.2).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.adjusting.merging import merged, numbered
from dbanon.anonymization.adjusting.repair import failing
from dbanon.anonymization.interfaces import timed
from dbanon.anonymization.outcome import (
    Outcome,
    budget_of,
    certify,
    nobody,
    outcome,
    publish,
    published_values,
    requirement_of,
)
from dbanon.anonymization.persons import (
    Persons,
    is_possible,
    kept_levels,
    places,
    profiles,
    require_within,
)
from dbanon.anonymization.problem import Problem, solve
from dbanon.anonymization.search import is_possible as is_possible_of_rows
from dbanon.anonymization.search import search_rows
from dbanon.domain.assignment import Assignment, EncodedTable, GroupValues
from dbanon.domain.errors import Unsatisfiable
from dbanon.domain.table import quote_identifier
from dbanon.models.demands import all_demands

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from dbanon.anonymization.persons import Judge
    from dbanon.domain.outcomes import Stages
    from dbanon.domain.policy import Policy

    Level = tuple[int, ...]
    """Number of rows of each table."""
    Alike = dict[Level, NDArray[np.int64]]
    """The persons who keep so many of each."""


def solve_linked(
    persons: Problem, tables: Sequence[Problem], *, seed: int, stages: Stages
) -> list[Outcome]:
    """Group the persons; the rows of each get its group in every table.

    persons: one row each; tables: their ``subjects`` index the rows of persons. Without tables, the
    persons are a problem of their own, of whatever units.
    Returns the outcome of the persons and of each table, in which the quasi-identifiers of the
    persons precede its own. k persons share each combination of classes, and the models of each
    table hold for its rows and persons. If too few persons have the same numbers of rows, as few
    rows as possible are suppressed. Raises Unsatisfiable if no partition meets all requirements.
    With ``least``, as in ``Problem``, values do not decide which rows these are.
    """
    if not tables:
        return [solve(persons, seed=seed, stages=stages)]
    n_persons, policy = persons.encoded.n_rows, persons.policy
    whole = _Whole(persons, tables)
    alike = whole.alike(whole.levels(), persons.least)
    parts = []
    for level, members in sorted(alike.items()):
        part, own = whole.take(members, level), timed(policy, share=len(members) / n_persons)
        parts.append((members, part.search(own, seed=seed, stages=stages)))
    return whole.outcomes(Assignment.of_parts(n_persons, parts), alike)


def with_persons(table: Problem, persons: EncodedTable) -> EncodedTable:
    """Return the rows of a table with the quasi-identifiers of their persons before its own."""
    shared = tuple(replace(c, codes=c.codes[subjects_of(table)]) for c in persons.quasi)
    return replace(table.encoded, quasi=(*shared, *table.encoded.quasi))


def subjects_of(table: Problem) -> NDArray[np.int32]:
    """Return the person of each row, as an index into the persons' table."""
    assert table.subjects is not None  # noqa: S101 - they link its rows to the persons
    return table.subjects


def require_each(tables: Sequence[Problem], outcomes: Sequence[Outcome]) -> None:
    """Raise Unsatisfiable for a table without published rows."""
    for table, one in zip(tables, outcomes, strict=True):
        if not one.assignment.n_groups:
            raise Unsatisfiable(
                f"no row of {quote_identifier(table.policy.table.name)} can be published: too few"
                " persons have any",
                hint="ask for less, or leave the table out of the dataset",
            )


class _Rows:
    """The rows of one table, by person."""

    def __init__(self, table: Problem, persons: EncodedTable) -> None:
        self.table, self.joined, self.subjects = (
            table,
            with_persons(table, persons),
            subjects_of(table),
        )
        self._order = np.argsort(self.subjects, kind="stable")
        self._size = np.bincount(self.subjects, minlength=persons.n_rows)
        self._starts = np.concatenate([[0], np.cumsum(self._size)])
        self._places = None
        if table.policy.rows_per_subject is not None:
            assert table.draws is not None  # noqa: S101 - they are drawn for such a policy
            self._places = places(self.subjects, table.draws[:, 0])

    def levels(self) -> NDArray[np.int64]:
        """Return how many rows of each person may become known, (p,): at least that it has any."""
        return kept_levels(self._size, self.table.policy.rows_per_subject)

    def of(self, members: NDArray[np.int64], most: int) -> NDArray[np.int64]:
        """Return the rows that these persons keep, in order, at most ``most`` each."""
        if not most:
            return np.zeros(0, np.int64)
        starts = self._starts[members]
        size = self._starts[members + 1] - starts
        steps = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size)
        rows = np.sort(self._order[np.repeat(starts, size) + steps])
        return rows if self._places is None else rows[self._places[rows] < most]


class _Whole:
    """Persons, and all tables that have rows of them."""

    def __init__(self, persons: Problem, tables: Sequence[Problem]) -> None:
        self._persons, self._policy = persons.encoded, persons.policy
        self._tables = [_Rows(table, persons.encoded) for table in tables]

    def levels(self) -> NDArray[np.int64]:
        """Return how many rows of each table each person has, (p, t)."""
        return np.column_stack([rows_of.levels() for rows_of in self._tables])

    def alike(self, levels: NDArray[np.int64], least: int | None = None) -> Alike:
        """Return the persons by how many rows of each table they keep; levels: (p, t). O(v^2 t).

        Persons keep all if those with the same numbers meet the policies among themselves.
        Otherwise the most similar others, as many as needed, are reduced with them to their common
        numbers. least: persons that suffice instead, whatever their values.
        """

        def holds(level: Level) -> bool:
            members = alike[level]
            if least is not None:
                return len(members) >= least
            return self.take(members, level).is_possible()

        vectors, number = np.unique(levels, axis=0, return_inverse=True)
        parts = Assignment(number.ravel().astype(np.int32), len(vectors)).members
        alike = dict(zip(map(tuple, vectors.tolist()), parts, strict=True))
        waiting = [(-sum(level), level) for level in alike]
        heapify(waiting)
        while waiting:
            _, level = heappop(waiting)
            if level not in alike or holds(level):
                continue
            if len(alike) == 1:
                msg = "all persons together do not meet what is asked of their tables"
                raise Unsatisfiable(msg, hint="ask for less, or publish fewer tables together")
            for changed in self._lower(alike, level, least or self._policy.k):
                heappush(waiting, (-sum(changed), changed))
        return alike

    def _lower(self, alike: Alike, level: Level, k: int) -> list[Level]:
        """Merge persons with these numbers of rows with others at least loss; return changes."""
        members = alike.pop(level)
        levels = list(alike)
        size = np.array([len(alike[other]) for other in levels])
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
        """Return others, sorted by the distance of their codes from the median of the members."""
        found = np.zeros(len(others))
        for column in self._persons.quasi:
            middle = np.median(column.codes[members])
            found += np.abs(column.codes[others] - middle) / max(column.size, 1)
        return others[np.argsort(found, kind="stable")]

    def take(self, members: NDArray[np.int64], level: Level) -> _Alike:
        """Return some persons with the rows that they keep of each table."""
        place = np.full(self._persons.n_rows, -1, np.int32)
        place[members] = np.arange(len(members))
        tables = []
        for rows_of, most in zip(self._tables, level, strict=True):
            rows = rows_of.of(members, most)
            if len(rows):
                table = rows_of.table
                own, subjects = table.encoded.take(rows), place[rows_of.subjects[rows]]
                tables.append(_Part(own, rows_of.joined.take(rows), table.policy, subjects))
        return _Alike(self._persons.take(members), self._policy, tables)

    def outcomes(self, assignment: Assignment, alike: Alike) -> list[Outcome]:
        """Return the published outcomes, after verifying every model."""
        values = published_values(self._persons, assignment)
        found = [_outcome(self._persons, self._policy, assignment, values, n_kept=None)]
        for i, rows_of in enumerate(self._tables):
            table = rows_of.table
            kept = np.concatenate([rows_of.of(m, level[i]) for level, m in alike.items()])
            of_rows = np.full(table.encoded.n_rows, -1, np.int32)
            of_rows[kept] = assignment.group[rows_of.subjects[kept]]
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
    """Published rows of some persons in one table; joined: with the persons' columns."""

    own: EncodedTable
    joined: EncodedTable
    policy: Policy
    subjects: NDArray[np.int32]

    def judge(self) -> Judge:
        """Return a function that finds failing groups; Unsatisfiable if all as one group fail."""
        table, subjects = self.joined, self.subjects
        requirement = requirement_of(table, self.policy)
        persons = Persons(table, self.policy, subjects)
        persons.require_possible(Assignment(np.zeros(table.n_rows, np.int32), 1), requirement)
        of_rows = replace(requirement, demands=all_demands(table, self.policy))
        fail_by_persons = persons.judge(requirement)

        def fail(groups: Assignment) -> NDArray[np.bool_]:
            rows = Assignment(groups.group[subjects], groups.n_groups)
            return failing(table, rows, of_rows) | fail_by_persons(rows)

        return fail


@dataclass(frozen=True, eq=False, slots=True)
class _Alike:
    """Persons with rows in the same tables, which may be grouped."""

    persons: EncodedTable
    policy: Policy
    tables: Sequence[_Part]

    def is_possible(self) -> bool:
        """Return True if all of them as one group meet every policy."""
        if not is_possible_of_rows(self.persons, self.policy):
            return False
        return all(is_possible(part.joined, part.policy, part.subjects) for part in self.tables)

    def search(self, policy: Policy, *, seed: int, stages: Stages) -> Assignment:
        """Group them by all known columns, and merge groups that fail in some table."""
        known = [column for t in self.tables for column in profiles(t.own, t.subjects).quasi]
        whole = replace(self.persons, quasi=(*self.persons.quasi, *known))
        found = search_rows(whole, policy, seed=seed, stages=stages)
        judges = [table.judge() for table in self.tables]
        found = merged(
            whole,
            found,
            lambda found: np.any([fail(found) for fail in judges], axis=0),
            impossible=lambda _: Unsatisfiable(
                "without the persons who are left out, the others do not meet what is asked",
                hint="ask for less, or set --max-suppressed to 0",
            ),
        )
        budget = budget_of(policy, whole.n_rows)
        certify(publish(whole, policy, found), policy, None, budget=budget)
        return found


def _outcome(
    table: EncodedTable,
    policy: Policy,
    assignment: Assignment,
    values: GroupValues,
    *,
    n_kept: int | None,
) -> Outcome:
    """Verify and measure the publication of a table; n_kept: how many rows may be published."""
    requirement = requirement_of(table, policy)
    n_sampled = 0 if n_kept is None else table.n_rows - n_kept
    name = quote_identifier(policy.table.name)
    require_within(assignment, requirement, n_sampled=n_sampled, of=f" of {name}")
    published = publish(table, policy, assignment, values=values)
    return outcome(published, policy, n_sampled=n_sampled)
