"""Fill groups of fewer than k rows up to k (Xu et al., KDD 2006)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dbanon.kernels.boxes.box_extension import cost_of, cost_with, reach_rows, stretch
from dbanon.kernels.boxes.merges import (
    NONE,
    corners_of,
    groups_of,
    merge,
    nearest_box,
    numbered,
    unlink,
)
from dbanon.kernels.compile import kernel

if TYPE_CHECKING:
    from dbanon.kernels.arrays import Bools, Floats, Int32s, Int64s
    from dbanon.kernels.boxes.merges import Corners, Groups


class Work(NamedTuple):
    """Work memory of the search for rows to borrow.

    corners: of the groups' boxes; low, high: (d,) a tried box; picked: (n,) the rows it would take,
    taken: (n,) their mask; codes: (d, n) of the rows; near: (n,) cost of the borrowing box with
    each.
    """

    corners: Corners
    low: Int32s
    high: Int32s
    picked: Int64s
    taken: Bools
    codes: Int32s
    near: Floats


@kernel
def _pick(b: int, found: int, g: Groups, w: Work) -> tuple[int, float]:
    """Return the row of group b, not yet taken, of least cost for the tried box, and the cost."""
    best, least = NONE, np.inf
    row = g.head[b]
    while row != NONE:
        if not w.taken[row]:
            cost = w.near[row]
            if found > 0 and cost <= least:
                cost = cost_with(g.rows[row], w.low, w.high, w.corners.costs)
            if cost < least or (cost == least and row < best):
                best, least = row, cost
        row = g.following[row]
    return best, least


@kernel
def _cost_without(b: int, g: Groups, w: Work) -> float:
    """Return the cost of the box of the rows of group b that are not taken."""
    w.low[:], w.high[:] = np.iinfo(np.int32).max, -1
    row = g.head[b]
    while row != NONE:
        if not w.taken[row]:
            stretch(g.rows[row], w.low, w.high)
        row = g.following[row]
    return cost_of(w.low, w.high, g.boxes.flat, g.boxes.layout)


@kernel
def _borrow(a: int, b: int, k: int, most: float, g: Groups, w: Work) -> float:
    """Fill ``picked`` with rows that bring group a to k out of group b; return the rise, or inf."""
    boxes = g.boxes
    w.low[:], w.high[:] = boxes.lo[a], boxes.hi[a]
    need = k - boxes.size[a]
    before = boxes.size[a] * boxes.cost[a], boxes.size[b] * boxes.cost[b]
    found, cost, rise = 0, boxes.cost[a], np.inf
    while found < need and k * cost - before[0] - before[1] < most:
        row, cost = _pick(b, found, g, w)
        w.picked[found] = row
        w.taken[row] = True
        found += 1
        stretch(g.rows[row], w.low, w.high)
    if k * cost - before[0] - before[1] < most:
        rest = (boxes.size[b] - need) * _cost_without(b, g, w)
        rise = k * cost + rest - before[0] - before[1]
    for row in w.picked[:found]:
        w.taken[row] = False
    return rise


@kernel
def _donor(a: int, k: int, most: float, g: Groups, w: Work) -> int:
    """Return the group to borrow from at the least rise below ``most``; ties: lowest."""
    best, least, boxes = NONE, most, g.boxes
    if boxes.size.max() >= 2 * k - boxes.size[a]:
        reach_rows(w.near.shape[0], w.codes, boxes.lo[a], boxes.hi[a], w.corners.costs, w.near)
    for b in range(boxes.size.shape[0]):
        if b != a and boxes.size[b] >= 2 * k - boxes.size[a]:
            rise = _borrow(a, b, k, least, g, w)
            if rise < least:
                best, least = b, rise
    return best


@kernel
def _move(a: int, b: int, k: int, g: Groups, w: Work) -> None:
    """Move the rows that group a borrows from group b."""
    _borrow(a, b, k, np.inf, g, w)
    boxes = g.boxes
    need = k - boxes.size[a]
    for row in w.picked[:need]:
        unlink(row, b, g)
        g.following[row] = g.head[a]
        g.head[a] = row
    boxes.size[a] += need
    boxes.size[b] -= need
    for part in (a, b):
        boxes.cost[part] = _cost_without(part, g, w)
        boxes.lo[part], boxes.hi[part] = w.low, w.high
        w.corners.lo[:, part] = w.low


@kernel
def make_up(
    rows: Int32s, group: Int32s, n_groups: int, flat: Floats, layout: Int64s, k: int
) -> Int32s:
    """Bring every group to k rows, by borrowing or merging at least cost; O(small groups * n d).

    rows: (n, d + s); group: (n,). A group borrows from one that keeps k rows, or merges with the
    group of least rows times cost of the union; ties: merging. Returns the new group of each row,
    (n,).
    """
    n, d = rows.shape[0], layout.shape[0]
    g = groups_of(rows, group, n_groups, flat, layout)
    boxes, corners = g.boxes, corners_of(g.boxes)
    low, high = np.empty(d, np.int32), np.empty(d, np.int32)
    picked, taken = np.empty(n, np.int64), np.zeros(n, np.bool_)
    w = Work(corners, low, high, picked, taken, rows[:, :d].T.copy(), np.empty(n))
    for a in range(n_groups):
        while 0 < boxes.size[a] < k:
            b, cost = nearest_box(a, boxes, corners)
            if b == NONE:
                break
            rise = (boxes.size[a] + boxes.size[b]) * cost - boxes.size[a] * boxes.cost[a]
            donor = _donor(a, k, rise - boxes.size[b] * boxes.cost[b], g, w)
            if donor != NONE:
                _move(a, donor, k, g, w)
            else:
                kept = min(a, b)
                merge(kept, max(a, b), g)
                corners.lo[:, kept] = boxes.lo[kept]
    return numbered(g)[0]
