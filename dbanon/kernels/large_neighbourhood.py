"""Large-neighbourhood search: groups that lie together are dissolved and built anew (POPMUSIC)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dbanon.kernels.compile import kernel
from dbanon.kernels.local_search import Groups, dense, distance, gather, improve, join, leave

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_GROUPS = 7  # a random one and its nearest 2 to 6
FARTHEST = 1  # of two ways to choose where groups grow; the other is at random
PASSES = 20


@kernel
def _draw(state: NDArray[np.uint64]) -> float:
    """Return a number of [0, 1) and move the state on (splitmix64)."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return np.float64(z >> np.uint64(11)) * 2.0**-53


@kernel
def _below(n: int, state: NDArray[np.uint64]) -> int:
    return min(int(_draw(state) * n), n - 1)


@kernel
def _room(d: int, k: int) -> Groups:
    """Return memory for the points of MOST_GROUPS groups and one more group."""
    most, groups = MOST_GROUPS * (2 * k - 1), MOST_GROUPS + 1
    return Groups(
        np.empty((most, d)),
        np.empty(most, np.int32),
        np.empty((groups, 2 * k - 1), np.int32),
        np.zeros(groups, np.int64),
        np.zeros((groups, d)),
        np.empty(groups, np.int64),
        np.zeros(2, np.int64),
        np.zeros(groups, np.int64),
    )


@kernel
def _between(a: int, b: int, g: Groups) -> float:
    """Return the squared distance of two centroids."""
    total = 0.0
    for j in range(g.sums.shape[1]):
        step = g.sums[a, j] / g.size[a] - g.sums[b, j] / g.size[b]
        total += step * step
    return total


@kernel
def _surround(
    label: int, wanted: int, neighbours: NDArray[np.int32], chosen: NDArray[np.int64], g: Groups
) -> int:
    """Fill a group and the nearest of those its members' neighbours are in; return how many."""
    far = np.full(wanted, np.inf)
    chosen[0], found = label, 1
    for place in range(g.size[label]):
        for other in neighbours[g.members[label, place]]:
            candidate = g.group[other]
            known = False
            for c in range(found):
                known |= chosen[c] == candidate
            if known:
                continue
            away = _between(label, candidate, g)
            if found == wanted and away >= far[found - 1]:
                continue
            at = min(found, wanted - 1)
            while at > 1 and far[at - 1] > away:
                far[at], chosen[at] = far[at - 1], chosen[at - 1]
                at -= 1
            far[at], chosen[at] = away, candidate
            found = min(found + 1, wanted)
    return found


@kernel
def _unite(
    chosen: NDArray[np.int64], rows: NDArray[np.int64], g: Groups, h: Groups
) -> tuple[int, float]:
    """Copy the points of groups; return how many they are and the squared error of the groups."""
    n, error = 0, 0.0
    for label in chosen:
        for place in range(g.size[label]):
            row = g.members[label, place]
            rows[n] = row
            h.points[n] = g.points[row]
            h.group[n] = -1
            error += distance(row, g.points, label, g.sums, g.size[label])
            n += 1
    return n, error


@kernel
def _seed(
    n: int, mode: int, sums: NDArray[np.float64], state: NDArray[np.uint64], h: Groups
) -> int:
    """Return a free point: any, or the farthest from the average of all free points."""
    free = 0
    sums[:] = 0.0
    for i in range(n):
        if h.group[i] < 0:
            free += 1
            for j in range(sums.shape[1]):
                sums[0, j] += h.points[i, j]
    skip, best, seed = _below(free, state), -1.0, -1
    for i in range(n):
        if h.group[i] >= 0:
            continue
        if mode != FARTHEST and skip == 0:
            return i
        skip -= 1
        if mode == FARTHEST:
            away = distance(i, h.points, 0, sums, free)
            if away > best:
                best, seed = away, i
    return seed


@kernel
def _grow(n: int, k: int, label: int, seed: int, h: Groups) -> None:
    """Fill a group with a point and what is nearest to the growing centroid."""
    h.size[label] = 0
    h.sums[label] = 0.0
    join(seed, label, h)
    for size in range(1, k):
        best, point = np.inf, -1
        for i in range(n):
            if h.group[i] < 0:
                away = distance(i, h.points, label, h.sums, size)
                if away < best:
                    best, point = away, i
        join(point, label, h)


