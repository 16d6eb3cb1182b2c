"""Merge groups that lack distinct sensitive values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dbanon.kernels.boxes.merges import NONE, groups_of, merge, numbered, union_rises
from dbanon.kernels.compile import kernel

if TYPE_CHECKING:
    from dbanon.kernels.arrays import Floats, Int32s, Int64s
    from dbanon.kernels.boxes.merges import Groups


@kernel
def _is_diverse(a: int, b: int, l: int, seen: Int64s, g: Groups) -> bool:
    """Return True if two groups (or one, twice) have l values of each sensitive column."""
    for column in range(g.boxes.lo.shape[1], g.rows.shape[1]):
        seen[0] += 1
        met = 0
        for part in (a, b):
            row = g.head[part]
            while row != NONE and met < l:
                value = g.rows[row, column] + 1
                met += seen[value] != seen[0]
                seen[value] = seen[0]
                row = g.following[row]
        if met < l:
            return False
    return True


@kernel
def _partner(a: int, l: int, seen: Int64s, g: Groups) -> int:
    """Return the group of least union cost with ``a``, if possible one that makes it diverse."""
    boxes = g.boxes
    rises = union_rises(boxes.lo[a], boxes.hi[a], boxes.size[a], boxes)
    rises[a] = np.inf
    best, fallback = NONE, NONE
    best_rise, fallback_rise = np.inf, np.inf
    for b in range(rises.shape[0]):
        if rises[b] < fallback_rise:
            fallback, fallback_rise = b, rises[b]
        if rises[b] < best_rise and _is_diverse(a, b, l, seen, g):
            best, best_rise = b, rises[b]
    return best if best != NONE else fallback


@kernel
def merge_groups(
    rows: Int32s, group: Int32s, n_groups: int, flat: Floats, layout: Int64s, l: int
) -> tuple[Int32s, int]:
    """Merge every group that lacks l values of a sensitive column until none does or one is left.

    rows: (n, d + s) codes of the d columns and the s sensitive columns; group: (n,) without
    suppressed rows. Returns the new group of each row and their number. O(merges * groups * d),
    plus checks of the cheapest unions.
    """
    g = groups_of(rows, group, n_groups, flat, layout)
    seen = np.zeros(rows[:, layout.shape[0] :].max() + 2, np.int64)
    for a in range(n_groups):
        while g.boxes.size[a] > 0 and not _is_diverse(a, a, l, seen, g):
            b = _partner(a, l, seen, g)
            if b == NONE:
                break
            merge(a, b, g)
    return numbered(g)
