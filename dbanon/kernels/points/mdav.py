"""MDAV-generic: groups of k records around the two most distant ones (DMKD 2005)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dbanon.kernels.boxes.costs import box_cost
from dbanon.kernels.compile import kernel
from dbanon.kernels.layout import SIZE, STRIDE

if TYPE_CHECKING:
    from dbanon.kernels.arrays import Floats, Int32s, Int64s


class Records(NamedTuple):
    """The records without a group, first in each array, in row order.

    points: (n, p) float64, NaN for NULL; codes: (n, q) int32; row: (n,) row number; distance: (n,)
    squared, from the last measured record; counts, squares: by code, memory.
    """

    points: Floats
    codes: Int32s
    row: Int64s
    distance: Floats
    counts: Int64s
    squares: Floats
    flat: Floats
    layout: Int64s


@kernel
def _measure(n: int, point: Floats, code: Int32s, r: Records) -> None:
    """Fill the squared distances of the first n records from a record; NULL and a value: 1."""
    for i in range(n):
        total = 0.0
        for j in range(point.shape[0]):
            step = r.points[i, j] - point[j]
            if not np.isnan(step):
                total += step * step
            elif np.isnan(point[j]) != np.isnan(r.points[i, j]):
                total += 1.0
        r.distance[i] = total
    for j in range(code.shape[0]):
        size = r.layout[j, SIZE]
        if size < n:
            for value in range(size + 1):
                r.squares[value] = _squared_step(j, code[j], value, r)
            for i in range(n):
                r.distance[i] += r.squares[r.codes[i, j]]
        else:
            for i in range(n):
                r.distance[i] += _squared_step(j, code[j], r.codes[i, j], r)


@kernel
def _squared_step(column: int, a: int, b: int, r: Records) -> float:
    step = box_cost(r.flat, r.layout, column, min(a, b), max(a, b))
    return step * step


@kernel
def add_exactly(value: float, total: Floats) -> None:
    """Add to a sum stored as two numbers, almost without loss (Knuth's two-sum)."""
    whole = total[0] + value
    part = whole - total[0]
    error = (total[0] - (whole - part)) + (value - part)
    rest = total[1] + error
    total[0] = whole + rest
    total[1] = rest - (total[0] - whole)


@kernel
def _average(n: int, point: Floats, code: Int32s, r: Records) -> None:
    """Fill means, lower medians of ordered codes, modes of others; NULL counts for modes only."""
    total = np.empty(2)
    for j in range(point.shape[0]):
        total[:], present = 0.0, 0
        for i in range(n):
            if not np.isnan(r.points[i, j]):
                add_exactly(r.points[i, j], total)
                present += 1
        point[j] = total[0] / present if present > 0 else np.nan
    for j in range(code.shape[0]):
        size = r.layout[j, SIZE]
        r.counts[: size + 1] = 0
        for i in range(n):
            r.counts[r.codes[i, j]] += 1
        if r.layout[j, STRIDE] == 0:
            code[j] = _median(size, n - r.counts[size], r)
            continue
        code[j] = 0
        for value in range(size + 1):
            if r.counts[value] > r.counts[code[j]]:
                code[j] = value


@kernel
def _median(size: int, present: int, r: Records) -> int:
    """Return the lower median of the counted codes, ``size`` if there is none."""
    if present == 0:
        return size
    below, value = r.counts[0], 0
    while 2 * below < present:
        value += 1
        below += r.counts[value]
    return value


@kernel
def _farthest(n: int, skip: int, r: Records) -> int:
    """Return the record of greatest distance but ``skip``; ties: lowest row."""
    best = -1
    for i in range(n):
        if i != skip and (best < 0 or r.distance[i] > r.distance[best]):
            best = i
    return best


@kernel
def _take_nearest(n: int, seed: int, other: int, chosen: Int64s, r: Records) -> None:
    """Fill ``chosen`` with the seed and the nearest records but ``other``; ties: lowest row."""
    chosen[0] = seed
    found = 1
    for i in range(n):
        if i in (seed, other):
            continue
        if found == chosen.shape[0] and (
            found == 1 or r.distance[i] >= r.distance[chosen[found - 1]]
        ):
            continue
        place = found if found < chosen.shape[0] else found - 1
        while place > 1 and r.distance[chosen[place - 1]] > r.distance[i]:
            chosen[place] = chosen[place - 1]
            place -= 1
        chosen[place] = i
        found = min(found + 1, chosen.shape[0])


@kernel
def _emit(n: int, chosen: Int64s, label: int, group: Int32s, r: Records) -> int:
    """Assign the chosen records to a group and close the gaps; return the remaining number."""
    for i in chosen:
        group[r.row[i]] = label
    kept = 0
    for i in range(n):
        if group[r.row[i]] >= 0:
            continue
        r.row[kept] = r.row[i]
        r.points[kept] = r.points[i]
        r.codes[kept] = r.codes[i]
        kept += 1
    return kept


@kernel
def mdav(points: Floats, codes: Int32s, flat: Floats, layout: Int64s, k: int) -> tuple[Int32s, int]:
    """Group the records; return the group of each, (n,), and the number of groups.

    points: (n, p) standardized numbers, NaN for NULL; codes: (n, q) of the columns of ``flat`` and
    ``layout``; both are overwritten. n >= k. Groups have k to 2k - 1 records. O(n^2 (p + q) / k).
    """
    n = points.shape[0]
    group = np.full(n, -1, np.int32)
    largest = layout[:, SIZE].max() + 1 if codes.shape[1] > 0 else 0
    counts, squares = np.empty(largest, np.int64), np.empty(largest)
    r = Records(points, codes, np.arange(n), np.empty(n), counts, squares, flat, layout)
    point, code = np.empty(points.shape[1]), np.empty(codes.shape[1], np.int32)
    chosen = np.empty(k, np.int64)
    n_groups = 0
    while n >= 2 * k:
        _average(n, point, code, r)
        _measure(n, point, code, r)
        first = _farthest(n, -1, r)
        _measure(n, r.points[first].copy(), r.codes[first].copy(), r)
        second = _farthest(n, first, r) if n >= 3 * k else -1
        row = r.row[second]
        _take_nearest(n, first, second, chosen, r)
        n = _emit(n, chosen, n_groups, group, r)
        n_groups += 1
        if second >= 0:
            second = np.searchsorted(r.row[:n], row)
            _measure(n, r.points[second].copy(), r.codes[second].copy(), r)
            _take_nearest(n, second, -1, chosen, r)
            n = _emit(n, chosen, n_groups, group, r)
            n_groups += 1
    if n > 0:
        _emit(n, np.arange(n), n_groups, group, r)
        n_groups += 1
    return group, n_groups
