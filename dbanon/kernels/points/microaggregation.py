"""Groups of k to 2k - 1 points: MDAV in blocks, then local search."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dbanon.kernels.compilation import inlined, kernel
from dbanon.kernels.points.kdtree import Tree, nearest, plant, split
from dbanon.kernels.points.local_search import dense, gather, search
from dbanon.kernels.points.mdav import LEAF, mdav_tree
from dbanon.kernels.random import uniform

if TYPE_CHECKING:
    from dbanon.kernels.layout import Floats, Int32s, Int64s, UInt64s


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


MOST_GROUPS = 7  # a random one and its nearest 2 to 6


@kernel
def _below(n: int, state: UInt64s) -> int:
    return min(int(uniform(state) * n), n - 1)


@inlined
def _surround(
    wanted: int,
    neighbours: Int32s,
    chosen: Int64s,
    far: Floats,
    group: Int32s,
    own: Int32s,
    means: Floats,
) -> int:
    """Add the nearest groups of the members' neighbours to a group; return the number of groups."""
    found, label, last = 1, chosen[0], chosen[0]
    far[:wanted] = np.inf
    for row in own:
        for i in range(neighbours.shape[1]):
            candidate = np.int64(group[neighbours[row, i]])
            known = candidate == last
            for c in range(found):
                known |= chosen[c] == candidate
            if known:
                continue
            last, away = candidate, 0.0
            for j in range(means.shape[1]):
                step = means[label, j] - means[candidate, j]
                away += step * step
            if away >= far[wanted - 1]:
                continue
            at = min(found, wanted - 1)
            while at > 1 and far[at - 1] > away:
                far[at], chosen[at] = far[at - 1], chosen[at - 1]
                at -= 1
            far[at], chosen[at] = away, candidate
            found = min(found + 1, wanted)
    return found


@kernel
def _choose(
    neighbours: Int32s,
    chosen: Int64s,
    group: Int32s,
    members: Int32s,
    size: Int64s,
    means: Floats,
    state: UInt64s,
) -> int:
    """Fill a random point's group and some around it; return their number."""
    chosen[0] = group[_below(group.shape[0], state)]
    own, wanted = members[chosen[0], : size[chosen[0]]], 3 + _below(MOST_GROUPS - 2, state)
    return _surround(wanted, neighbours, chosen, np.empty(wanted), group, own, means)


@inlined
def _unite(
    chosen: Int64s,
    rows: Int64s,
    inside: Floats,
    sizes: Int64s,
    points: Floats,
    members: Int32s,
    size: Int64s,
) -> int:
    """Copy the points of groups, and their sizes; return the number of points."""
    n = 0
    for c in range(chosen.shape[0]):
        sizes[c] = size[chosen[c]]
        for place in range(sizes[c]):
            row = members[chosen[c], place]
            rows[n] = row
            for j in range(points.shape[1]):
                inside[n, j] = points[row, j]
            n += 1
    return n


@inlined
def _number(
    chosen: Int64s, old: int, wanted: int, size: Int64s, free: Int64s, counts: Int64s
) -> None:
    """Reserve a free number for another group, or release one."""
    if wanted > old:
        counts[0] -= 1
        chosen[old] = free[counts[0]]
    elif wanted < old:
        free[counts[0]] = chosen[wanted]
        counts[0] += 1
        size[chosen[wanted]] = 0


@inlined
def _write(
    label: int,
    own: Int64s,
    rows: Int64s,
    points: Floats,
    group: Int32s,
    members: Int32s,
    means: Floats,
) -> None:
    """Assign points of a union to a group."""
    d = points.shape[1]
    for j in range(d):
        means[label, j] = 0.0
    for place in range(own.shape[0]):
        row = rows[own[place]]
        group[row], members[label, place] = label, row
        for j in range(d):
            means[label, j] += points[row, j]
    for j in range(d):
        means[label, j] /= own.shape[0]


@kernel
def _divide(means: Floats, size: Int64s) -> None:
    """Turn sums into means."""
    for label in range(size.shape[0]):
        means[label] /= max(size[label], 1)


@kernel
def _pick(n: int, wanted: int, picks: Int64s, state: UInt64s) -> bool:
    """Draw the starting points of groups; return True to start at the farthest points instead."""
    farthest = _below(2, state) == 0
    for i in range(wanted):
        picks[i] = _below(n, state)
    return farthest


@inlined
def _touch(rows: Int64s, n: int, touched: Int64s, n_touched: int) -> int:
    """Record rows; return their number. On overflow all rows are copied later."""
    found = n_touched
    if found <= touched.shape[0] - rows.shape[0]:
        for i in range(n):
            touched[found] = rows[i]
            found += 1
    return found


@inlined
def _keep(best: Int32s, group: Int32s, touched: Int64s, n_touched: int) -> None:
    """Update a copy of the groups by the rows touched since."""
    for i in range(min(n_touched, best.shape[0])):
        row = touched[i] if n_touched <= best.shape[0] else i
        best[row] = group[row]


@kernel
def _wanted(n: int, old: int, k: int, state: UInt64s) -> int:
    """Return one group less, the same number or one more, as n points allow."""
    wanted = old - 1 + _below(3, state)
    return wanted if wanted * k <= n <= wanted * (2 * k - 1) else old


