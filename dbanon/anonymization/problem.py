"""A partition that is searched for: rows or persons, and what their classes have to meet."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.adjusting.feasible import rows_in_reach
from dbanon.anonymization.adjusting.merging import merge_with_nearest, moved, numbered
from dbanon.anonymization.adjusting.population_merging import cover
from dbanon.anonymization.adjusting.repair import enforce
from dbanon.anonymization.buckets import in_buckets
from dbanon.anonymization.interfaces import timed
from dbanon.anonymization.outcome import (
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
from dbanon.domain.assignment import Assignment
from dbanon.domain.errors import Unsatisfiable
from dbanon.domain.policy import K_ANONYMITY
from dbanon.models.demands import all_demands, linked_demands, meets, wholes
from dbanon.models.persons import achieved_by_persons, persons_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from numpy.typing import NDArray

    from dbanon.anonymization.encoding.population import Population
    from dbanon.anonymization.interfaces import Requirement
    from dbanon.anonymization.outcome import Outcome
    from dbanon.domain.assignment import EncodedTable
    from dbanon.domain.policy import Policy
    from dbanon.domain.progress import Stages
    from dbanon.models.base import Demand


@dataclass(frozen=True, eq=False, slots=True)
class Problem:
    """Rows to group, what must hold of their classes, and which of them stay together.

    encoded: the rows; policy: what must hold, and how many rows of a person are published;
    subjects: (n,) int32, the person of each row, 0..p-1 without gaps, None where each row is one;
    draws: (n, c) uint64, secret random numbers by which rows are chosen and persons dealt;
    atoms: (n,) int32, sets of rows of which each stays whole, numbered without gaps, below 0 for
    rows that are left out; all rows of a person are in one; population: what the policy's models
    of a population count.
    """

    encoded: EncodedTable
    policy: Policy
    subjects: NDArray[np.int32] | None = None
    draws: NDArray[np.uint64] | None = None
    atoms: NDArray[np.int32] | None = None
    population: Population | None = None


def solve(problem: Problem, *, seed: int, stages: Stages) -> Outcome:
    """Group the rows by their units, and return what is published, certified and measured.

    Raises PolicyError for what the policy has wrong, Unsatisfiable when no partition of these rows
    meets it, KeyboardInterrupt when ``stages`` is stopped before there is a partition. Nothing is
    returned that does not meet every model.
    """
    encoded, policy = problem.encoded, problem.policy
    if problem.atoms is None and policy.anatomy:
        assert problem.draws is not None  # noqa: S101 - they are drawn for such a policy
        with stages("cluster"):
            return in_buckets(encoded, policy, problem.subjects, problem.draws)
    found, n_sampled = _grouped(problem, seed=seed, stages=stages)
    with stages("recode"):
        requirement = requirement_of(encoded, policy)
        if problem.atoms is not None:  # no budget limits the rows that are in none
            requirement = replace(requirement, max_suppressed=1.0)
        return outcome(
            publish(encoded, policy, found),
            policy,
            requirement=requirement,
            n_sampled=n_sampled,
            population=problem.population,
        )


def _grouped(problem: Problem, *, seed: int, stages: Stages) -> tuple[Assignment, int]:
    """Return the groups of all rows, and how many of these no group takes, of no budget."""
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
    encoded: EncodedTable,
    policy: Policy,
    subjects: NDArray[np.int32],
    *,
    seed: int,
    stages: Stages,
) -> Assignment:
    """Group persons, one profile each, and let all rows of a person inherit its group.

    k counts persons, and every model holds of persons, each with its one value, as well as of rows,
    which is what readers can repeat. Where rows of a person differ in a quasi-identifier, all its
    values count as known of the person: what is published of a class holds of every row of everyone
    in it. Where they differ in a sensitive column, only models that are safe then can be asked of
    it (``of_persons`` of ``dbanon.models.base``). Raises Unsatisfiable for other models.
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
    """Group persons with equally many rows apart, and leave out rows where too few have so many.

    place: of each row among those of its person, of which the first are kept. Within a class,
    persons with equally many rows can be exchanged for each other and nobody would see it: so there
    are k of them, and every model holds of them. With one row a person, persons are rows, whose
    values may differ, and all models can be asked.
    """
    encoded, policy, n_rows = problem.encoded, problem.policy, problem.encoded.n_rows
    search = partial(search_rows, seed=seed, stages=stages)
    if policy.rows_per_subject == 1:
        rows = np.flatnonzero(place == 0)
        found = search(encoded.take(rows), policy, population=problem.population)
        return Assignment.of_parts(n_rows, [(rows, found)]), n_rows - len(rows)
    require_safe(encoded, policy, subjects)
    level_of = levels(encoded, policy, subjects, place)
    parts = []
    for number in np.unique(level_of[level_of > 0]):
        rows = np.flatnonzero((level_of[subjects] == number) & (place < number))
        own = timed(policy, share=float((level_of == number).mean()))
        part = encoded.take(rows)
        found = _of_persons(part, own, dense(subjects[rows]), seed=seed, stages=stages)
        budget = requirement_of(part, own).budget(len(rows))
        certify(publish(part, own, found), own, None, budget=budget)
        parts.append((rows, found))
    n_kept = int((place < level_of[subjects]).sum())
    return Assignment.of_parts(n_rows, parts), n_rows - n_kept


