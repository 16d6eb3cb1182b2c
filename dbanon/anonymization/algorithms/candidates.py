"""Several groupings of the same rows, the cheapest of which is published, and of its pieces."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.adjusting.cutting import cut
from dbanon.anonymization.adjusting.repair import finish
from dbanon.anonymization.algorithms.clustering.growth import KMember
from dbanon.anonymization.algorithms.lattice.full_domain import FullDomain
from dbanon.anonymization.algorithms.lattice.nodes import lattice
from dbanon.anonymization.algorithms.partitioning.mondrian import Mondrian
from dbanon.anonymization.auto.plans import SMALL
from dbanon.anonymization.interfaces import Requirement
from dbanon.anonymization.loss.costs import column_costs, pack
from dbanon.domain.assignment import Assignment
from dbanon.domain.errors import Unsatisfiable
from dbanon.domain.progress import Stages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dbanon.anonymization.auto.algorithm import Auto
    from dbanon.anonymization.interfaces import Algorithm
    from dbanon.domain.assignment import EncodedTable
    from dbanon.kernels.arrays import Int64s


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


def assign_in_blocks(
    algorithm: Algorithm,
    table: EncodedTable,
    requirement: Requirement,
    *,
    block: int | None,
    seed: int,
    stages: Stages,
) -> Assignment:
    """Group the rows of each block apart; what compares all pairs takes n * block steps then.

    block: about how many rows each has, None for one block of all.

    The blocks are the groups of relaxed Mondrian with k = max(block // 2, k), so each meets the
    requirement and has fewer than ``block`` rows, or 2k, unless its rows are equal or diversity
    forbids to cut it. Rows that are equal stay one group, which costs nothing. Scales and trees
    are those of the whole table; only an algorithm that standardizes does so by the block. Rows
    that the algorithm leaves out stay out. When somebody asks to stop, Mondrian groups the blocks
    that are left. Only k and l are asked of the blocks, not what compares with the whole table.
    """
    if block is None or table.n_rows <= max(block, 2 * requirement.k - 1):
        return algorithm.assign(table, requirement, seed=seed)
    requirement = replace(requirement, demands=())
    wide = Requirement(max(block // 2, requirement.k), requirement.l)
    blocks = _members(cut(table, wide, relaxed=True))
    group = np.empty(table.n_rows, np.int32)
    n_groups, cost, grouped = 0, 0.0, 0
    for done, rows in enumerate(blocks, 1):
        assign = (
            partial(cut, relaxed=True) if stages.stopped else partial(algorithm.assign, seed=seed)
        )
        part = part_of(table, rows)
        found = _assign(assign, part, requirement, block=block)
        group[rows] = np.where(found.group < 0, found.group, found.group + n_groups)
        n_groups += found.n_groups
        cost += _cost(part, found)
        grouped += len(rows)
        stages.progress(done / len(blocks), cost / grouped)
    return Assignment(group, n_groups)


def _members(assignment: Assignment) -> list[Int64s]:
    """Return the rows of each group, in rising order."""
    order = np.argsort(assignment.group, kind="stable")
    sizes = np.bincount(assignment.group, minlength=assignment.n_groups)
    return np.split(order, np.cumsum(sizes)[:-1])


def part_of(table: EncodedTable, rows: Int64s) -> EncodedTable:
    """Return some rows with sensitive codes of their own: kernels allocate by the greatest."""
    part = table.take(rows)
    for i, codes in enumerate(part.sensitive.T):
        part.sensitive[:, i] = np.unique(codes, return_inverse=True)[1]
    return replace(part, domains=())


def _assign(
    assign: Callable[[EncodedTable, Requirement], Assignment],
    part: EncodedTable,
    requirement: Requirement,
    *,
    block: int,
) -> Assignment:
    if all((column.codes == column.codes[0]).all() for column in part.quasi):
        return Assignment(np.zeros(part.n_rows, np.int32), 1)
    try:
        return assign(part, requirement)
    except Unsatisfiable as error:
        if part.n_rows <= max(block, 2 * requirement.k - 1):
            raise
        msg = f"{error}: l = {requirement.l} keeps {part.n_rows:,} rows in one block"
        raise Unsatisfiable(msg, hint="--algorithm auto") from None


def _cost(part: EncodedTable, found: Assignment) -> float:
    """Return the certainty penalty of a block: the sum over rows of the mean over columns."""
    from dbanon.kernels.boxes.costs import box_costs, group_boxes

    lo, hi, size = group_boxes(part.codes, found.group, found.n_groups)
    costs = box_costs(*pack([column_costs(column) for column in part.quasi]), lo, hi)
    return float((costs.mean(axis=1) * size).sum()) + found.n_suppressed
