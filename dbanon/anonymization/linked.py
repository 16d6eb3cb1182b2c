"""Grouping persons whose rows are in several tables: one partition of the persons for all of them.

Whoever compares the published tables looks at the persons who share a class in each of them. So all
persons of a group have rows in the same tables, and equally many where a policy asks for that: then
the classes of any table, and those of any join of them, are unions of whole groups (the atoms of
the algorithm reference, section 7.2).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
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
from dbanon.anonymization.registry import METRICS
from dbanon.domain.assignment import Assignment, GroupValues
from dbanon.domain.errors import Unsatisfiable
from dbanon.domain.table import quote_identifier
from dbanon.models.demands import all_demands, linked_demands

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from dbanon.domain.assignment import EncodedTable
    from dbanon.domain.policy import Policy
    from dbanon.domain.progress import Stages


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

    def kept(self, level: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Tell which rows are published, (n,), if each person has so many, (p,)."""
        if self.policy.rows_per_subject is None:
            return level[self.subjects] > 0
        shown: NDArray[np.bool_] = places(self.subjects, self.draws) < level[self.subjects]
        return shown

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

    Raises PolicyError, and Unsatisfiable when no partition meets all that is asked.
    """
    whole = _Whole(persons, policy, tables)
    level = whole.common(np.column_stack([t.levels(persons.n_rows) for t in tables]))
    group = np.full(persons.n_rows, -1, np.int32)
    n_groups = 0
    for members in whole.alike(level):
        part = whole.take(members, level)
        share = len(members) / persons.n_rows
        found = part.search(timed(policy, share=share), seed=seed, stages=stages)
        group[members] = np.where(found.group < 0, -1, found.group + n_groups)
        n_groups += found.n_groups
    return whole.outcomes(Assignment(group, n_groups), level)


class _Whole:
    """Some persons, and all tables that have rows of them."""

    def __init__(self, persons: EncodedTable, policy: Policy, tables: Sequence[Linked]) -> None:
        self._persons, self._policy, self._tables = persons, policy, tables
        self._joined = [table.beside(persons) for table in tables]

    def common(self, level: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how many rows of each table each person keeps, (p, t).

        All that it has, where the persons with as many in every table meet the policies among
        themselves. Otherwise as many of the most similar others as are needed keep no more than
        what they have in common.
        """
        known: dict[tuple[bytes, int], bool] = {}
        while True:
            vectors, number = np.unique(level, axis=0, return_inverse=True)
            number = number.ravel()
            size = np.bincount(number)
            for i in np.argsort(-vectors.sum(axis=1), kind="stable").tolist():
                key = vectors[i].tobytes(), int(size[i])
                if key not in known:
                    known[key] = self.take(np.flatnonzero(number == i), level).is_possible()
                if not known[key]:
                    break
            else:
                return level
            if len(vectors) == 1:
                msg = "all persons together do not meet what is asked of their tables"
                raise Unsatisfiable(msg, hint="ask for less, or publish fewer tables together")
            level = self._lowered(level, vectors, number, waiting=i)

    def _lowered(
        self,
        level: NDArray[np.int64],
        vectors: NDArray[np.int64],
        number: NDArray[np.int64],
        *,
        waiting: int,
    ) -> NDArray[np.int64]:
        """Return levels at which those who wait have others beside them, at least loss of rows.

        vectors: (v, t) the different levels; number: (p,) which of them is each person's. Those who
        wait become k, or twice as many where k do not suffice.
        """
        size = np.bincount(number)
        k = self._policy.k
        need = k - size[waiting] if size[waiting] < k else size[waiting]
        shared = np.minimum(vectors[waiting], vectors)
        given = np.where(size - need < k, size, need)
        lost = size[waiting] * (vectors[waiting] - shared).sum(axis=1)
        lost += given * (vectors - shared).sum(axis=1)
        lost[waiting] = lost.max() + 1
        other = int(lost.argmin())
        members, others = np.flatnonzero(number == waiting), np.flatnonzero(number == other)
        near = others[np.argsort(self._distances(members, others), kind="stable")]
        level = level.copy()
        level[members] = level[near[: given[other]]] = shared[other]
        return level

    def _distances(
        self, members: NDArray[np.int64], others: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Return how far others are from the middle of some persons, by their codes."""
        found = np.zeros(len(others))
        for column in self._persons.quasi:
            middle = np.median(column.codes[members])
            found += np.abs(column.codes[others] - middle) / max(column.size, 1)
        return found

    def alike(self, level: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """Return the persons of each combination of levels."""
        number = np.unique(level, axis=0, return_inverse=True)[1].ravel()
        order = np.argsort(number, kind="stable")
        return np.split(order, np.cumsum(np.bincount(number))[:-1])

    def take(self, members: NDArray[np.int64], level: NDArray[np.int64]) -> _Alike:
        """Return some persons of one combination of levels, with the rows that they keep."""
        place = np.full(self._persons.n_rows, -1, np.int32)
        place[members] = np.arange(len(members))
        tables = []
        for i, (table, joined) in enumerate(zip(self._tables, self._joined, strict=True)):
            if not level[members[0], i]:
                continue
            rows = np.flatnonzero(table.kept(level[:, i]) & (place[table.subjects] >= 0))
            own, subjects = table.encoded.take(rows), place[table.subjects[rows]]
            tables.append(_Part(own, joined.take(rows), table.policy, subjects))
        return _Alike(self._persons.take(members), self._policy, tables)

    def outcomes(self, assignment: Assignment, level: NDArray[np.int64]) -> list[Outcome]:
        """Return what is published, after every model was verified."""
        values = published_values(self._persons, assignment)
        found = [_outcome(self._persons, self._policy, assignment, values, n_kept=None)]
        for i, (table, joined) in enumerate(zip(self._tables, self._joined, strict=True)):
            kept = table.kept(level[:, i])
            if not kept.any():
                raise Unsatisfiable(
                    f"no row of {quote_identifier(table.policy.table.name)} can be published: too"
                    " few persons have any",
                    hint="ask for less, or leave the table out of the dataset",
                )
            of_rows = np.where(kept, assignment.group[table.subjects], -1)
            own = numbered(of_rows)
            groups = np.unique(of_rows[of_rows >= 0])
            shared = tuple(replace(c, index=c.index[groups]) for c in values.columns)
            shown = published_values(table.encoded, own)
            both = GroupValues((*shared, *shown.columns), own.n_groups)
            found.append(_outcome(joined, table.policy, own, both, n_kept=int(kept.sum())))
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
        of_rows = (*all_demands(table, policy), *linked_demands(table, policy))
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
