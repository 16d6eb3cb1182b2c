"""Large-neighbourhood search: adjacent groups are dissolved and rebuilt (POPMUSIC)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dbanon.kernels.compile import inlined, kernel
from dbanon.kernels.points.local_search import dense, gather
from dbanon.kernels.points.subproblem import build, measure, settle, union_of
from dbanon.kernels.random import uniform

if TYPE_CHECKING:
    from dbanon.kernels.arrays import Floats, Int32s, Int64s, UInt64s

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
