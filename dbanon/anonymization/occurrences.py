"""Grouping persons by how many rows each has, so that who knows that number knows no more."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.loss.metrics import publication, report
from dbanon.anonymization.parameters import timed
from dbanon.anonymization.persons import is_possible, require_safe, run_by_subject
from dbanon.anonymization.pipeline import Outcome, certify, check_feasible, published_values, run
from dbanon.anonymization.registry import METRICS
from dbanon.domain.assignment import Assignment

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.anonymization.encoding.population import Population
    from dbanon.domain.assignment import EncodedTable
    from dbanon.domain.policy import Policy
    from dbanon.domain.progress import Stages


def run_by_occurrence(
    encoded: EncodedTable,
    policy: Policy,
    subjects: NDArray[np.int32],
    draws: NDArray[np.uint64],
    *,
    seed: int,
    stages: Stages,
    population: Population | None = None,
) -> Outcome:
    """Group persons with equally many rows apart, and leave out rows where too few have so many.

    subjects: (n,) the person of each row, 0..p-1 without gaps; draws: (n,) the rows of a person
    with the least are kept. Within a class, persons with equally many rows can be exchanged for
    each other and nobody would see it: so there are k of them, and every model holds of them. With
    one row a person, persons are rows, whose values may differ, and all models can be asked.
    """
    place = places(subjects, draws)
    group = np.full(encoded.n_rows, -1, np.int32)
    if policy.rows_per_subject == 1:
        kept = np.flatnonzero(place == 0)
        part = encoded.take(kept)
        found = run(part, policy, seed=seed, stages=stages, population=population)
        group[kept] = found.assignment.group
        assignment = Assignment(group, found.assignment.n_groups)
        return _outcome(encoded, policy, assignment, population, n_kept=len(kept))
    require_safe(encoded, policy, subjects)
    level = _levels(encoded, policy, subjects, place)
    n_groups = 0
    for number in np.unique(level[level > 0]):
        rows = np.flatnonzero((level[subjects] == number) & (place < number))
        part_policy = timed(policy, share=float((level == number).mean()))
        part = encoded.take(rows)
        found = run_by_subject(part, part_policy, _dense(subjects[rows]), seed=seed, stages=stages)
        own = found.assignment.group
        group[rows] = np.where(own < 0, own, own + n_groups)
        n_groups += found.assignment.n_groups
    kept_rows = int((place < level[subjects]).sum())
    return _outcome(encoded, policy, Assignment(group, n_groups), None, n_kept=kept_rows)


def places(subjects: NDArray[np.int32], draws: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the place of each row among those of its person, by what was drawn."""
    order = np.lexsort((draws, subjects))
    size = np.bincount(subjects)
    place = np.empty(len(subjects), np.int64)
    place[order] = np.arange(len(subjects)) - np.repeat(np.cumsum(size) - size, size)
    return place


def _levels(
    encoded: EncodedTable,
    policy: Policy,
    subjects: NDArray[np.int32],
    place: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Return how many rows each person keeps, (p,).

    All that it has, up to the policy's number, where the persons with so many meet the policy among
    themselves. Otherwise they keep as many as those who have the next fewer. The last are left out
    if they fit into the budget; otherwise the others keep as few as they do.
    """
    times = np.bincount(subjects)
    most = policy.rows_per_subject
    level = np.minimum(times, most) if isinstance(most, int) else times.copy()

    def holds(persons: NDArray[np.bool_]) -> bool:
        rows = np.flatnonzero(persons[subjects] & (place < level[subjects]))
        return is_possible(encoded.take(rows), policy, _dense(subjects[rows]))

    waiting = np.zeros(len(level), np.bool_)
    for number in np.unique(level)[::-1]:
        waiting |= level == number
        level[waiting] = number
        if holds(waiting):
            waiting[:] = False
    few = int((waiting[subjects] & (place < level[subjects])).sum())
    if few <= policy.max_suppressed * len(subjects):
        level[waiting] = 0
        return level
    for number in np.unique(level[~waiting]):
        if not waiting.any() or holds(waiting):
            break
        waiting |= level == number
        level[waiting] = level.min()
    return level


def _dense(subjects: NDArray[np.int32]) -> NDArray[np.int32]:
    return np.unique(subjects, return_inverse=True)[1].astype(np.int32)


def _outcome(
    encoded: EncodedTable,
    policy: Policy,
    assignment: Assignment,
    population: Population | None,
    *,
    n_kept: int,
) -> Outcome:
    requirement = check_feasible(encoded, policy)
    n_sampled = encoded.n_rows - n_kept
    values = published_values(encoded, assignment)
    published = publication(encoded, assignment, values, k=policy.k)
    certify(published, policy, population, budget=requirement.budget(n_kept) + n_sampled)
    loss = replace(
        report(published, METRICS),
        sensitive_aware=requirement.sensitive_aware,
        n_sampled=n_sampled,
    )
    return Outcome(assignment, values, loss)
