"""Partition a table by rows, persons or atoms, and return a certified outcome."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.adjusting.merging import cover, merged, moved, numbered
from dbanon.anonymization.adjusting.repair import enforce, rows_in_reach
from dbanon.anonymization.buckets import in_buckets
from dbanon.anonymization.interfaces import Requirement, timed
from dbanon.anonymization.outcome import (
    Outcome,
    budget_of,
    certify,
    outcome,
    publish,
    published_values,
    requirement_of,
)
from dbanon.anonymization.persons import (
    Persons,
    dense,
    levels,
    places,
    profiles,
    require_safe,
    require_within,
)
from dbanon.anonymization.search import search_rows, strata
from dbanon.domain.assignment import Assignment, EncodedTable
from dbanon.domain.errors import Unsatisfiable
from dbanon.domain.policy import K_ANONYMITY, Policy
from dbanon.models.demands import (
    achieved_by_persons,
    all_demands,
    linked_demands,
    meets,
    persons_of,
    wholes,
)

if TYPE_CHECKING:
    from collections.abc import Collection

    from numpy.typing import NDArray

    from dbanon.anonymization.encoding.population import Population
    from dbanon.domain.outcomes import Stages


@dataclass(frozen=True, eq=False, slots=True)
class Problem:
    """Rows to group, the policy of their classes, and the rows that stay together.

    subjects: (n,) int32, the person of each row, 0..p-1 without gaps; None if each row is a person.
    draws: (n, c) uint64, secret random numbers that choose rows and fill buckets. atoms: (n,)
    int32, indivisible sets of rows, numbered without gaps, below 0 for suppressed rows. All rows of
    a person are in one atom. population: for the policy's models of a population. least: of a pool,
    how many persons with the same numbers of rows are grouped by themselves; by default, as many as
    meet the policy.
    """

    encoded: EncodedTable
    policy: Policy
    subjects: NDArray[np.int32] | None = None
    draws: NDArray[np.uint64] | None = None
    atoms: NDArray[np.int32] | None = None
    population: Population | None = None
    least: int | None = None


def solve(problem: Problem, *, seed: int, stages: Stages) -> Outcome:
    """Group the rows and return the published classes, certified and measured.

    Every outcome meets every model. Raises PolicyError for an invalid policy, Unsatisfiable if no
    partition meets it, KeyboardInterrupt if ``stages`` is stopped before there is a partition.
    """
    encoded, policy = problem.encoded, problem.policy
    if problem.atoms is None and policy.anatomy:
        assert problem.draws is not None  # noqa: S101 - they are drawn for such a policy
        with stages("cluster"):
            return in_buckets(encoded, policy, problem.subjects, problem.draws)
    found, n_sampled = _grouped(problem, seed=seed, stages=stages)
    with stages("recode"):
        return outcome(
            publish(encoded, policy, found),
            policy,
            is_limited=problem.atoms is None,  # rows that are in no atom are left out anyway
            n_sampled=n_sampled,
            population=problem.population,
        )


def _grouped(problem: Problem, *, seed: int, stages: Stages) -> tuple[Assignment, int]:
    """Return the groups of all rows, and the number of suppressed rows outside the budget."""
    encoded, policy, subjects = problem.encoded, problem.policy, problem.subjects
    if problem.atoms is not None:
        return _of_atoms(problem, problem.atoms, stages=stages), 0
    if subjects is None:
        population = problem.population
        return search_rows(encoded, policy, seed=seed, stages=stages, population=population), 0
    if policy.rows_per_subject is None:
        return _of_persons(encoded, policy, subjects, seed=seed, stages=stages), 0
    assert problem.draws is not None  # noqa: S101 - they are drawn for such a policy
    place = places(subjects, problem.draws[:, 0])
    return _by_number(problem, subjects, place, seed=seed, stages=stages)


def _of_persons(
    encoded: EncodedTable, policy: Policy, subjects: NDArray[np.int32], *, seed: int, stages: Stages
) -> Assignment:
    """Group persons, one profile each; every model holds for persons and for rows.

    If the rows of a person differ in a sensitive column, only models with ``of_persons``
    (``dbanon.models.base``) are safe; others raise Unsatisfiable.
    """
    persons = Persons(encoded, policy, subjects)
    requirement, by_profile = requirement_of(encoded, policy), persons.by_profile
    found = search_rows(profiles(encoded, subjects), by_profile, seed=seed, stages=stages)
    found = Assignment(found.group[subjects], found.n_groups)
    found = persons.merged(found, requirement)
    require_within(found, requirement)
    values, first = published_values(encoded, found), persons.first
    of_persons = Assignment(found.group[first], found.n_groups)
    published = publish(encoded.take(first), policy, of_persons, values=values)
    certify(published, by_profile, None, budget=len(first))
    return found


def _by_number(
    problem: Problem,
    subjects: NDArray[np.int32],
    place: NDArray[np.int64],
    *,
    seed: int,
    stages: Stages,
) -> tuple[Assignment, int]:
    """Group persons with the same number of rows separately, or suppress rows that too few share.

    Such persons of a class are interchangeable, so each class has k of them. place: (n,) rank of
    each row among the rows of its person; the first are kept.
    """
    encoded, policy, n_rows = problem.encoded, problem.policy, problem.encoded.n_rows
    search = partial(search_rows, seed=seed, stages=stages)
    if policy.rows_per_subject == 1:
        rows = np.flatnonzero(place == 0)
        found = search(encoded.take(rows), policy, population=problem.population)
        return Assignment.of_parts(n_rows, [(rows, found)]), n_rows - len(rows)
    require_safe(encoded, policy, subjects)
    level_of, n_lost, rest = levels(encoded, policy, subjects, place, least=problem.least)
    parts = []
    for number in np.unique(level_of[level_of > 0]):
        rows = np.flatnonzero((level_of[subjects] == number) & (place < number))
        own = timed(rest, share=float((level_of == number).mean()))
        part = encoded.take(rows)
        found = _of_persons(part, own, dense(subjects[rows]), seed=seed, stages=stages)
        certify(publish(part, own, found), own, None, budget=budget_of(own, len(rows)))
        parts.append((rows, found))
    return Assignment.of_parts(n_rows, parts), n_rows - n_lost - int(level_of.sum())


def _of_atoms(problem: Problem, atoms: NDArray[np.int32], *, stages: Stages) -> Assignment:
    """Merge atoms until all meet the policy; suppress those that differ in a kept column."""
    encoded, subjects = problem.encoded, problem.subjects
    whole = _apart(encoded, atoms)
    parts = []
    for rows in _strata(encoded, whole):
        own = None if subjects is None else dense(subjects[rows])
        part = _Atoms(encoded.take(rows), problem.policy, own, problem.population)
        parts.append((rows, part.merged(whole[rows], stages)))
    return Assignment.of_parts(encoded.n_rows, parts)


def _apart(encoded: EncodedTable, atoms: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the atoms without those whose rows differ in a kept column."""
    found, shown = atoms.copy(), np.flatnonzero(atoms >= 0)
    if not len(shown):
        raise Unsatisfiable("nobody of those who were published before can be published again")
    _, first, of_row = np.unique(atoms[shown], return_index=True, return_inverse=True)
    for column in encoded.kept_columns:
        codes = column.codes[shown]
        differ = np.unique(of_row[codes != codes[first][of_row]])
        found[shown[np.isin(of_row, differ)]] = -1
    return found


