"""Large-neighbourhood search: groups that lie together are dissolved and built anew (POPMUSIC)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dbanon.kernels.compile import inlined, kernel
from dbanon.kernels.local_search import dense, gather
from dbanon.kernels.union import LEAST_GAIN, build, measure, settle, union_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.kernels.local_search import Groups
    from dbanon.kernels.union import Union

MOST_GROUPS = 7  # a random one and its nearest 2 to 6


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


@inlined
def _surround(
    label: int, wanted: int, neighbours: NDArray[np.int32], chosen: NDArray[np.int64], g: Groups
) -> int:
    """Fill a group and the nearest of those its members' neighbours are in; return how many."""
    group, members, size, sums = g.group, g.members, g.size, g.sums
    far = np.full(MOST_GROUPS, np.inf)
    chosen[0], found = label, 1
    for place in range(size[label]):
        row = members[label, place]
        for i in range(neighbours.shape[1]):
            candidate = np.int64(group[neighbours[row, i]])
            known = False
            for c in range(found):
                known |= chosen[c] == candidate
            if known:
                continue
            away, share, share_other = 0.0, 1.0 / size[label], 1.0 / size[candidate]
            for j in range(sums.shape[1]):
                step = sums[label, j] * share - sums[candidate, j] * share_other
                away += step * step
            if found == wanted and away >= far[found - 1]:
                continue
            at = min(found, wanted - 1)
            while at > 1 and far[at - 1] > away:
                far[at], chosen[at] = far[at - 1], chosen[at - 1]
                at -= 1
            far[at], chosen[at] = away, candidate
            found = min(found + 1, wanted)
    return found


@inlined
def _unite(
    chosen: NDArray[np.int64],
    n_chosen: int,
    rows: NDArray[np.int64],
    inside: NDArray[np.float64],
    sizes: NDArray[np.int64],
    g: Groups,
) -> int:
    """Copy the points of groups; return how many they are."""
    points, members, size = g.points, g.members, g.size
    n = 0
    for c in range(n_chosen):
        label = chosen[c]
        sizes[c] = size[label]
        for place in range(size[label]):
            row = members[label, place]
            rows[n] = row
            for j in range(points.shape[1]):
                inside[n, j] = points[row, j]
            n += 1
    return n


@inlined
def _write(
    chosen: NDArray[np.int64],
    old: int,
    wanted: int,
    rows: NDArray[np.int64],
    g: Groups,
    u: Union,
) -> None:
    """Put the new groups in the place of the old ones."""
    points, group, members, size, sums, free = g.points, g.group, g.members, g.size, g.sums, g.free
    if wanted > old:
        g.counts[0] -= 1
        chosen[old] = free[g.counts[0]]
    if wanted < old:
        free[g.counts[0]] = chosen[wanted]
        g.counts[0] += 1
        size[chosen[wanted]] = 0
    for c in range(wanted):
        label = chosen[c]
        size[label] = u.size[c]
        for j in range(points.shape[1]):
            sums[label, j] = 0.0
        for place in range(size[label]):
            row = rows[u.members[c, place]]
            group[row], members[label, place] = label, row
            for j in range(points.shape[1]):
                sums[label, j] += points[row, j]


@inlined
def _keep(
    best: NDArray[np.int32], group: NDArray[np.int32], touched: NDArray[np.int64], n_touched: int
) -> None:
    """Bring a copy of the groups up to date, which lacks what was touched since."""
    for i in range(min(n_touched, best.shape[0])):
        row = touched[i] if n_touched <= best.shape[0] else i
        best[row] = group[row]


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
    g, u = gather(points, group, k), union_of(MOST_GROUPS, k)
    most = u.group.shape[0]
    rows, sizes = np.empty(most, np.int64), np.empty(MOST_GROUPS, np.int64)
    chosen, picks = np.empty(MOST_GROUPS + 1, np.int64), np.empty(MOST_GROUPS + 1, np.int64)
    inside, touched = np.empty((most, d)), np.empty(n + most, np.int64)
    best_group, gained, best, n_touched = group.copy(), 0.0, 0.0, 0
    for trial in range(trials):
        label = np.int64(group[_below(n, state)])
        old = _surround(label, 3 + _below(MOST_GROUPS - 2, state), neighbours, chosen, g)
        size = _unite(chosen, old, rows, inside, sizes, g)
        wanted = _wanted(size, old, k, state)
        before = measure(inside, size, sizes[:old], u)
        farthest = _below(2, state) == 0
        for i in range(wanted):
            picks[i] = _below(size, state)
        build(size, wanted, k, farthest, picks, u)
        after = settle(size, wanted, k, LEAST_GAIN * before, u)
        warm = heat[0] + (heat[1] - heat[0]) * trial / trials
        if after >= before * (1.0 + warm * _draw(state)):
            continue
        _write(chosen, old, wanted, rows, g, u)
        gained += before - after
        if n_touched <= n:
            touched[n_touched : n_touched + size] = rows[:size]
            n_touched += size
        if gained > best:
            best = gained
            _keep(best_group, group, touched, n_touched)
            n_touched = 0
    return dense(group), dense(best_group), gained, best
