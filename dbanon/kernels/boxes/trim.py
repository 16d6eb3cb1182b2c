"""Leaving out the rows that cost their group the most."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dbanon.kernels.boxes.costs import box_cost
from dbanon.kernels.compile import kernel
from dbanon.kernels.layout import START

if TYPE_CHECKING:
    from numpy.typing import NDArray

NONE = -1


class Groups(NamedTuple):
    """Groups as slices of ``order``, and memory that every group uses anew.

    order: (n,) the rows group by group; start, size: (g,); lo, hi: (d,) the bounds of the group
    looked at, next_lo, next_hi: (d,) what they become when one row at the bound leaves; occurs:
    (s, values) rows of the group by sensitive value; n_distinct: (s,) values that occur.
    """

    rows: NDArray[np.int32]
    flat: NDArray[np.float64]
    layout: NDArray[np.int64]
    order: NDArray[np.int64]
    start: NDArray[np.int64]
    size: NDArray[np.int64]
    lo: NDArray[np.int32]
    hi: NDArray[np.int32]
    next_lo: NDArray[np.int32]
    next_hi: NDArray[np.int32]
    occurs: NDArray[np.int64]
    n_distinct: NDArray[np.int64]


@kernel
def _bound(members: NDArray[np.int64], g: Groups) -> float:
    """Fill the two least and the two greatest codes of each column; return the box's cost."""
    cost = 0.0
    for column in range(g.layout.shape[0]):
        lo = next_lo = np.iinfo(np.int32).max
        hi = next_hi = -1
        for row in members:
            code = g.rows[row, column]
            next_lo = min(next_lo, max(code, lo))
            lo = min(lo, code)
            next_hi = max(next_hi, min(code, hi))
            hi = max(hi, code)
        g.lo[column], g.hi[column] = lo, hi
        g.next_lo[column], g.next_hi[column] = next_lo, next_hi
        cost += box_cost(g.flat, g.layout, column, lo, hi)
    return cost


@kernel
def _cost_without(row: int, g: Groups) -> float:
    cost = 0.0
    for column in range(g.layout.shape[0]):
        code = g.rows[row, column]
        lo = g.next_lo[column] if code == g.lo[column] else g.lo[column]
        hi = g.next_hi[column] if code == g.hi[column] else g.hi[column]
        cost += box_cost(g.flat, g.layout, column, lo, hi)
    return cost


@kernel
def _tally(members: NDArray[np.int64], g: Groups) -> None:
    """Count the rows of each sensitive value, and the distinct values of each column."""
    d = g.layout.shape[0]
    for column in range(g.n_distinct.shape[0]):
        g.n_distinct[column] = 0
    for row in members:
        for column in range(g.occurs.shape[0]):
            value = g.rows[row, d + column]
            g.n_distinct[column] += g.occurs[column, value] == 0
            g.occurs[column, value] += 1


@kernel
def _forget(members: NDArray[np.int64], g: Groups) -> None:
    for row in members:
        for column in range(g.occurs.shape[0]):
            g.occurs[column, g.rows[row, g.layout.shape[0] + column]] = 0


@kernel
def _may_leave(row: int, l: int, g: Groups) -> bool:
    """Return whether the group keeps l values of each sensitive column without the row."""
    for column in range(g.occurs.shape[0]):
        value = g.rows[row, g.layout.shape[0] + column]
        if g.n_distinct[column] - (g.occurs[column, value] == 1) < l:
            return False
    return True


@kernel
def _best_row(a: int, l: int, everything: float, g: Groups) -> tuple[float, int]:
    """Return the gain of leaving out the best row of a group and the row, -1 when none gains."""
    members = g.order[g.start[a] : g.start[a] + g.size[a]]
    n = members.shape[0]
    cost = _bound(members, g)
    best, best_row = 0.0, NONE
    if n * cost <= everything:
        return best, best_row
    _tally(members, g)
    for row in members:
        gain = n * cost - (n - 1) * _cost_without(row, g) - everything
        better = gain > best or (gain == best and row < best_row)
        if better and _may_leave(row, l, g):
            best, best_row = gain, row
    _forget(members, g)
    return best, best_row


@kernel
def _consider(
    heap: list[tuple[float, int, int]], a: int, k: int, l: int, everything: float, g: Groups
) -> None:
    if g.size[a] > k:
        gain, row = _best_row(a, l, everything, g)
        if row != NONE:
            heapq.heappush(heap, (-gain, a, row))


@kernel
def _remove(a: int, row: int, g: Groups) -> None:
    for i in range(g.start[a], g.start[a] + g.size[a]):
        if g.order[i] == row:
            g.size[a] -= 1
            g.order[i] = g.order[g.start[a] + g.size[a]]
            return


@kernel
def _collect(
    rows: NDArray[np.int32],
    group: NDArray[np.int32],
    n_groups: int,
    flat: NDArray[np.float64],
    layout: NDArray[np.int64],
) -> Groups:
    d = layout.shape[0]
    n_sensitive = rows.shape[1] - d
    size = np.zeros(n_groups, np.int64)
    for row in range(group.shape[0]):
        size[group[row]] += 1
    start = np.cumsum(size) - size
    order, filled = np.empty(group.shape[0], np.int64), start.copy()
    for row in range(group.shape[0]):
        order[filled[group[row]]] = row
        filled[group[row]] += 1
    bounds = np.empty((4, d), np.int32)
    cardinality = rows[:, d:].max() + 1 if n_sensitive > 0 else 0
    occurs = np.zeros((n_sensitive, cardinality), np.int64)
    n_distinct = np.zeros(n_sensitive, np.int64)
    lo, hi, next_lo, next_hi = bounds[0], bounds[1], bounds[2], bounds[3]
    return Groups(
        rows, flat, layout, order, start, size, lo, hi, next_lo, next_hi, occurs, n_distinct
    )


@kernel
def trim(
    rows: NDArray[np.int32],
    group: NDArray[np.int32],
    n_groups: int,
    flat: NDArray[np.float64],
    layout: NDArray[np.int64],
    k: int,
    l: int,
    budget: int,
) -> NDArray[np.int32]:
    """Leave out up to ``budget`` single rows, best gain first; return the groups, -1 for those.

    rows: (n, d + s) codes of the d columns and of the s sensitive columns; group: (n,) without
    suppressed rows. A row gains what its group's total cost (rows * cost of the box) drops by,
    less the cost of a suppressed row. Groups keep k rows and l values of each sensitive column.
    Ties: lowest group, then lowest row. O(n d), and the size of its group for each row left out.
    """
    g = _collect(rows, group, n_groups, flat, layout)
    everything = 0.0
    for column in range(layout.shape[0]):
        everything += flat[layout[column, START]]
    trimmed = group.copy()
    heap = [(0.0, NONE, NONE)]
    heap.pop()
    for a in range(n_groups):
        _consider(heap, a, k, l, everything, g)
    while budget > 0 and len(heap) > 0:
        _, a, row = heapq.heappop(heap)
        trimmed[row] = NONE
        _remove(a, row, g)
        budget -= 1
        _consider(heap, a, k, l, everything, g)
    return trimmed
