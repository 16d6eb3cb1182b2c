"""Divide a table at its most distant pairs of rows (Xu et al., KDD 2006)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dbanon.kernels.boxes.box_extension import (
    Costs,
    cost_of,
    cost_with,
    costs_of,
    reach_rows,
    stretch,
)
from dbanon.kernels.boxes.merges import (
    NONE,
    Corners,
    Groups,
    corners_of,
    groups_of,
    merge,
    nearest_box,
    numbered,
    unlink,
)
from dbanon.kernels.compilation import kernel

if TYPE_CHECKING:
    from dbanon.kernels.layout import Bools, Floats, Int32s, Int64s


class Work(NamedTuple):
    """The rows and their costs, and reusable work memory.

    rows: (n, d + s); lo, hi: (2, d) boxes of the two sides; size: (2,) rows; total: (2,) rows times
    cost; goes_right: (n,) side of each row; spare: (n,).
    """

    rows: Int32s
    costs: Costs
    lo: Int32s
    hi: Int32s
    size: Int64s
    total: Floats
    goes_right: Bools
    spare: Int64s


@kernel
def _farthest(segment: Int64s, row: int, w: Work) -> tuple[int, float]:
    """Return the other row whose pair with ``row`` costs most, and the cost; ties: lowest row."""
    codes = w.rows[row, : w.lo.shape[1]]
    best, greatest = -1, -1.0
    for other in segment:
        if other == row:
            continue
        cost = cost_with(w.rows[other], codes, codes, w.costs)
        if cost > greatest or (cost == greatest and other < best):
            best, greatest = other, cost
    return best, greatest


@kernel
def _seeds(segment: Int64s, rounds: int, w: Work) -> tuple[int, int]:
    """Return two rows of high cost, by going to the farthest row in turn."""
    u, v, greatest = segment[0], segment[1], -1.0
    start = u
    for _ in range(rounds):
        other, cost = _farthest(segment, start, w)
        if cost <= greatest:
            break
        u, v, greatest = start, other, cost
        start = other
    return u, v


@kernel
def _total_with(row: int, side: int, w: Work) -> float:
    """Return the rows times cost of a side with one more row."""
    return (w.size[side] + 1) * cost_with(w.rows[row], w.lo[side], w.hi[side], w.costs)


@kernel
def _distribute(segment: Int64s, u: int, v: int, w: Work) -> None:
    """Put each row on the side whose total rises less; ties: the smaller side, then u's."""
    for side, row in ((0, u), (1, v)):
        w.lo[side] = w.hi[side] = w.rows[row, : w.lo.shape[1]]
        w.size[side], w.total[side] = 1, 0.0
    for i in range(segment.shape[0]):
        row = segment[i]
        w.goes_right[i] = row == v
        if row in (u, v):
            continue
        left, right = _total_with(row, 0, w), _total_with(row, 1, w)
        rise, other = left - w.total[0], right - w.total[1]
        side = int(other < rise or (other == rise and w.size[1] < w.size[0]))
        w.goes_right[i] = side == 1
        w.size[side] += 1
        w.total[side] = right if side == 1 else left
        stretch(w.rows[row], w.lo[side], w.hi[side])


@kernel
def _divide(segment: Int64s, k: int, rounds: int, w: Work) -> int:
    """Move the rows of one side to the front, stably; return their number, 0 to stop."""
    u, v = _seeds(segment, rounds, w)
    _distribute(segment, u, v, w)
    if max(w.size[0], w.size[1]) < k:
        return 0
    left, right = 0, 0
    for i in range(segment.shape[0]):
        if w.goes_right[i]:
            w.spare[right] = segment[i]
            right += 1
        else:
            segment[left] = segment[i]
            left += 1
    for i in range(right):
        segment[left + i] = w.spare[i]
    return left


@kernel
def divide(
    rows: Int32s, order: Int64s, flat: Floats, layout: Int64s, k: int, rounds: int
) -> tuple[Int32s, int]:
    """Divide the rows until no part has a side of k rows; return the group of each, and the number.

    rows: (n, d + s); order: (n,) random order, overwritten, which determines first seeds and
    distribution. Groups may have fewer than k rows, and have at most 2k - 2 for k > 1. O(n d log n)
    for balanced sides.
    """
    d, n = layout.shape[0], order.shape[0]
    lo, hi = np.empty((2, d), np.int32), np.empty((2, d), np.int32)
    size, total = np.empty(2, np.int64), np.empty(2)
    goes_right, spare = np.empty(n, np.bool_), np.empty(n, np.int64)
    w = Work(rows, costs_of(flat, layout), lo, hi, size, total, goes_right, spare)
    group = np.empty(n, np.int32)
    n_groups = 0
    parts = [(0, n)]
    while len(parts) > 0:
        start, stop = parts.pop()
        left = _divide(order[start:stop], k, rounds, w) if stop - start > k else 0
        if left > 0:
            parts.append((start + left, stop))
            parts.append((start, start + left))
            continue
        for row in order[start:stop]:
            group[row] = n_groups
        n_groups += 1
    return group, n_groups


class Undersized(NamedTuple):
    """Undersized memory of the search for rows to borrow.

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
def _pick(b: int, found: int, g: Groups, w: Undersized) -> tuple[int, float]:
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
def _cost_without(b: int, g: Groups, w: Undersized) -> float:
    """Return the cost of the box of the rows of group b that are not taken."""
    w.low[:], w.high[:] = np.iinfo(np.int32).max, -1
    row = g.head[b]
    while row != NONE:
        if not w.taken[row]:
            stretch(g.rows[row], w.low, w.high)
        row = g.following[row]
    return cost_of(w.low, w.high, g.boxes.flat, g.boxes.layout)


@kernel
def _borrow(a: int, b: int, k: int, most: float, g: Groups, w: Undersized) -> float:
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
def _donor(a: int, k: int, most: float, g: Groups, w: Undersized) -> int:
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
def _move(a: int, b: int, k: int, g: Groups, w: Undersized) -> None:
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
    w = Undersized(corners, low, high, picked, taken, rows[:, :d].T.copy(), np.empty(n))
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
