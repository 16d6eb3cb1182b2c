"""Divide a table at its most distant pairs of rows (Xu et al., KDD 2006)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dbanon.kernels.boxes.box_extension import cost_with, costs_of, stretch
from dbanon.kernels.compile import kernel

if TYPE_CHECKING:
    from dbanon.kernels.arrays import Bools, Floats, Int32s, Int64s
    from dbanon.kernels.boxes.box_extension import Costs


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
