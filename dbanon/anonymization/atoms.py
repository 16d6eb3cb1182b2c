"""Groups that keep atoms whole: rows that earlier releases showed together."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.adjusting.feasible import rows_in_reach
from dbanon.anonymization.adjusting.merging import merge_with_nearest, numbered
from dbanon.anonymization.adjusting.moving import moved
from dbanon.anonymization.adjusting.population_merging import cover
from dbanon.anonymization.adjusting.repair import enforce, failing
from dbanon.anonymization.loss.metrics import publication, report
from dbanon.anonymization.persons import Persons, of_profiles, require_safe
from dbanon.anonymization.pipeline import Outcome, certify, check_feasible, published_values
from dbanon.anonymization.registry import METRICS
from dbanon.anonymization.strata import kept_columns
from dbanon.domain.assignment import Assignment
from dbanon.domain.errors import Unsatisfiable
from dbanon.domain.policy import K_ANONYMITY
from dbanon.models.demands import all_demands, linked_demands, meets, wholes
from dbanon.models.persons import achieved_by_persons, persons_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from numpy.typing import NDArray

    from dbanon.anonymization.encoding.population import Population
    from dbanon.anonymization.interfaces import Requirement
    from dbanon.domain.assignment import EncodedTable
    from dbanon.domain.policy import Policy
    from dbanon.domain.progress import Stages


def run_by_atoms(
    encoded: EncodedTable,
    policy: Policy,
    atoms: NDArray[np.int32],
    *,
    subjects: NDArray[np.int32] | None = None,
    population: Population | None = None,
    stages: Stages,
) -> Outcome:
    """Merge atoms until all meet the policy, and leave out the rows that are in none.

    atoms: (n,) the atom of each row, numbered without gaps, below 0 for none; subjects: (n,) the
    person of each row, where some have several; all rows of a person are in one atom. Atoms whose
    rows differ in a column that is published as it is are left out. Raises Unsatisfiable when all
    atoms together do not meet the policy.
    """
    found = _apart(encoded, atoms)
    n_groups = 0
    for rows in _strata(encoded, found):
        own = None if subjects is None else _dense(subjects[rows])
        merged = _Atoms(encoded.take(rows), policy, own, population).merged(found[rows], stages)
        found[rows] = merged.group + n_groups
        n_groups += merged.n_groups
    return _outcome(encoded, policy, Assignment(found, n_groups), population)


def _dense(subjects: NDArray[np.int32]) -> NDArray[np.int32]:
    return np.unique(subjects, return_inverse=True)[1].astype(np.int32)


def _apart(encoded: EncodedTable, atoms: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the atoms without those whose rows differ in a column that is published as it is."""
    found, shown = atoms.copy(), np.flatnonzero(atoms >= 0)
    if not len(shown):
        raise Unsatisfiable("nobody of those who were published before can be published again")
    _, first, of_row = np.unique(atoms[shown], return_index=True, return_inverse=True)
    for column in kept_columns(encoded):
        codes = column.codes[shown]
        differ = np.unique(of_row[codes != codes[first][of_row]])
        found[shown[np.isin(of_row, differ)]] = -1
    return found


def _strata(encoded: EncodedTable, atoms: NDArray[np.int32]) -> list[NDArray[np.int64]]:
    """Return the rows of atoms, those apart that differ in a column that is published as it is."""
    shown = np.flatnonzero(atoms >= 0)
    kept = kept_columns(encoded)
    if not kept:
        return [shown]
    codes = np.column_stack([column.codes[shown] for column in kept])
    of_row = np.unique(codes, axis=0, return_inverse=True)[1].ravel()
    order = np.argsort(of_row, kind="stable")
    return np.split(shown[order], np.cumsum(np.bincount(of_row))[:-1])


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
        self._of_persons = None if subjects is None else _by_persons(encoded, policy, subjects)
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
    asked = check_feasible(encoded, policy)
    demands += linked_demands(encoded, policy)
    return replace(asked, l=1, max_suppressed=0.0, demands=tuple(demands))


def _by_persons(
    encoded: EncodedTable, policy: Policy, subjects: NDArray[np.int32]
) -> Callable[[Assignment], NDArray[np.bool_]]:
    """Return what tells which groups do not meet what is asked of persons."""
    varying = require_safe(encoded, policy, subjects)
    persons = Persons(encoded, policy, subjects, varying)
    first = np.unique(subjects, return_index=True)[1]
    one_each = encoded.take(first)
    profiled = replace(policy, models=tuple(of_profiles(policy, encoded, varying)))
    asked = replace(_requirement(encoded, policy), demands=_requirement(one_each, profiled).demands)

    def fail(found: Assignment) -> NDArray[np.bool_]:
        groups = Assignment(found.group[first], found.n_groups)
        return failing(one_each, groups, asked) | persons.failing(found)[0]

    return fail


def _outcome(
    encoded: EncodedTable, policy: Policy, assignment: Assignment, population: Population | None
) -> Outcome:
    """Verify and measure what is published."""
    values = published_values(encoded, assignment)
    published = publication(encoded, assignment, values, k=policy.k)
    certify(published, policy, population, budget=encoded.n_rows)
    loss = report(published, METRICS)
    aware = check_feasible(encoded, policy).sensitive_aware
    return Outcome(assignment, values, replace(loss, sensitive_aware=aware))


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
    the models of these columns by itself. atoms: as for ``run_by_atoms``; (a,) each: those that are
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
