"""Repeatedly cut rows in two at the least cost of both sides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dbanon.kernels.auto.clusters import NONE, clear, widen_pair
from dbanon.kernels.auto.diversity import Rules, hold
from dbanon.kernels.boxes.costs import box_cost
from dbanon.kernels.compilation import ZERO, maker, step
from dbanon.kernels.layout import HI, LO, NOTHING, SET, STRIDE

if TYPE_CHECKING:
    from numpy.typing import NDArray


BINS: Any = np.int64(512)


class Cutter(NamedTuple):
    """Rows to cut, and work memory.

    codes: (n, d) int32; flat, layout: costs; factor: (d,) float64, of cuts in each column; counts:
    (BINS,) rows; box: (BINS + 1, d, 4) bounds, the last of everything so far; paid: (BINS,) cost of
    all rows up to a bin; threshold, cost: (d,) best cut of each column; aside: (n,) int64.
    """

    codes: NDArray[np.int32]
    flat: NDArray[np.float64]
    layout: NDArray[np.int64]
    factor: NDArray[np.float64]
    counts: NDArray[np.int64]
    box: NDArray[np.int32]
    paid: NDArray[np.float64]
    threshold: NDArray[np.int64]
    cost: NDArray[np.float64]
    aside: NDArray[np.int64]


@maker
def make_cutter(
    codes: NDArray[np.int32], flat: NDArray[np.float64], layout: NDArray[np.int64], room: int
) -> Cutter:
    """Return work memory for cutting at most ``room`` rows at once."""
    d = codes.shape[1]
    return Cutter(
        codes,
        flat,
        layout,
        np.ones(d),
        np.zeros(BINS, np.int64),
        np.empty((BINS + 1, d, 4), np.int32),
        np.empty(BINS),
        np.empty(d, np.int64),
        np.empty(d),
        np.empty(room, np.int64),
    )


@step
def _unite(
    flat: NDArray[np.float64], layout: NDArray[np.int64], box: NDArray[np.int32], b: int
) -> float:
    """Extend the last box by that of bin b; return its cost."""
    total = 0.0
    for j in range(layout.shape[0]):
        lo, hi = box[BINS, j, LO], box[BINS, j, HI]
        if layout[j, STRIDE] == SET:
            lo, hi = lo | box[b, j, LO], hi | box[b, j, HI]
        else:
            lo, hi = min(lo, box[b, j, LO]), max(hi, box[b, j, HI])
        box[BINS, j, LO], box[BINS, j, HI] = lo, hi
        total += box_cost(flat, layout, j, lo, hi)
    return total


@step
def _has_cut(count: NDArray[np.int64], bins: int, n: int, least: int) -> bool:
    """Return True if n rows can be cut between bins with ``least`` rows on both sides."""
    below = 0
    for b in range(bins - 1):
        below += count[b]
        if below >= least:
            return n - below >= least
    return False


@step
def _fill_bins(q: Cutter, rows: NDArray[np.int64], column: int, least: int) -> tuple[int, int, int]:
    """Bin rows by equal widths of one column; return base, shift and number of bins.

    One bin if there is no cut with ``least`` rows on both sides.
    """
    codes, layout, box, count = q.codes, q.layout, q.box, q.counts
    base, top = NOTHING, NONE
    for row in rows:
        base, top = min(base, codes[row, column]), max(top, codes[row, column])
    shift, most = 0, min(max(2 * rows.shape[0], 32), BINS)
    while (top - base) >> shift >= most:
        shift += 1
    bins = ((top - base) >> shift) + 1
    for b in range(bins):
        count[b] = 0
    for row in rows:
        count[(codes[row, column] - base) >> shift] += 1
    if not _has_cut(count, bins, rows.shape[0], least):
        return base, shift, ZERO + 1
    for b in range(bins):
        if count[b] > 0:
            clear(layout, box, b)
    for row in rows:
        widen_pair(layout, box, (codes[row, column] - base) >> shift, codes, row)
    return base, shift, bins


@step
def _cut_column(q: Cutter, rows: NDArray[np.int64], column: int, least: int) -> None:
    """Find the cheapest cut of one column with ``least`` rows on both sides."""
    flat, layout, box, count, paid = q.flat, q.layout, q.box, q.counts, q.paid
    best, threshold = np.inf, 0
    base, shift, bins = _fill_bins(q, rows, column, least)
    n, below, above = rows.shape[0], 0, 0
    clear(layout, box, BINS)
    for b in range(bins if bins > 1 else 0):
        if count[b] > 0:
            below += count[b]
            paid[b] = below * _unite(flat, layout, box, b)
    clear(layout, box, BINS)
    for b in range(bins - 1, 0, -1):
        if count[b] == 0:
            continue
        above += count[b]
        if n - above < least:
            break
        cost = above * _unite(flat, layout, box, b)
        before = b - 1
        while count[before] == 0:
            before -= 1
        if above >= least and cost + paid[before] < best:
            best = cost + paid[before]
            threshold = base + (b << shift) - 1
    q.cost[column] = best * q.factor[column]
    q.threshold[column] = threshold


@step
def part_rows(
    codes: NDArray[Any],
    rows: NDArray[np.int64],
    column: int,
    threshold: float,
    aside: NDArray[np.int64],
) -> int:
    """Move the rows up to a threshold to the front, stably; return their number."""
    n_low, n_high = 0, 0
    for row in rows:
        if codes[row, column] <= threshold:
            rows[n_low] = row
            n_low += 1
        else:
            aside[n_high] = row
            n_high += 1
    for i in range(n_high):
        rows[n_low + i] = aside[i]
    return n_low


@step
def cut(q: Cutter, rows: NDArray[np.int64], r: Rules, least: int) -> int:
    """Cut rows in two at least cost, both sides of ``least`` rows that meet the rules; O(n d^2).

    Returns the size of the first side, 0 if there is no such cut.
    """
    d = q.layout.shape[0]
    for j in range(d):
        _cut_column(q, rows, j, least)
    while True:
        column = ZERO
        for j in range(d):
            if q.cost[j] < q.cost[column]:
                column = j
        if q.cost[column] == np.inf:
            return 0
        n_low = part_rows(q.codes, rows, column, q.threshold[column], q.aside)
        low, high = rows[:n_low], rows[n_low:]
        if hold(r, low, n_low) and hold(r, high, high.shape[0]):
            return n_low
        q.cost[column] = np.inf


@step
def is_exact(q: Cutter, rows: NDArray[np.int64]) -> bool:
    """Return True if all rows are equal."""
    for row in rows:
        for j in range(q.layout.shape[0]):
            if q.codes[row, j] != q.codes[rows[0], j]:
                return False
    return True


@step
def cut_all(
    q: Cutter, rows: NDArray[np.int64], r: Rules, least: int, most: int, ends: NDArray[np.int64]
) -> int:
    """Cut rows until no part of more than ``most`` unequal rows can be cut; return their number.

    rows: (n,) int64, permuted into parts; ends: (n // least + 1,) end of each part, and work
    memory.
    """
    top = ends.shape[0]
    ends[top - 1] = rows.shape[0]
    parts, start, waiting = 0, 0, 1
    while waiting > 0:
        stop = ends[top - waiting]
        part = rows[start:stop]
        n_low = 0
        if stop - start > most and stop - start >= 2 * least and not is_exact(q, part):
            n_low = cut(q, part, r, least)
        if n_low > 0:
            waiting += 1
            ends[top - waiting] = start + n_low
            continue
        start = stop
        waiting -= 1
        ends[parts] = stop
        parts += 1
    return parts