@kernel
def _build(
    n: int, n_groups: int, k: int, sums: NDArray[np.float64], state: NDArray[np.uint64], h: Groups
) -> None:
    """Divide the free points into groups of k to 2k - 1."""
    mode = _below(2, state)
    for label in range(n_groups):
        _grow(n, k, label, _seed(n, mode, sums, state, h), h)
    for i in range(n):
        if h.group[i] >= 0:
            continue
        best, target = np.inf, -1
        for label in range(n_groups):
            m = h.size[label]
            if m < 2 * k - 1:
                rise = distance(i, h.points, label, h.sums, m) * m / (m + 1)
                if rise < best:
                    best, target = rise, label
        join(i, target, h)


@kernel
def _settle(
    n: int,
    k: int,
    labels: NDArray[np.int64],
    seen: NDArray[np.int64],
    line: NDArray[np.float64],
    h: Groups,
) -> float:
    """Improve the groups by moves between any two; return their error."""
    seen[:n] = 0
    for _ in range(PASSES):
        moved = False
        for i in range(n):
            since, seen[i] = seen[i], h.counts[1]
            moved |= improve(i, k, labels, since, line, h)
        if not moved:
            break
    error = 0.0
    for i in range(n):
        error += distance(i, h.points, h.group[i], h.sums, h.size[h.group[i]])
    return error


@kernel
def _write(
    chosen: NDArray[np.int64], n: int, n_groups: int, rows: NDArray[np.int64], g: Groups, h: Groups
) -> None:
    """Put the new groups in the place of the old ones."""
    for i in range(n):
        leave(rows[i], g)
    for c in range(chosen.shape[0]):
        g.free[g.counts[0]] = chosen[c]
        g.counts[0] += 1
        g.sums[chosen[c]] = 0.0
    labels = np.empty(n_groups, np.int64)
    for label in range(n_groups):
        g.counts[0] -= 1
        labels[label] = g.free[g.counts[0]]
        g.sums[labels[label]] = 0.0
    for i in range(n):
        join(rows[i], labels[h.group[i]], g)


@kernel
def _wanted(n: int, old: int, k: int, state: NDArray[np.uint64]) -> int:
    """Return one group less, as many or one more, whichever n points allow."""
    wanted = old - 1 + _below(3, state)
    return wanted if wanted * k <= n <= wanted * (2 * k - 1) else old


@kernel
def rebuild(
    points: NDArray[np.float64],
    group: NDArray[np.int32],
    k: int,
    neighbours: NDArray[np.int32],
    trials: int,
    heat: tuple[float, float],
    state: NDArray[np.uint64],
) -> tuple[NDArray[np.int32], NDArray[np.int32], float, float]:
    """Rebuild the groups around random points; return the last groups, the best and their gains.

    A union may get worse by a share of its own error, ``heat`` at the begin and at the end, times
    a random number: relative to the place, it suits dense and sparse regions alike. state: (1,)
    uint64 of the random numbers, moved on. O(k^2 d) for a trial.
    """
    n, d = points.shape
    g, h = gather(points, group, k), _room(d, k)
    most = h.group.shape[0]
    rows, seen, chosen = (
        np.empty(most, np.int64),
        np.empty(most, np.int64),
        np.empty(MOST_GROUPS, np.int64),
    )
    sums, line, labels = np.empty((1, d)), np.empty(d), np.arange(MOST_GROUPS + 1)
    best_group, gained, best = group.copy(), 0.0, 0.0
    for trial in range(trials):
        label = g.group[_below(n, state)]
        old = _surround(label, 3 + _below(MOST_GROUPS - 2, state), neighbours, chosen, g)
        size, before = _unite(chosen[:old], rows, g, h)
        wanted = _wanted(size, old, k, state)
        h.counts[1] = 0
        _build(size, wanted, k, sums, state, h)
        after = _settle(size, k, labels[:wanted], seen, line, h)
        warm = heat[0] + (heat[1] - heat[0]) * trial / trials
        if after >= before * (1.0 + warm * _draw(state)):
            continue
        _write(chosen[:old], size, wanted, rows, g, h)
        gained += before - after
        if gained > best:
            best = gained
            best_group[:] = g.group
    return dense(g.group), dense(best_group), gained, best
