"""Groups of a few points, by their pairwise distances.

The squared error of a group is the sum of squared distances of its pairs over its size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dbanon.kernels.compile import inlined, kernel

if TYPE_CHECKING:
    from dbanon.kernels.arrays import Floats, Int64s

LEAST_GAIN = 1e-12  # of the error of all groups; below it rounding decides
PASSES = 20


class Union(NamedTuple):
    """Groups of n points.

    apart: (n, n) squared distances; links: (groups + 1, n), their sums from each point to the
    members of each group, and to the free points; group: (n,), below 0 if free; members: (groups,
    2k - 1); size: (groups,); pairs: (groups,), sum over pairs; seen: (n,), changed: (groups,), move
    count at the last inspection or change; least: (1,), least improvement of a move.
    """

    apart: Floats
    links: Floats
    group: Int64s
    members: Int64s
    size: Int64s
    pairs: Floats
    seen: Int64s
    changed: Int64s
    least: Floats


@kernel
def union_of(groups: int, k: int) -> Union:
    """Return memory for the points of some groups and one more group."""
    most, groups = groups * (2 * k - 1), groups + 1
    return Union(
        np.empty((most, most)),
        np.empty((groups + 1, most)),
        np.empty(most, np.int64),
        np.empty((groups, 2 * k - 1), np.int64),
        np.zeros(groups, np.int64),
        np.zeros(groups),
        np.zeros(most, np.int64),
        np.zeros(groups, np.int64),
        np.zeros(1),
    )


@inlined
def _fill(apart: Floats, points: Floats, n: int) -> None:
    """Fill the squared distances of n points."""
    for a in range(n):
        apart[a, a] = 0.0
        for b in range(a):
            total = 0.0
            for j in range(points.shape[1]):
                step = points[a, j] - points[b, j]
                total += step * step
            apart[a, b] = total
            apart[b, a] = total


@kernel
def measure(points: Floats, n: int, sizes: Int64s, u: Union) -> float:
    """Free n points, groups of ``sizes`` one after the other; return the error of the groups."""
    apart, links, free = u.apart, u.links, u.size.shape[0]
    _fill(apart, points, n)
    begin, error = 0, 0.0
    for size in sizes:
        total = 0.0
        for a in range(begin, begin + size):
            for b in range(begin, a):
                total += apart[a, b]
        error += total / size
        begin += size
    links[:, :n] = 0.0
    for a in range(n):
        for b in range(n):
            links[free, b] += apart[a, b]
    u.group[:n] = -1
    u.size[:] = 0
    u.pairs[:] = 0.0
    u.least[0] = LEAST_GAIN * error
    return error


@inlined
def _move(
    point: int, target: int, n: int, apart: Floats, links: Floats, group: Int64s, pairs: Floats
) -> None:
    """Update distance sums for a point that changes groups, not members and sizes."""
    # the last row of links belongs to the free points, number -1
    own = group[point] if group[point] >= 0 else pairs.shape[0]
    if own < pairs.shape[0]:
        pairs[own] -= links[own, point]
    pairs[target] += links[target, point]
    group[point] = target
    for i in range(n):
        links[own, i] -= apart[point, i]
        links[target, i] += apart[point, i]


@inlined
def _least_free(n: int, group: Int64s, cost: Floats) -> int:
    """Return the free point of least cost."""
    best, point = np.inf, -1
    for i in range(n):
        if group[i] < 0 and cost[i] < best:
            best, point = cost[i], i
    return point


@inlined
def _seed(n: int, pick: int, farthest: bool, group: Int64s, cost: Floats) -> int:
    """Return the free point of greatest cost, or the ``pick``-th free point."""
    best, point, skip = -np.inf, -1, pick
    for i in range(n):
        if group[i] < 0:
            if (farthest and cost[i] > best) or (not farthest and skip == 0):
                best, point = cost[i], i
            skip -= 1
    return point


@kernel
def build(n: int, n_groups: int, k: int, farthest: bool, picks: Int64s, u: Union) -> None:
    """Divide the free points into groups of k to 2k - 1.

    Groups grow one after the other, from the free point farthest from the average of all, or from a
    given one, by the point nearest to the growing centroid. The remaining points join at least
    rise.
    """
    apart, links, group, members = u.apart, u.links, u.group, u.members
    size, pairs, n_free = u.size, u.pairs, n
    for label in range(n_groups):
        point = _seed(n, picks[label] % n_free, farthest, group, links[size.shape[0]])
        for m in range(k):
            if m > 0:
                point = _least_free(n, group, links[label])
            members[label, m] = point
            _move(point, label, n, apart, links, group, pairs)
        size[label] = k
        n_free -= k
    for i in range(n):
        if group[i] >= 0:
            continue
        best, target = np.inf, -1
        for label in range(n_groups):
            m = size[label]
            rise = (pairs[label] + links[label, i]) / (m + 1) - pairs[label] / m
            if m < 2 * k - 1 and rise < best:
                best, target = rise, label
        members[target, size[target]] = i
        size[target] += 1
        _move(i, target, n, apart, links, group, pairs)


@inlined
def _replace(members: Int64s, label: int, old: int, new: int) -> None:
    """Replace a point by another among the members of a group."""
    place = 0
    while members[label, place] != old:
        place += 1
    members[label, place] = new


@kernel
def _next_move(
    point: int, now: int, n: int, n_groups: int, k: int, u: Union
) -> tuple[int, int, int]:
    """Return the next point with a move, its best new group and swap partner; -1 for none."""
    apart, links, members, size, group = u.apart, u.links, u.members, u.size, u.group
    pairs, seen, changed, least = u.pairs, u.seen, u.changed, u.least[0]
    for _ in range(n):
        point = point + 1 if point + 1 < n else 0
        own, since, seen[point] = group[point], seen[point], now
        m, here = size[own], links[own, point]
        share, best, target, partner = 1.0 / m, least, -1, -1
        leaving = pairs[own] * share - (pairs[own] - here) / (m - 1)
        for label in range(n_groups):
            if label == own or max(changed[own], changed[label]) <= since:
                continue
            m_other, there = size[label], links[label, point]
            share_other = 1.0 / m_other
            if m > k and m_other < 2 * k - 1:
                gain = leaving + pairs[label] * share_other
                gain -= (pairs[label] + there) / (m_other + 1)
                if gain > best:
                    best, target, partner = gain, label, -1
            base, both = here * share - there * share_other, share + share_other
            for place in range(m_other):
                other = members[label, place]
                gain = base + links[label, other] * share_other - links[own, other] * share
                gain += apart[point, other] * both
                if gain > best:
                    best, target, partner = gain, label, other
        if target >= 0:
            return point, target, partner
    return -1, -1, -1


@kernel
def settle(n: int, n_groups: int, k: int, u: Union) -> float:
    """Relocate and swap points while the error falls; return it."""
    apart, links, group, members = u.apart, u.links, u.group, u.members
    size, pairs, changed = u.size, u.pairs, u.changed
    u.seen[:n] = 0
    changed[:n_groups] = 1
    point = -1
    for now in range(1, PASSES * n):
        point, target, partner = _next_move(point, now, n, n_groups, k, u)
        if point < 0:
            break
        own = group[point]
        changed[own], changed[target] = now + 1, now + 1
        _move(point, target, n, apart, links, group, pairs)
        if partner >= 0:
            _move(partner, own, n, apart, links, group, pairs)
            _replace(members, target, partner, point)
            _replace(members, own, point, partner)
        else:
            size[own] -= 1
            _replace(members, own, point, members[own, size[own]])
            members[target, size[target]] = point
            size[target] += 1
    error = 0.0
    for label in range(n_groups):
        error += pairs[label] / size[label]
    return error