def _of_atoms(problem: Problem, atoms: NDArray[np.int32], *, stages: Stages) -> Assignment:
    """Merge atoms until all meet the policy, and leave out the rows that are in none.

    Atoms whose rows differ in a column that is published as it is are left out. Raises
    Unsatisfiable when all atoms together do not meet the policy.
    """
    encoded, subjects = problem.encoded, problem.subjects
    whole = _apart(encoded, atoms)
    parts = []
    for rows in _strata(encoded, whole):
        own = None if subjects is None else dense(subjects[rows])
        part = _Atoms(encoded.take(rows), problem.policy, own, problem.population)
        parts.append((rows, part.merged(whole[rows], stages)))
    return Assignment.of_parts(encoded.n_rows, parts)


def _apart(encoded: EncodedTable, atoms: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the atoms without those whose rows differ in a column that is published as it is."""
    found, shown = atoms.copy(), np.flatnonzero(atoms >= 0)
    if not len(shown):
        raise Unsatisfiable("nobody of those who were published before can be published again")
    _, first, of_row = np.unique(atoms[shown], return_index=True, return_inverse=True)
    for column in encoded.kept:
        codes = column.codes[shown]
        differ = np.unique(of_row[codes != codes[first][of_row]])
        found[shown[np.isin(of_row, differ)]] = -1
    return found


def _strata(encoded: EncodedTable, atoms: NDArray[np.int32]) -> list[NDArray[np.int64]]:
    """Return the rows of atoms, those apart that differ in a column that is published as it is."""
    shown = np.flatnonzero(atoms >= 0)
    return [shown[rows] for rows in strata(encoded.take(shown))]


class _Atoms:
    """Rows of atoms, and what every class of them is to meet."""

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
            self._of_persons = persons.judge(self._requirement, _demands)
        rows_in_reach(encoded, self._requirement)

    def merged(self, atoms: NDArray[np.int32], stages: Stages) -> Assignment:
        """Merge atoms until all meet every demand, each with what helps at least cost."""
        units = numbered(atoms)
        found = self._enforced(units, stages)
        found = moved(self._encoded, units, found, self._requirement, stages=stages)
        while True:
            bad = np.zeros(0, np.bool_) if self._of_persons is None else self._of_persons(found)
            if not bad.any():
                break
            if found.n_groups == 1:
                raise Unsatisfiable("all persons as one class do not meet what is asked of them")
            found = self._enforced(merge_with_nearest(self._encoded, found, bad), stages)
        if self._population is None:
            return found
        publish = partial(published_values, self._encoded)
        return cover(self._encoded, found, self._policy, self._population, publish=publish)

    def _enforced(self, found: Assignment, stages: Stages) -> Assignment:
        return enforce(self._encoded, found, self._requirement, stages=stages, regroup=False)


def _requirement(encoded: EncodedTable, policy: Policy) -> Requirement:
    """Return what classes are to meet, all of it as demands, so that none is left out."""
    demands = [d for d in all_demands(encoded, policy) if d.spec.name != K_ANONYMITY]
    asked = requirement_of(encoded, policy)
    demands += linked_demands(encoded, policy)
    return replace(asked, l=1, max_suppressed=0.0, demands=tuple(demands))


def _demands(encoded: EncodedTable, policy: Policy) -> tuple[Demand, ...]:
    return _requirement(encoded, policy).demands


def unsafe(
    encoded: EncodedTable,
    policy: Policy,
    atoms: NDArray[np.int32],
    *,
    columns: Collection[str],
    least: int,
    subjects: NDArray[np.int32] | None = None,
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which atoms are not to be shown with columns that no release showed of them.

    Whoever has the earlier releases can distinguish the rows of an atom from those that it is
    merged with, by the values that both show. So an atom has to have ``least`` persons, and to meet
    the models of these columns by itself. atoms: as for a ``Problem``; (a,) each: those that are
    too small, which readers know, and those whose values do not meet the models, which they do not.
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
