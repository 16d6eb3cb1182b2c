"""Repeatedly cut rows in two at the least cost of both sides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dbanon.kernels.auto.clusters import NONE
from dbanon.kernels.auto.diversity import Rules, hold
from dbanon.kernels.boxes.costs import box_cost, half_bits
from dbanon.kernels.compilation import ZERO, maker, step
from dbanon.kernels.layout import EMPTY_HI, EMPTY_LO, NOTHING, SET, STRIDE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.kernels.layout import Floats, Int32s, Int64s


BINS: Any = np.int64(512)


class Cutter(NamedTuple):
    """Rows to cut, and work memory.

    codes: (n, d) int32; flat, layout: costs; factor: (d,) float64, of cuts in each column; counts:
    (BINS,) rows; lo, hi: (BINS + 1, d) bounds of open columns, the last of everything so far; paid:
    (BINS,) cost of all rows up to a bin; threshold, cost: (d,) best cut of each column; aside: (n,)
    int64; open: (d,) columns with several values, or at a cost, sets last; dense: (n, d) their
    codes.
    """

    codes: Int32s
    flat: Floats
    layout: Int64s
    factor: Floats
    counts: Int64s
    lo: Int32s
    hi: Int32s
    paid: Floats
    threshold: Int64s
    cost: Floats
    aside: Int64s
    open: Int64s
    dense: Int32s


@maker
def make_cutter(codes: Int32s, flat: Floats, layout: Int64s, room: int) -> Cutter:
    """Return work memory for cutting at most ``room`` rows at once."""
    d = codes.shape[1]
    return Cutter(
        codes,
        flat,
        layout,
        np.ones(d),
        np.zeros(BINS, np.int64),
        np.empty((BINS + 1, d), np.int32),
        np.empty((BINS + 1, d), np.int32),
        np.empty(BINS),
        np.empty(d, np.int64),
        np.empty(d),
        np.empty(room, np.int64),
        np.empty(d, np.int64),
        np.empty((room, d), np.int32),
    )


@step
def _unite(q: Cutter, b: int, columns: Int64s, plain: int) -> float:
    """Extend the last box by that of bin b; return its cost."""
    total, lo, hi = 0.0, q.lo[BINS], q.hi[BINS]
    _join(q, BINS, q.lo[b], q.hi[b], columns.shape[0], plain)
    for i in range(columns.shape[0]):
        total += box_cost(q.flat, q.layout, columns[i], lo[i], hi[i])
    return total


@step
def _join(q: Cutter, b: int, low: Int32s, high: Int32s, n_open: int, plain: int) -> None:
    """Extend the box of bin b by bounds, in all columns at once but those of sets."""
    lo, hi = q.lo[b], q.hi[b]
    for i in range(plain):
        lo[i] = min(lo[i], low[i])
        hi[i] = max(hi[i], high[i])
    for i in range(plain, n_open):
        lo[i] |= low[i]
        hi[i] |= high[i]


@step
def _clear(q: Cutter, b: int, columns: Int64s) -> None:
    for i in range(columns.shape[0]):
        q.lo[b, i], q.hi[b, i] = q.layout[columns[i], EMPTY_LO], q.layout[columns[i], EMPTY_HI]


@step
def _has_cut(count: Int64s, bins: int, n: int, least: int) -> bool:
    """Return True if n rows can be cut between bins with ``least`` rows on both sides."""
    below = 0
    for b in range(bins - 1):
        below += count[b]
        if below >= least:
            return n - below >= least
    return False


@step
def _fill_bins(
    q: Cutter, n: int, at: int, least: int, columns: Int64s, plain: int
) -> tuple[int, int, int]:
    """Bin n rows by equal widths of an open column; return base, shift and number of bins.

    One bin if there is no cut with ``least`` rows on both sides.
    """
    count, codes = q.counts, q.dense[:n, at]
    base, top = NOTHING, NONE
    for code in codes:
        base, top = min(base, code), max(top, code)
    shift, most = 0, min(max(2 * n, 32), BINS)
    while (top - base) >> shift >= most:
        shift += 1
    bins = ((top - base) >> shift) + 1
    for b in range(bins):
        count[b] = 0
    for code in codes:
        count[(code - base) >> shift] += 1
    if not _has_cut(count, bins, n, least):
        return base, shift, ZERO + 1
    for b in range(bins):
        if count[b] > 0:
            _clear(q, b, columns)
    for i in range(n):
        b = (codes[i] - base) >> shift
        _join(q, b, q.dense[i], q.dense[i], plain, plain)
        for j in range(plain, columns.shape[0]):
            low, high = half_bits(q.dense[i, j])
            q.lo[b, j] |= low
            q.hi[b, j] |= high
    return base, shift, bins


@step
def _cut_column(q: Cutter, n: int, at: int, least: int, columns: Int64s, plain: int) -> None:
    """Find the cheapest cut of n rows in an open column with ``least`` rows on both sides."""
    count, paid = q.counts, q.paid
    best, threshold = np.inf, 0
    base, shift, bins = _fill_bins(q, n, at, least, columns, plain)
    below, above = 0, 0
    _clear(q, BINS, columns)
    for b in range(bins if bins > 1 else 0):
        if count[b] > 0:
            below += count[b]
            paid[b] = below * _unite(q, b, columns, plain)
    _clear(q, BINS, columns)
    for b in range(bins - 1, 0, -1):
        if count[b] == 0:
            continue
        above += count[b]
        if n - above < least:
            break
        cost = above * _unite(q, b, columns, plain)
        before = b - 1
        while count[before] == 0:
            before -= 1
        if above >= least and cost + paid[before] < best:
            best = cost + paid[before]
            threshold = base + (b << shift) - 1
    q.cost[columns[at]] = best * q.factor[columns[at]]
    q.threshold[columns[at]] = threshold


@step
def _find_open(q: Cutter, rows: Int64s) -> tuple[int, int]:
    """Fill ``open`` and ``dense``; return the number of open columns, and without sets."""
    layout, codes, n_open, plain = q.layout, q.codes, ZERO, ZERO
    for sets in range(2):
        for j in range(layout.shape[0]):
            if (layout[j, STRIDE] == SET) != sets:
                continue
            lo = hi = codes[rows[0], j]
            for row in rows:
                lo, hi = min(lo, codes[row, j]), max(hi, codes[row, j])
            if lo != hi or sets or layout[j, EMPTY_LO] != NOTHING or layout[j, EMPTY_HI] != NONE:
                q.open[n_open] = j
                n_open += 1
        if not sets:
            plain = n_open
    for i in range(rows.shape[0]):
        for j in range(n_open):
            q.dense[i, j] = codes[rows[i], q.open[j]]
    return n_open, plain


@step
def part_rows(
    codes: NDArray[Any], rows: Int64s, column: int, threshold: float, aside: Int64s
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
def cut(q: Cutter, rows: Int64s, r: Rules, least: int) -> int:
    """Cut rows in two at least cost, both sides of ``least`` rows that meet the rules; O(n d^2).

    Returns the size of the first side, 0 if there is no such cut.
    """
    d = q.layout.shape[0]
    n_open, plain = _find_open(q, rows)
    for j in range(d):
        q.cost[j] = np.inf
    for i in range(n_open):
        _cut_column(q, rows.shape[0], i, least, q.open[:n_open], plain)
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
def cut_all(q: Cutter, rows: Int64s, r: Rules, least: int, most: int, ends: Int64s) -> int:
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
        if stop - start > most and stop - start >= 2 * least:
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
