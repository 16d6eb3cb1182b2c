"""Merge groups that lack distinct sensitive values."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dbanon.kernels.boxes.box_extension import cost_of
from dbanon.kernels.boxes.costs import box_cost
from dbanon.kernels.boxes.merges import (
    NONE,
    Groups,
    groups_of,
    merge,
    numbered,
    union_rises,
    unlink,
)
from dbanon.kernels.compilation import kernel

if TYPE_CHECKING:
    from dbanon.kernels.layout import Floats, Int32s, Int64s


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


class Work(NamedTuple):
    """Reusable work memory of a group.

    lo, hi: (d,) its bounds, next_lo, next_hi: (d,) without one row at the bound; occurs: (s,
    values) rows by sensitive value; n_distinct: (s,) values that occur.
    """

    lo: Int32s
    hi: Int32s
    next_lo: Int32s
    next_hi: Int32s
    occurs: Int64s
    n_distinct: Int64s


@kernel
def _bound(a: int, g: Groups, w: Work) -> float:
    """Fill the two least and the two greatest codes of each column; return the box's cost."""
    w.lo[:] = w.next_lo[:] = np.iinfo(np.int32).max
    w.hi[:] = w.next_hi[:] = -1
    row = g.head[a]
    while row != NONE:
        for column in range(w.lo.shape[0]):
            code = g.rows[row, column]
            w.next_lo[column] = min(w.next_lo[column], max(code, w.lo[column]))
            w.lo[column] = min(w.lo[column], code)
            w.next_hi[column] = max(w.next_hi[column], min(code, w.hi[column]))
            w.hi[column] = max(w.hi[column], code)
        row = g.following[row]
    return cost_of(w.lo, w.hi, g.boxes.flat, g.boxes.layout)


@kernel
def _cost_without(row: int, g: Groups, w: Work) -> float:
    cost = 0.0
    for column in range(w.lo.shape[0]):
        code = g.rows[row, column]
        lo = w.next_lo[column] if code == w.lo[column] else w.lo[column]
        hi = w.next_hi[column] if code == w.hi[column] else w.hi[column]
        cost += box_cost(g.boxes.flat, g.boxes.layout, column, lo, hi)
    return cost


@kernel
def _tally(a: int, g: Groups, w: Work) -> None:
    """Count the rows of each sensitive value, and the distinct values of each column."""
    w.n_distinct[:] = 0
    row = g.head[a]
    while row != NONE:
        for column in range(w.occurs.shape[0]):
            value = g.rows[row, w.lo.shape[0] + column]
            w.n_distinct[column] += w.occurs[column, value] == 0
            w.occurs[column, value] += 1
        row = g.following[row]


@kernel
def _forget(a: int, g: Groups, w: Work) -> None:
    row = g.head[a]
    while row != NONE:
        for column in range(w.occurs.shape[0]):
            w.occurs[column, g.rows[row, w.lo.shape[0] + column]] = 0
        row = g.following[row]


@kernel
def _may_leave(row: int, l: int, g: Groups, w: Work) -> bool:
    """Return True if the group keeps l values of each sensitive column without the row."""
    for column in range(w.occurs.shape[0]):
        value = g.rows[row, w.lo.shape[0] + column]
        if w.n_distinct[column] - (w.occurs[column, value] == 1) < l:
            return False
    return True


@kernel
def _best_row(a: int, l: int, price: float, g: Groups, w: Work) -> tuple[float, int]:
    """Return the greatest gain of suppressing a row of a group, and the row, -1 for none."""
    n = g.boxes.size[a]
    cost = _bound(a, g, w)
    best, best_row = 0.0, NONE
    if n * cost <= price:
        return best, best_row
    _tally(a, g, w)
    row = g.head[a]
    while row != NONE:
        gain = n * cost - (n - 1) * _cost_without(row, g, w) - price
        better = gain > best or (gain == best and row < best_row)
        if better and _may_leave(row, l, g, w):
            best, best_row = gain, row
        row = g.following[row]
    _forget(a, g, w)
    return best, best_row


@kernel
def _consider(
    heap: list[tuple[float, int, int]], a: int, k: int, l: int, price: float, g: Groups, w: Work
) -> None:
    if g.boxes.size[a] > k:
        gain, row = _best_row(a, l, price, g, w)
        if row != NONE:
            heapq.heappush(heap, (-gain, a, row))


@kernel
def trim(
    rows: Int32s,
    group: Int32s,
    price: float,
    flat: Floats,
    layout: Int64s,
    k: int,
    l: int,
    budget: int,
) -> Int32s:
    """Suppress up to ``budget`` single rows, best gain first; return the groups, -1 for those.

    rows: (n, d + s) codes of the d columns and the s sensitive columns; group: (n,) without
    suppressed rows, n >= 1; price: the cost of a suppressed row. The gain is the drop of the
    group's total (rows * cost of the box), minus the price. Groups keep k rows and l values of each
    sensitive column. Ties: lowest group, then lowest row. O(n d), and the size of its group for
    each suppressed row.
    """
    n_groups = group.max() + 1
    d, n_sensitive = layout.shape[0], rows.shape[1] - layout.shape[0]
    g = groups_of(rows, group, n_groups, flat, layout)
    bounds = np.empty((4, d), np.int32)
    cardinality = rows[:, d:].max() + 1 if n_sensitive > 0 else 0
    occurs = np.zeros((n_sensitive, cardinality), np.int64)
    distinct = np.zeros(n_sensitive, np.int64)
    w = Work(bounds[0], bounds[1], bounds[2], bounds[3], occurs, distinct)
    trimmed = group.copy()
    heap = [(0.0, NONE, NONE)]
    heap.pop()
    for a in range(n_groups):
        _consider(heap, a, k, l, price, g, w)
    while budget > 0 and len(heap) > 0:
        _, a, row = heapq.heappop(heap)
        trimmed[row] = NONE
        unlink(row, a, g)
        g.boxes.size[a] -= 1
        budget -= 1
        _consider(heap, a, k, l, price, g, w)
    return trimmed
