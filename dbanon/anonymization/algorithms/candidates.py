"""Several groupings of the same rows, of which the one that loses least is published."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dbanon.anonymization.adjusting.finishing import finish
from dbanon.anonymization.algorithms.clustering.growth import KMember
from dbanon.anonymization.algorithms.lattice.full_domain import FullDomain
from dbanon.anonymization.algorithms.lattice.nodes import lattice
from dbanon.anonymization.algorithms.partitioning.mondrian import Mondrian
from dbanon.anonymization.auto.plans import SMALL
from dbanon.domain.errors import Unsatisfiable
from dbanon.domain.progress import Stages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dbanon.anonymization.auto.algorithm import Auto
    from dbanon.anonymization.interfaces import Algorithm, Requirement
    from dbanon.domain.assignment import Assignment, EncodedTable

_PAIRS = 200_000_000  # rows times rows times columns
_COUNTED = 1_000_000  # nodes times distinct rows, a node taking as long as so many rows
_OF_A_NODE = 100


def least(
    auto: Auto,
    table: EncodedTable,
    requirement: Requirement,
    *,
    price: Callable[[Assignment], tuple[bool, float]],
    budget: int,
    seed: int,
    stages: Stages,
) -> Assignment:
    """Return the groups that lose least once they are published, of those that ``auto`` proposes.

    Of few rows, the groups of algorithms that it is held against are among them, and where rows may
    be left out, all groups with none left out, too. Beyond a time limit, and once ``stages`` is
    stopped, there are no others. price: whether groups fail the policy as they are published, and
    what they lose then. Raises Unsatisfiable when nothing comes of any of them.
    """
    found, failed, heard = [], [], stages
    candidates = _candidates(auto, table, requirement, budget=budget, seed=seed, stages=stages)
    for assignment, allowed in candidates:
        try:
            found.append(finish(table, assignment, requirement, budget=allowed, stages=heard))
        except Unsatisfiable as error:
            failed.append(error)
        heard = Stages()  # of what else is tried nobody is told
    if not found:
        raise failed[0]
    return min(found, key=price) if len(found) > 1 else found[0]


def _candidates(
    auto: Auto,
    table: EncodedTable,
    requirement: Requirement,
    *,
    budget: int,
    seed: int,
    stages: Stages,
) -> Iterator[tuple[Assignment, int]]:
    """Yield groups, and how many rows may be left out of them, those of ``auto`` first.

    Of many rows, groups that no model changes lose what the search has counted. Where rare values
    are to go, what is lost does not decide.
    """
    own = auto.proposals(table, requirement, seed=seed)
    yield own[0], budget
    is_counted = table.n_rows > SMALL and not requirement.demands
    if is_counted or any(column.rule.rare is not None for column in table.quasi):
        return
    for assignment in own:
        if stages.stopped:
            return
        if assignment is not own[0]:
            yield assignment, budget
        if budget > 0 and assignment.n_suppressed == 0:
            yield assignment, 0
    if auto.time_limit is not None:
        return
    for peer in _peers(table):
        for allowed in {budget, 0}:
            asked = requirement if allowed else replace(requirement, max_suppressed=0.0)
            try:
                yield peer.assign(table, asked, seed=seed), allowed
            except Unsatisfiable:  # then it is none
                continue


def _peers(table: EncodedTable) -> Iterator[Algorithm]:
    """Yield the algorithms that a search is held against, as far as they take next to no time."""
    if table.n_rows > SMALL or table.n_rows**2 * len(table.quasi) > _PAIRS:
        return
    yield from (Mondrian(), KMember())
    levels = lattice(table)
    if levels.n_nodes * (levels.base.n_classes + _OF_A_NODE) <= _COUNTED:
        yield FullDomain()
