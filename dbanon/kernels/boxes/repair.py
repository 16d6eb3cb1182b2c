"""Merging groups that lack distinct sensitive values."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dbanon.kernels.boxes.costs import box_costs, group_boxes
from dbanon.kernels.boxes.merges import Boxes, union_rises
from dbanon.kernels.compile import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

NONE = -1


class Groups(NamedTuple):
    """Groups as linked lists of rows, with their boxes.

    boxes: of the groups, size 0 once merged into another; head, tail: (g,) first and last row;
    following: (n,) the next row of the same group, -1 after the last.
    """

    rows: NDArray[np.int32]
    boxes: Boxes
    head: NDArray[np.int64]
    tail: NDArray[np.int64]
    following: NDArray[np.int64]
    seen: NDArray[np.int64]


@kernel
def _is_diverse(a: int, b: int, l: int, g: Groups) -> bool:
    """Return whether two groups (or one, given twice) have l values of each sensitive column."""
    for column in range(g.boxes.lo.shape[1], g.rows.shape[1]):
        g.seen[0] += 1
        met = 0
        for part in (a, b):
            row = g.head[part]
            while row != NONE and met < l:
                value = g.rows[row, column] + 1
                met += g.seen[value] != g.seen[0]
                g.seen[value] = g.seen[0]
                row = g.following[row]
        if met < l:
            return False
    return True


@kernel
def _partner(a: int, l: int, g: Groups) -> int:
    """Return the group whose union with ``a`` costs least among those that make it diverse.

    When there is none, the one of least cost. Ties: lowest group.
    """
    boxes = g.boxes
    rises = union_rises(boxes.lo[a], boxes.hi[a], boxes.size[a], boxes)
    rises[a] = np.inf
    best, fallback = NONE, NONE
    best_rise, fallback_rise = np.inf, np.inf
    for b in range(rises.shape[0]):
        if rises[b] < fallback_rise:
            fallback, fallback_rise = b, rises[b]
        if rises[b] < best_rise and _is_diverse(a, b, l, g):
            best, best_rise = b, rises[b]
    return best if best != NONE else fallback


@kernel
def _sums(costs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the sum of each row, added up column by column as everywhere else."""
    total = np.zeros(costs.shape[0])
    for column in range(costs.shape[1]):
        total += costs[:, column]
    return total


@kernel
def _absorb(a: int, b: int, g: Groups) -> None:
    """Move all rows of group b to group a."""
    boxes = g.boxes
    boxes.lo[a] = np.minimum(boxes.lo[a], boxes.lo[b])
    boxes.hi[a] = np.maximum(boxes.hi[a], boxes.hi[b])
    boxes.size[a] += boxes.size[b]
    boxes.size[b] = 0
    costs = box_costs(boxes.flat, boxes.layout, boxes.lo[a : a + 1], boxes.hi[a : a + 1])
    boxes.cost[a] = _sums(costs)[0]
    g.following[g.tail[a]] = g.head[b]
    g.tail[a] = g.tail[b]


@kernel
def merge_groups(
    rows: NDArray[np.int32],
    group: NDArray[np.int32],
    n_groups: int,
    flat: NDArray[np.float64],
    layout: NDArray[np.int64],
    l: int,
) -> tuple[NDArray[np.int32], int]:
    """Merge every group that lacks l values of a sensitive column until none does or one is left.

    rows: (n, d + s) codes of the d columns and of the s sensitive columns; group: (n,) without
    suppressed rows. Return the new group of each row and how many there are. O(merges * groups *
    d), and the look at a union's values where it would be the cheapest.
    """
    n_rows, d = rows.shape[0], layout.shape[0]
    lo, hi, size = group_boxes(rows[:, :d], group, n_groups)
    seen = np.zeros(rows[:, d:].max() + 2, np.int64)
    head, tail = np.full(n_groups, NONE), np.full(n_groups, NONE)
    following = np.full(n_rows, NONE)
    for row in range(n_rows - 1, -1, -1):
        a = group[row]
        following[row] = head[a]
        head[a] = row
        if tail[a] == NONE:
            tail[a] = row
    cost = _sums(box_costs(flat, layout, lo, hi))
    boxes = Boxes(lo, hi, size, cost, flat, layout)
    g = Groups(rows, boxes, head, tail, following, seen)
    for a in range(n_groups):
        while size[a] > 0 and not _is_diverse(a, a, l, g):
            b = _partner(a, l, g)
            if b == NONE:
                break
            _absorb(a, b, g)
    return _number(g)


@kernel
def _number(g: Groups) -> tuple[NDArray[np.int32], int]:
    group = np.empty(g.rows.shape[0], np.int32)
    n_groups = 0
    for a in range(g.boxes.size.shape[0]):
        if g.boxes.size[a] == 0:
            continue
        row = g.head[a]
        while row != NONE:
            group[row] = n_groups
            row = g.following[row]
        n_groups += 1
    return group, n_groups
