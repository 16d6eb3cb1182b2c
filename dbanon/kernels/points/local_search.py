"""Local search over groups of k to 2k - 1 points for the least sum of squared errors.

Moves of single points (relocate, swap) and of whole groups (dissolve, create) that lower the sum.
Sums of the members price a move from centroids in O(d): a point that leaves a group of m saves m /
(m - 1) of its squared distance, one that joins costs m / (m + 1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dbanon.kernels.compilation import inlined, kernel

if TYPE_CHECKING:
    from dbanon.kernels.layout import Floats, Int32s, Int64s

LEAST_GAIN = 1e-9  # of the squared distances in a move; below it rounding decides


class Groups(NamedTuple):
    """State of a partition.

    points: (n, d); group: (n,) int32; members: (g, 2k - 1), points of each group; size: (g,), 0 for
    a free number; sums: (g, d); free: (g,) free numbers; counts: (2,) number of free ones, and of
    moves so far; changed: (g,) last move that touched the group.
    """

    points: Floats
    group: Int32s
    members: Int32s
    size: Int64s
    sums: Floats
    free: Int64s
    counts: Int64s
    changed: Int64s


@kernel
def gather(points: Floats, group: Int32s, k: int) -> Groups:
    """Return the state of a partition; takes over ``group``. O(n d)."""
    n, d = points.shape
    most = max(n // k, 1)
    free = np.arange(most - 1, -1, -1)
    g = Groups(
        points,
        group,
        np.empty((most, 2 * k - 1), np.int32),
        np.zeros(most, np.int64),
        np.zeros((most, d)),
        free,
        np.array([most - group.max() - 1, 1]),
        np.ones(most, np.int64),
    )
    for i in range(n):
        label = group[i]
        g.members[label, g.size[label]] = i
        g.size[label] += 1
        for j in range(d):
            g.sums[label, j] += points[i, j]
    return g


@inlined
def distance(point: int, points: Floats, label: int, sums: Floats, size: int) -> float:
    """Return the squared distance of a point from the centroid of a group."""
    total, share = 0.0, 1.0 / size
    for j in range(points.shape[1]):
        step = points[point, j] - sums[label, j] * share
        total += step * step
    return total


@kernel
def leave(point: int, g: Groups) -> None:
    """Remove a point from its group."""
    points, members, sums = g.points, g.members, g.sums
    label = g.group[point]
    size = g.size[label] - 1
    place = 0
    while members[label, place] != point:
        place += 1
    members[label, place] = members[label, size]
    g.size[label] = size
    for j in range(points.shape[1]):
        sums[label, j] -= points[point, j]
    _touch(label, g.counts, g.changed)


@kernel
def join(point: int, label: int, g: Groups) -> None:
    """Add a point that left its group to another."""
    points, sums = g.points, g.sums
    g.group[point] = label
    g.members[label, g.size[label]] = point
    g.size[label] += 1
    for j in range(points.shape[1]):
        sums[label, j] += points[point, j]
    _touch(label, g.counts, g.changed)


@inlined
def _touch(label: int, count: Int64s, changed: Int64s) -> None:
    count[1] += 1
    changed[label] = count[1]


@inlined
def candidates(point: int, neighbours: Int32s, group: Int32s, found: Int64s) -> int:
    """Fill the groups of a point's neighbours but its own, nearest first; return their number."""
    count, own = 0, group[point]
    for i in range(neighbours.shape[1]):
        label = group[neighbours[point, i]]
        known = label == own
        for c in range(count):
            known |= found[c] == label
        if not known:
            found[count] = label
            count += 1
    return count


@inlined
def _swap_partner(
    point: int, others: Int32s, limit: float, both: float, line: Floats, points: Floats
) -> tuple[int, float]:
    """Return the point to swap with for the greatest gain above a limit, or -1."""
    best, partner = limit, -1
    for place in range(others.shape[0]):
        candidate = others[place]
        gain = 0.0
        for j in range(points.shape[1]):
            step = points[candidate, j] - points[point, j]
            gain += step * (line[j] + step * both)
        if gain > best:
            best, partner = gain, candidate
    return partner, best


@kernel
def _best_move(point: int, k: int, near: Int64s, line: Floats, g: Groups) -> tuple[int, int]:
    """Return the group to relocate to and -1, or to swap with and its member; -1 for neither."""
    points, members, size, sums = g.points, g.members, g.size, g.sums
    own = g.group[point]
    m_own = size[own]
    here, share = distance(point, points, own, sums, m_own), 1.0 / m_own
    gain_leave = here * m_own / max(m_own - 1, 1)
    best, target, partner = LEAST_GAIN * here, -1, -1
    for i in range(near.shape[0]):
        label = near[i]
        m = size[label]
        share_other = 1.0 / m
        if m_own > k and m < 2 * k - 1:
            gain = gain_leave - distance(point, points, label, sums, m) * m / (m + 1)
            if gain > best:
                best, target, partner = gain, label, -1
        for j in range(points.shape[1]):
            line[j] = 2.0 * (sums[own, j] * share - sums[label, j] * share_other)
        others, both = members[label, :m], share + share_other
        candidate, gain = _swap_partner(point, others, best, both, line, points)
        if candidate >= 0:
            best, target, partner = gain, label, candidate
    return target, partner