@kernel
def rebuild(
    points: Floats,
    group: Int32s,
    k: int,
    neighbours: Int32s,
    trials: int,
    heat: tuple[float, float],
    state: UInt64s,
) -> tuple[Int32s, Int32s, float, float]:
    """Rebuild the groups around random points; return the last groups, the best and their gains.

    A union may get worse by a share of its own error, ``heat`` at the start and end, times a random
    number; being relative, it suits dense and sparse regions alike. state: (1,) uint64, advanced.
    O(k^2 d) for a trial.
    """
    n, d = points.shape
    g, u = gather(points, group, k), union_of(MOST_GROUPS, k)
    members, size, means, free, counts = g.members, g.size, g.sums, g.free, g.counts
    new_members, new_size, most = u.members, u.size, u.group.shape[0]
    _divide(means, size)
    rows, sizes = np.empty(most, np.int64), np.empty(MOST_GROUPS, np.int64)
    chosen, picks = np.empty(MOST_GROUPS + 1, np.int64), np.empty(MOST_GROUPS + 1, np.int64)
    inside, touched = np.empty((most, d)), np.empty(n + most, np.int64)
    best_group, gained, best, n_touched = group.copy(), 0.0, 0.0, 0
    for trial in range(trials):
        old = _choose(neighbours, chosen, group, members, size, means, state)
        n_inside = _unite(chosen[:old], rows, inside, sizes, points, members, size)
        wanted = _wanted(n_inside, old, k, state)
        before = measure(inside, n_inside, sizes[:old], u)
        build(n_inside, wanted, k, _pick(n_inside, wanted, picks, state), picks, u)
        after = settle(n_inside, wanted, k, u)
        warm = heat[0] + (heat[1] - heat[0]) * trial / trials
        if after >= before * (1.0 + warm * uniform(state)):
            continue
        _number(chosen, old, wanted, size, free, counts)
        for c in range(wanted):
            size[chosen[c]] = new_size[c]
            own = new_members[c, : new_size[c]]
            _write(chosen[c], own, rows, points, group, members, means)
        gained += before - after
        n_touched = _touch(rows, n_inside, touched, n_touched)
        if gained > best:
            best = gained
            _keep(best_group, group, touched, n_touched)
            n_touched = 0
    return dense(group), dense(best_group), gained, best


@kernel
def blocks(points: Floats, k: int, n_blocks: int) -> Int32s:
    """Return the groups of MDAV in each of a power of two of blocks; n >= k * blocks."""
    n = points.shape[0]
    points, row, group = points.copy(), np.arange(n), np.empty(n, np.int32)
    starts = split(points, row, np.full(n_blocks, 0.5), k)
    n_groups = 0
    for block in range(n_blocks):
        begin, end = starts[block], starts[block + 1]
        inside, n_inside = mdav_tree(points[begin:end].copy(), k, LEAF)
        for i in range(begin, end):
            group[row[i]] = n_groups + inside[i - begin]
        n_groups += n_inside
    return group


@kernel
def near_places(n_near: int, slack: float, t: Tree) -> Int32s:
    """Return the places of the nearest other points of each place, (n, n_near), nearest first."""
    n = t.row.shape[0]
    near = np.empty((n, n_near), np.int32)
    rows, distances = np.empty(n_near + 1, np.int64), np.empty(n_near + 1)
    for i in range(n):
        nearest(t.points[i], rows, distances, slack, t)
        found = 0
        for row in rows:
            if row != t.row[i] and found < n_near:
                near[i, found] = t.place[row]
                found += 1
    return near


@kernel
def near_rows(points: Floats, n_near: int, slack: float) -> tuple[Int64s, Int32s]:
    """Return the rows in the order of a tree, and ``near_places`` in that order; n_near < n."""
    t = plant(points, LEAF)
    return t.row, near_places(n_near, slack, t)


@kernel
def polish(points: Floats, group: Int32s, k: int, n_near: int, slack: float, sweeps: int) -> Int32s:
    """Return better groups by local search over the nearest points; n_near < n."""
    t = plant(points, LEAF)
    g = gather(t.points, group[t.row], k)
    search(k, near_places(n_near, slack, t), sweeps, g)
    return dense(g.group[t.place])


TIE = 1e-12  # errors that differ by a smaller share are equal


@kernel
def least_error_blocks(x: Floats, k: int) -> tuple[Int32s, int]:
    """Cut sorted numbers into blocks of k to 2k - 1 with the least squared error; O(n k).

    x: (n,) ascending, n >= k. Returns the block of each, (n,), and the number of blocks. Ties:
    earliest first cut. Shortest path from the end: ``best[i]`` is the least error of x[i:]. The
    error of a block is updated around its running mean, which loses no digits, unlike sums of
    squares.
    """
    n = x.shape[0]
    best = np.full(n + 1, np.inf)
    best[n] = 0.0
    end = np.full(n + 1, n, np.int64)
    for i in range(n - k, -1, -1):
        mean, error = 0.0, 0.0
        for j in range(i, min(i + 2 * k - 1, n)):
            step = x[j] - mean
            mean += step / (j - i + 1)
            error += step * (x[j] - mean)
            if j - i + 1 >= k and error + best[j + 1] < best[i] * (1.0 - TIE):
                best[i] = error + best[j + 1]
                end[i] = j + 1
    block = np.empty(n, np.int32)
    n_blocks, i = 0, 0
    while i < n:
        block[i : end[i]] = n_blocks
        n_blocks += 1
        i = end[i]
    return block, n_blocks
