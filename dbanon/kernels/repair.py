"""Merging groups that lack distinct sensitive values."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dbanon.kernels.boxes import box_cost, group_boxes
from dbanon.kernels.compile import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

NONE = -1


class Groups(NamedTuple):
    """Groups as linked lists of rows, with their boxes.

    lo, hi: (g, d); size: (g,), 0 once merged into another; cost: (g,); head, tail: (g,) first and
    last row; following: (n,) the next row of the same group, -1 after the last.
    """

    rows: NDArray[np.int32]
    flat: NDArray[np.float64]
    layout: NDArray[np.int64]
    lo: NDArray[np.int32]
    hi: NDArray[np.int32]
    size: NDArray[np.int64]
    cost: NDArray[np.float64]
    head: NDArray[np.int64]
    tail: NDArray[np.int64]
    following: NDArray[np.int64]
    seen: NDArray[np.int64]


@kernel
def _union_cost(a: int, b: int, g: Groups) -> float:
    total = 0.0
    for column in range(g.layout.shape[0]):
        lo, hi = min(g.lo[a, column], g.lo[b, column]), max(g.hi[a, column], g.hi[b, column])
        total += box_cost(g.flat, g.layout, column, lo, hi)
    return total


@kernel
def _is_diverse(a: int, b: int, l: int, g: Groups) -> bool:
    """Return whether two groups (or one, given twice) have l values of each sensitive column."""
    for column in range(g.layout.shape[0], g.rows.shape[1]):
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
    best, fallback = NONE, NONE
    best_rise, fallback_rise = np.inf, np.inf
    for b in range(g.size.shape[0]):
        if b == a or g.size[b] == 0:
            continue
        union = (g.size[a] + g.size[b]) * _union_cost(a, b, g)
        rise = union - g.size[a] * g.cost[a] - g.size[b] * g.cost[b]
        if rise < fallback_rise:
            fallback, fallback_rise = b, rise
        if rise < best_rise and _is_diverse(a, b, l, g):
            best, best_rise = b, rise
    return best if best != NONE else fallback


@kernel
def _absorb(a: int, b: int, g: Groups) -> None:
    """Move all rows of group b to group a."""
    g.cost[a] = _union_cost(a, b, g)
    g.lo[a] = np.minimum(g.lo[a], g.lo[b])
    g.hi[a] = np.maximum(g.hi[a], g.hi[b])
    g.size[a] += g.size[b]
    g.size[b] = 0
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
    g = Groups(rows, flat, layout, lo, hi, size, np.empty(n_groups), head, tail, following, seen)
    for a in range(n_groups):
        g.cost[a] = _union_cost(a, a, g)
    for a in range(n_groups):
        while g.size[a] > 0 and not _is_diverse(a, a, l, g):
            b = _partner(a, l, g)
            if b == NONE:
                break
            _absorb(a, b, g)
    return _number(g)


@kernel
def _number(g: Groups) -> tuple[NDArray[np.int32], int]:
    group = np.empty(g.rows.shape[0], np.int32)
    n_groups = 0
    for a in range(g.size.shape[0]):
        if g.size[a] == 0:
            continue
        row = g.head[a]
        while row != NONE:
            group[row] = n_groups
            row = g.following[row]
        n_groups += 1
    return group, n_groups
