"""Blocks of neighbouring points, with borders that move from round to round."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dbanon.kernels.auto.cuts import cut_all, make_cutter, part_rows
from dbanon.kernels.auto.diversity import make_rules
from dbanon.kernels.compilation import kernel, maker, step

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.kernels.layout import Floats, Int32s, Int64s

BINS: Any = np.int64(64)
# A cut is chosen by this many points of a part; more hardly change it.
LOOKED_AT = 4096


class Bins(NamedTuple):
    """Points of a part, binned by one column.

    counts: (BINS,); box: (BINS + 1, d, 2) bounds, the last of everything so far; paid: (BINS,) cost
    of all points up to a bin.
    """

    counts: Int64s
    box: NDArray[np.float32]
    paid: Floats


@kernel
def halve(points: NDArray[np.float32], most: int) -> tuple[Int64s, Int64s]:
    """Cut points in two at the narrowest sides until a part has at most ``most``; O(n d) a level.

    points: (n, d) float32, scaled. Returns the points by part, (n,), and the starts, (parts + 1,).
    """
    n, d = points.shape
    order, aside = np.arange(n), np.empty(n, np.int64)
    bins = Bins(np.empty(BINS, np.int64), np.empty((BINS + 1, d, 2), np.float32), np.empty(BINS))
    least = max(most // 8, 1)
    ends = np.zeros(n // least + 3, np.int64)  # at its end wait the parts that may yet be cut
    top, parts, start, waiting = ends.shape[0], 0, 0, 1
    ends[top - 1] = n
    while waiting > 0:
        stop = ends[top - waiting]
        size = stop - start
        if size <= most:
            waiting -= 1
            parts += 1
            ends[parts] = start = stop
            continue
        part = order[start:stop]
        every = (size + LOOKED_AT - 1) // LOOKED_AT
        looked_at = part[::every].copy()
        column, threshold = _cheapest_cut(bins, points, looked_at, (least + every - 1) // every)
        n_low = part_rows(points, part, column, threshold, aside)
        if min(n_low, size - n_low) < least:
            n_low = size // 2
        waiting += 1
        ends[top - waiting] = start + n_low
    return order, ends[: parts + 1].copy()


@step
def _cheapest_cut(
    bins: Bins, points: NDArray[np.float32], part: Int64s, least: int
) -> tuple[int, float]:
    """Return the column and value of the cheapest cut; points up to the value are cut off."""
    best, cut_at, cut_by = np.inf, np.float32(0), 0
    for column in range(points.shape[1]):
        low = high = points[part[0], column]
        for i in part:
            low, high = min(low, points[i, column]), max(high, points[i, column])
        if low == high:
            continue
        width = (high - low) / np.float32(BINS)
        _fill(bins, points, part, column, low, width)
        cost, b = _cut_bins(bins, part.shape[0], least)
        if cost < best:
            best, cut_at, cut_by = cost, bins.box[b, column, 1], column
    return cut_by, float(cut_at)


@step
def _fill(
    bins: Bins, points: NDArray[np.float32], part: Int64s, column: int, low: float, width: float
) -> None:
    counts, box = bins.counts, bins.box
    counts[:] = 0
    box[:, :, 0], box[:, :, 1] = np.inf, -np.inf
    for i in part:
        b = min(int((points[i, column] - low) / width), BINS - 1)
        counts[b] += 1
        for j in range(points.shape[1]):
            box[b, j, 0] = min(box[b, j, 0], points[i, j])
            box[b, j, 1] = max(box[b, j, 1], points[i, j])


@step
def _cut_bins(bins: Bins, n: int, least: int) -> tuple[float, int]:
    """Return the least cost of two sides of ``least`` points, and the last bin of the first."""
    counts, box, paid = bins.counts, bins.box, bins.paid
    n_low = 0
    for b in range(BINS):
        n_low += counts[b]
        paid[b] = n_low * _unite(box, b)
    box[BINS, :, 0], box[BINS, :, 1] = np.inf, -np.inf
    best, last, n_high = np.inf, 0, 0
    for b in range(BINS - 1, 0, -1):
        if counts[b] == 0:
            continue
        n_high += counts[b]
        cost = n_high * _unite(box, b)
        before = b - 1
        while before > 0 and counts[before] == 0:
            before -= 1
        if min(n_high, n - n_high) >= least and paid[before] + cost < best:
            best, last = paid[before] + cost, before
    return best, last


@step
def _unite(box: NDArray[np.float32], b: int) -> float:
    """Extend the last box by that of bin b; return the sum of its widths."""
    total = 0.0
    for j in range(box.shape[1]):
        box[BINS, j, 0] = min(box[BINS, j, 0], box[b, j, 0])
        box[BINS, j, 1] = max(box[BINS, j, 1], box[b, j, 1])
        total += max(box[BINS, j, 1] - box[BINS, j, 0], 0.0)
    return total


@maker
def cut_blocks(codes: Int32s, flat: Floats, layout: Int64s, numbers: Int64s, found: Int32s) -> None:
    """Cut rows at least cost into parts, if possible; equal rows are never cut. O(n d^2) a level.

    numbers: least and most rows of a part; found: (2, n), filled with the rows and their parts.
    """
    least, most = numbers[0], numbers[1]
    n = codes.shape[0]
    nothing = np.empty(0, np.int64)
    r = make_rules(nothing, nothing, np.empty((0, 2)), np.empty((n, 0), np.int32))
    rows, ends = np.arange(n), np.empty(n // least + 1, np.int64)
    cut_all(make_cutter(codes, flat, layout, n), rows, r, least, most, ends)
    part = 0
    for i in range(n):
        part += i == ends[part]
        found[0, i], found[1, i] = rows[i], part
