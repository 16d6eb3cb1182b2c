"""MDAV on a kd-tree: the groups of ``kernels.points.mdav`` for numbers without NULL, faster.

And V-MDAV: groups of k points that grow if the next point is near (Solanas, 2006).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dbanon.kernels.compile import kernel
from dbanon.kernels.points.kdtree import farthest, nearest, plant, remove, squared_distance, survey
from dbanon.kernels.points.mdav import add_exactly

if TYPE_CHECKING:
    from dbanon.kernels.arrays import Floats, Int32s, Int64s
    from dbanon.kernels.points.kdtree import Tree


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
