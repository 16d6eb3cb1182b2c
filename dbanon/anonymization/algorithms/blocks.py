"""Running an algorithm on one piece of the table after the other."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.adjusting.cutting import cut
from dbanon.anonymization.interfaces import Requirement
from dbanon.anonymization.loss.costs import column_costs, pack
from dbanon.domain.assignment import Assignment
from dbanon.domain.errors import Unsatisfiable

if TYPE_CHECKING:
    from collections.abc import Callable

    from dbanon.anonymization.interfaces import Algorithm
    from dbanon.domain.assignment import EncodedTable
    from dbanon.domain.progress import Stages
    from dbanon.kernels.arrays import Int64s


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