def _strata(encoded: EncodedTable, atoms: NDArray[np.int32]) -> list[NDArray[np.int64]]:
    """Return the rows of atoms, separated by their values in kept columns."""
    shown = np.flatnonzero(atoms >= 0)
    return [shown[rows] for rows in strata(encoded.take(shown))]


class _Atoms:
    """Rows of atoms, with the requirement of their classes."""

    def __init__(
        self,
        encoded: EncodedTable,
        policy: Policy,
        subjects: NDArray[np.int32] | None,
        population: Population | None,
    ) -> None:
        self._encoded, self._policy, self._population = encoded, policy, population
        self._requirement = _requirement(encoded, policy)
        self._of_persons = None
        if subjects is not None:
            persons = Persons(encoded, policy, subjects)
            self._of_persons = persons.judge(self._requirement, lambda *a: _requirement(*a).demands)
        rows_in_reach(encoded, self._requirement)

    def merged(self, atoms: NDArray[np.int32], stages: Stages) -> Assignment:
        """Merge atoms until all meet every demand, each time at least cost."""
        units = numbered(atoms)
        found = self._enforced(units, stages)
        found = moved(self._encoded, units, found, self._requirement, stages=stages)
        if self._of_persons is not None:
            msg = "all persons as one class do not meet what is asked of them"
            found = merged(
                self._encoded,
                found,
                self._of_persons,
                then=lambda found: self._enforced(found, stages),
                impossible=lambda _: Unsatisfiable(msg),
            )
        if self._population is None:
            return found
        publish = partial(published_values, self._encoded)
        return cover(self._encoded, found, self._policy, self._population, publish=publish)

    def _enforced(self, found: Assignment, stages: Stages) -> Assignment:
        return enforce(self._encoded, found, self._requirement, stages=stages, regroup=False)


def _requirement(encoded: EncodedTable, policy: Policy) -> Requirement:
    """Return the requirement with everything but k as demands and without a budget."""
    demands = [d for d in all_demands(encoded, policy) if d.spec.name != K_ANONYMITY]
    asked = requirement_of(encoded, policy)
    demands += linked_demands(encoded, policy)
    return replace(asked, l=1, max_suppressed=0.0, demands=tuple(demands))


def unsafe(
    encoded: EncodedTable,
    policy: Policy,
    atoms: NDArray[np.int32],
    *,
    columns: Collection[str],
    least: int,
    subjects: NDArray[np.int32] | None = None,
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return the atoms that must not be published with columns that no release has shown of them.

    Values in both releases separate the rows of an atom from those it is merged with. So an atom
    needs ``least`` persons and must meet the models of these columns alone. atoms: as in
    ``Problem``. Returns two (a,) masks: atoms that are too small (readers know this), and atoms
    whose values fail the models (they do not).
    """
    rows = np.flatnonzero(atoms >= 0)
    groups = atoms[rows]
    owners = rows.astype(np.int32) if subjects is None else subjects[rows]
    small: NDArray[np.bool_] = persons_of(groups, owners) < least
    bad = np.zeros_like(small)
    demands = [
        demand
        for demand in all_demands(encoded, policy)
        if demand.column is not None
        and encoded.sensitive_names[demand.column] in columns
        and not demand.model.of_whole
    ]
    for demand, whole in zip(demands, wholes(encoded, demands, rows), strict=True):
        bad |= ~meets(encoded, demand, rows, groups, whole=whole)
        measure = demand.model.of_persons
        if subjects is not None and measure is not None:
            values = encoded.sensitive[rows, demand.column or 0]
            bad |= ~demand.model.meets(achieved_by_persons(measure, groups, owners, values))
    return small, bad