@kernel
def _sweep(k: int, neighbours: Int32s, seen: Int64s, found: Int64s, g: Groups) -> int:
    """Apply the best relocation or swap of every point with changed surroundings."""
    group, changed, counts = g.group, g.changed, g.counts
    moves, line = 0, np.empty(g.points.shape[1])
    for point in range(group.shape[0]):
        own = group[point]
        n_near, n_new = candidates(point, neighbours, group, found), 0
        for c in range(n_near):
            if max(changed[own], changed[found[c]]) > seen[point]:
                found[n_new] = found[c]
                n_new += 1
        seen[point] = counts[1]
        if n_new == 0:
            continue
        target, partner = _best_move(point, k, found[:n_new], line, g)
        if target < 0:
            continue
        moves += 1
        leave(point, g)
        if partner >= 0:
            leave(partner, g)
            join(partner, own, g)
        join(point, target, g)
    return moves


@kernel
def _error(label: int, g: Groups) -> float:
    points, sums, size, total = g.points, g.sums, g.size[label], 0.0
    for place in range(size):
        total += distance(g.members[label, place], points, label, sums, size)
    return total


@kernel
def _dissolve(label: int, k: int, neighbours: Int32s, found: Int64s, g: Groups) -> bool:
    """Move each member to its cheapest group with room, if that lowers the sum."""
    points, group, sizes, sums = g.points, g.group, g.size, g.sums
    size = sizes[label]
    budget = _error(label, g)
    budget -= LEAST_GAIN * budget
    rows = g.members[label, :size].copy()
    for moved in range(size):
        best, target = np.inf, -1
        n_near = candidates(rows[moved], neighbours, group, found)
        for c in range(n_near):
            m = sizes[found[c]]
            if m < 2 * k - 1 and found[c] != label:
                cost = distance(rows[moved], points, found[c], sums, m) * m / (m + 1)
                if cost < best:
                    best, target = cost, found[c]
        budget -= best
        if budget <= 0.0:
            for row in rows[:moved]:
                leave(row, g)
                join(row, label, g)
            return False
        leave(rows[moved], g)
        join(rows[moved], target, g)
    g.free[g.counts[0]] = label
    g.counts[0] += 1
    return True


@kernel
def _cheapest(label: int, k: int, near: Int64s, g: Groups) -> int:
    """Return the cheapest point for a group from groups of more than k, or -1."""
    points, members, sizes, sums = g.points, g.members, g.size, g.sums
    best, point, size = np.inf, -1, sizes[label]
    for other in near:
        m = sizes[other]
        for place in range(m if m > k else 0):
            row = members[other, place]
            price = distance(row, points, label, sums, size) * size / (size + 1)
            price -= distance(row, points, other, sums, m) * m / (m - 1)
            if price < best:
                best, point = price, row
    return point


@kernel
def _create(seed: int, k: int, neighbours: Int32s, found: Int64s, g: Groups) -> bool:
    """Create a group around a point from groups of more than k, if that lowers the sum."""
    group = g.group
    n_near = candidates(seed, neighbours, group, found)
    found[n_near] = group[seed]
    label = g.free[g.counts[0] - 1]
    points, sums, sizes = g.points, g.sums, g.size
    rows, old = np.empty(k, np.int64), np.empty(k, np.int64)
    sums[label] = 0.0
    gained, cost, point = 0.0, 0.0, seed
    for step in range(k):
        own = group[point]
        m = sizes[own]
        gained += distance(point, points, own, sums, m) * m / (m - 1)
        gained -= cost
        rows[step], old[step] = point, own
        leave(point, g)
        join(point, label, g)
        if step == k - 1:
            break
        point = _cheapest(label, k, found[: n_near + 1], g)
        if point < 0:
            gained = -np.inf
            break
        m = step + 1
        cost = distance(point, points, label, sums, m) * m / (m + 1)
    if gained > LEAST_GAIN * abs(cost):
        g.counts[0] -= 1
        return True
    for i in range(sizes[label]):
        leave(rows[i], g)
        join(rows[i], old[i], g)
    return False


@kernel
def search(k: int, neighbours: Int32s, sweeps: int, g: Groups) -> None:
    """Sweep until nothing changes, at most ``sweeps`` times; neighbours: (n, m). O(n m k d)."""
    n = g.points.shape[0]
    seen, found = np.zeros(n, np.int64), np.empty(neighbours.shape[1] + 1, np.int64)
    for _ in range(sweeps):
        moves = _sweep(k, neighbours, seen, found, g)
        for label in range(g.size.shape[0]):
            if g.size[label] > 0 and _dissolve(label, k, neighbours, found, g):
                moves += 1
        group, size, counts = g.group, g.size, g.counts
        for point in range(n):
            if counts[0] > 0 and size[group[point]] > k:
                moves += _create(point, k, neighbours, found, g)
        if moves == 0:
            return


@kernel
def dense(group: Int32s) -> Int32s:
    """Renumber groups in the order of their first points, without gaps."""
    number, n_groups = np.full(group.max() + 1, -1, np.int32), 0
    for i in range(group.shape[0]):
        if number[group[i]] < 0:
            number[group[i]] = n_groups
            n_groups += 1
        group[i] = number[group[i]]
    return group
