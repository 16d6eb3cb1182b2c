"""MDAV-generic: groups of k records around the two most distant ones (DMKD 2005)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dbanon.kernels.boxes.costs import box_cost
from dbanon.kernels.compilation import kernel
from dbanon.kernels.layout import SIZE, STRIDE, Floats, Int32s, Int64s
from dbanon.kernels.points.kdtree import (
    Tree,
    farthest,
    nearest,
    plant,
    remove,
    squared_distance,
    survey,
)


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


LEAF = 16  # points in a leaf that make the search fast


@kernel
def _take(row: np.int64, label: int, points: Floats, group: Int32s, sums: Floats, t: Tree) -> None:
    """Assign a row to its group, and remove it from the tree and the sums."""
    group[row] = label
    remove(row, t)
    for j in range(sums.shape[0]):
        add_exactly(-points[row, j], sums[j])


@kernel
def _move(average: Floats, sums: Floats, n: int) -> float:
    """Set the average to that of n points, and return the distance moved."""
    way = 0.0
    for j in range(average.shape[0]):
        mean = sums[j, 0] / n
        way += (mean - average[j]) ** 2
        average[j] = mean
    return np.sqrt(way)


@kernel
def mdav_tree(points: Floats, k: int, leaf: int) -> tuple[Int32s, int]:
    """Group the points; return the group of each, (n,), and the number of groups.

    points: (n, d) without NaN, n >= k; leaf: points per leaf, affects speed only. Groups have k to
    2k - 1 points.
    """
    n, d = points.shape
    group, n_groups, rest = np.full(n, -1, np.int32), 0, n
    t = plant(points, leaf)
    sums, average, drift = np.zeros((d, 2)), np.zeros(d), 0.0
    for i in range(n):
        for j in range(d):
            add_exactly(points[i, j], sums[j])
    _move(average, sums, n)
    survey(average, t)
    rows, distances = np.empty(k - 1, np.int64), np.empty(k - 1)
    seeds = np.empty(2, np.int64)
    while rest >= 2 * k:
        drift += _move(average, sums, rest)
        n_seeds = 2 if rest >= 3 * k else 1
        seeds[0] = farthest(average, drift, t)
        _take(seeds[0], n_groups, points, group, sums, t)
        if n_seeds > 1:
            seeds[1] = farthest(points[seeds[0]], np.inf, t)
            _take(seeds[1], n_groups + 1, points, group, sums, t)
        for seed in seeds[:n_seeds]:
            nearest(points[seed], rows, distances, 1.0, t)
            for row in rows:
                _take(row, n_groups, points, group, sums, t)
            n_groups += 1
            rest -= k
    for i in range(n):
        if group[i] < 0:
            group[i] = n_groups
    return group, n_groups + 1


@kernel
def _next(points: Floats, members: Int64s, gain: float, t: Tree) -> int:
    """Return the free point nearest to a group if it is near enough to join it, otherwise -1."""
    rows, distances = np.empty(2, np.int64), np.empty(2)
    best, inside = -1, np.inf
    for member in members:
        if nearest(points[member], rows[:1], distances[:1], 1.0, t) == 0:
            return -1
        if distances[0] < inside or (distances[0] == inside and rows[0] < best):
            inside, best = distances[0], rows[0]
    if nearest(points[best], rows, distances, 1.0, t) == 1:
        return best
    outside = distances[1] if rows[0] == best else distances[0]
    return best if inside < gain * gain * outside else -1


@kernel
def _spread(points: Floats, group: Int32s, means: Floats) -> None:
    """Assign every point without a group to that of the nearest mean; ties: first."""
    for i in range(points.shape[0]):
        if group[i] < 0:
            best = np.inf
            for label in range(means.shape[0]):
                away = squared_distance(points[i], label, means)
                if away < best:
                    best, group[i] = away, label


@kernel
def v_mdav(points: Floats, k: int, gain: float, leaf: int) -> tuple[Int32s, int]:
    """Group the points; return the group of each, (n,), and the number of groups; n >= k."""
    n, d = points.shape
    group, n_groups, rest = np.full(n, -1, np.int32), 0, n
    t, average = plant(points, leaf), np.empty(d)
    for j in range(d):
        average[j] = points[:, j].mean()
    survey(average, t)
    members, distances = np.empty(2 * k - 1, np.int64), np.empty(k - 1)
    sums, size = np.zeros((n // k, d)), np.zeros(n // k, np.int64)
    while rest >= k:
        members[0] = farthest(average, 0.0, t)
        remove(members[0], t)
        nearest(points[members[0]], members[1:k], distances, 1.0, t)
        for row in members[1:k]:
            remove(row, t)
        count = k
        while count < 2 * k - 1:
            row = _next(points, members[:count], gain, t)
            if row < 0:
                break
            remove(row, t)
            members[count] = row
            count += 1
        for row in members[:count]:
            group[row] = n_groups
            sums[n_groups] += points[row]
        size[n_groups] = count
        n_groups += 1
        rest -= count
    _spread(points, group, sums[:n_groups] / size[:n_groups].reshape(-1, 1))
    return group, n_groups
