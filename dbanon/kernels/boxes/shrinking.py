"""Shrink a box around a row to the cheapest with a given number of rows, by saving per lost row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dbanon.kernels.boxes.costs import box_cost
from dbanon.kernels.compilation import ZERO, maker, step
from dbanon.kernels.layout import SIZE, START

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.kernels.layout import Floats, Int32s, Int64s

WIDER = 2  # levels of growth on every side before a box is shrunk again
FREE: Any = np.float64(1e9)
BINS = 256
NONE: Any = np.int64(-1)


class Ladders(NamedTuple):
    """Levels of every column.

    heights: (d,) int64, levels of a taxonomy, 0 if ordered; begin: (d,) int64, start of each
    column; first, last: int32, leaves below each ancestor of each leaf, by leaf; steps: float64,
    reach of a level of an ordered column to one side, as a share of all.
    """

    heights: Int64s
    begin: Int64s
    first: Int32s
    last: Int32s
    steps: Floats


class Carver(NamedTuple):
    """Rows and costs, the levels around one seed, and work memory.

    A column has two sides: greater codes, or all ancestors, and lesser codes. lo, hi, cost: (2 d,
    levels) codes that a level of a side includes, and their cost; top, at: (2 d,) highest level,
    and that of the box; level: (room, d) of the near rows, below 0 on the lesser side; inside:
    (room,) those in the box; counts: (2 d, levels) how many of these each level has; kept: (2 d,);
    bins: (BINS,); tries: how often a box is widened and shrunk again.
    """

    codes: Int32s
    flat: Floats
    layout: Int64s
    ladders: Ladders
    lo: Int32s
    hi: Int32s
    cost: Floats
    top: Int64s
    at: Int64s
    level: NDArray[np.int16]
    inside: Int64s
    counts: Int64s
    kept: Int64s
    bins: Int64s
    tries: int


@maker
def make_carver(
    codes: Int32s, flat: Floats, layout: Int64s, ladders: Ladders, room: int, tries: int
) -> Carver:
    """Return work memory for boxes of at most ``room`` rows near their seed."""
    d = codes.shape[1]
    sides = 2 * d
    levels = ladders.steps.shape[0] + 2
    for height in ladders.heights:
        levels = max(levels, height + 1)
    return Carver(
        codes,
        flat,
        layout,
        ladders,
        np.zeros((sides, levels), np.int32),
        np.zeros((sides, levels), np.int32),
        np.zeros((sides, levels)),
        np.zeros(sides, np.int64),
        np.zeros(sides, np.int64),
        np.empty((room, d), np.int16),
        np.empty(room, np.int64),
        np.zeros((sides, levels), np.int64),
        np.zeros(sides, np.int64),
        np.zeros(BINS, np.int64),
        tries,
    )


@step
def stand(w: Carver, seed: int) -> None:
    """Set the levels around a seed."""
    for j in range(w.codes.shape[1]):
        code, size, side = w.codes[seed, j], w.layout[j, SIZE], 2 * j
        w.top[side], w.top[side + 1] = 0, 0
        w.lo[side, 0], w.hi[side, 0], w.cost[side, 0] = code, code, 0.0
        w.lo[side + 1, 0], w.hi[side + 1, 0], w.cost[side + 1, 0] = code, code, 0.0
        if code < size:
            if w.ladders.heights[j] > 0:
                _climb(w, j, code)
            else:
                _reach_up(w, j, code)
                _reach_down(w, j, code)
        top = w.top[side] + 1
        w.top[side] = top
        w.lo[side, top], w.hi[side, top] = 0 if w.top[side + 1] == 0 else code, size
        w.cost[side, top] = box_cost(w.flat, w.layout, j, min(code, size - 1), size)


@step
def _climb(w: Carver, j: int, code: int) -> None:
    """Add a level for each ancestor."""
    side, height = 2 * j, w.ladders.heights[j]
    begin = w.ladders.begin[j] + code * height
    for level in range(height):
        lo, hi = w.ladders.first[begin + level], w.ladders.last[begin + level]
        w.lo[side, level], w.hi[side, level] = lo, hi
        w.cost[side, level] = box_cost(w.flat, w.layout, j, lo, hi)
    w.top[side] = height - 1


@step
def _reach_up(w: Carver, j: int, code: int) -> None:
    """Add a level for each step to greater codes that includes more of them."""
    start, side, level, end = w.layout[j, START], 2 * j, 0, code
    positions = w.flat[start + 1 : start + 1 + w.layout[j, SIZE]]
    for reach in w.ladders.steps:
        limit = positions[code] + reach * w.flat[start]
        further = _n_up_to(positions, limit) - 1
        if further > end:
            end, level = further, level + 1
            w.lo[side, level], w.hi[side, level] = code, end
            w.cost[side, level] = positions[end] - positions[code]
    w.top[side] = level


@step
def _reach_down(w: Carver, j: int, code: int) -> None:
    start, side, level, end = w.layout[j, START], 2 * j + 1, 0, code
    positions = w.flat[start + 1 : start + 1 + w.layout[j, SIZE]]
    for reach in w.ladders.steps:
        limit = positions[code] - reach * w.flat[start]
        further = _n_up_to(positions, limit)
        while further > 0 and positions[further - 1] == limit:
            further -= 1
        if further < end:
            end, level = further, level + 1
            w.lo[side, level], w.hi[side, level] = end, code
            w.cost[side, level] = positions[code] - positions[end]
    w.top[side] = level


@step
def _n_up_to(positions: Floats, limit: float) -> int:
    """Return how many ascending positions are at most a limit."""
    lo, hi = ZERO, positions.shape[0]
    while lo < hi:
        middle = (lo + hi) // 2
        if positions[middle] <= limit:
            lo = middle + 1
        else:
            hi = middle
    return lo


@step
def copy_levels(to: Int64s, other: Int64s) -> None:
    """Copy the levels of another box."""
    for i in range(other.shape[0]):
        to[i] = other[i]


@step
def _level(w: Carver, j: int, code: int) -> int:
    """Return the lowest level that includes a code, below 0 on the lesser side."""
    side, level = 2 * j, ZERO
    if w.top[side + 1] > 0 and code < w.lo[side, 0]:
        side += 1
        while code < w.lo[side, level]:
            level += 1
        return -level
    while code < w.lo[side, level] or code > w.hi[side, level]:
        level += 1
        if level == w.top[side]:
            break
    return level


@step
def is_in(w: Carver, at: Int64s, row: int) -> bool:
    """Return True if a box around the seed contains a row."""
    for j in range(w.codes.shape[1]):
        code, side = w.codes[row, j], 2 * j
        lo = w.lo[side, at[side]]
        if at[side + 1] > 0:
            lo = w.lo[side + 1, at[side + 1]]
        if code < lo or code > w.hi[side, at[side]]:
            return False
    return True


@step
def _enter(w: Carver, n: int) -> int:
    """Count the first n rows by level if they are in the box; return their number."""
    found = ZERO
    w.counts[:] = 0
    d = w.codes.shape[1]
    for i in range(n):
        fits = True
        for j in range(d):
            level = w.level[i, j]
            if level > w.at[2 * j] or -level > w.at[2 * j + 1]:
                fits = False
                break
        if fits:
            w.inside[found] = i
            found += 1
            _count(w, i, 1)
    return found


@step
def _count(w: Carver, i: int, by: int) -> None:
    for j in range(w.codes.shape[1]):
        level = w.level[i, j]
        if level >= 0:
            w.counts[2 * j, level] += by
        else:
            w.counts[2 * j + 1, -level] += by


@step
def _shrink(w: Carver, n: int, least: int) -> None:
    """Shrink the box of n rows while it has ``least``."""
    while True:
        best, chosen, level = -1.0, NONE, ZERO
        for side in range(w.at.shape[0]):
            gone = ZERO
            for to in range(w.at[side] - 1, -1, -1):
                gone += w.counts[side, to + 1]
                if n - gone < least:
                    break
                gain = w.cost[side, w.at[side]] - w.cost[side, to]
                gain = FREE + gain if gone == 0 else gain / -np.log((n - gone) / n)
                if gain > best:
                    best, chosen, level = gain, side, to
        if chosen == NONE:
            return
        w.at[chosen] = level
        n = _leave(w, n, chosen, level)


@step
def _leave(w: Carver, n: int, side: int, to: int) -> int:
    """Remove the rows beyond a level; return the remaining number."""
    j, sign, kept = side // 2, 1 - 2 * (side % 2), ZERO
    for a in range(n):
        i = w.inside[a]
        if sign * w.level[i, j] > to:
            _count(w, i, -1)
        else:
            w.inside[kept] = i
            kept += 1
    return kept


@step
def _total(w: Carver) -> float:
    total = 0.0
    for side in range(w.at.shape[0]):
        total += w.cost[side, w.at[side]]
    return total


@step
def find_box(w: Carver, near: Int32s, least: int) -> float:
    """Find a box around the seed with ``least`` of the near rows; return its cost, or inf."""
    n = near.shape[0]
    if n < least:
        return np.inf
    for i in range(n):
        for j in range(w.codes.shape[1]):
            w.level[i, j] = _level(w, j, w.codes[near[i], j])
    copy_levels(w.at, w.top)
    _shrink(w, _enter(w, n), least)
    total = _total(w)
    for _ in range(w.tries):
        copy_levels(w.kept, w.at)
        for side in range(w.at.shape[0]):
            w.at[side] = min(w.at[side] + WIDER, w.top[side])
        _shrink(w, _enter(w, n), least)
        found = _total(w)
        if found >= total:
            copy_levels(w.at, w.kept)
            break
        total = found
    return total
