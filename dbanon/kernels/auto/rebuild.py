"""Rebuild a few neighbouring clusters of a block from their rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dbanon.kernels.auto.clusters import NONE, clear, cost_of, join, link, rescan, unlink, widen
from dbanon.kernels.auto.cuts import cut_all, make_cutter
from dbanon.kernels.auto.diversity import cluster_holds
from dbanon.kernels.auto.insertion_costs import refresh, union_offers
from dbanon.kernels.auto.moves import LEAST_GAIN, STALE, find_cheapest
from dbanon.kernels.auto.pools import attach_rest, groups_hold, grow_groups, make_pool
from dbanon.kernels.boxes.shrinking import Ladders, find_box, is_in, make_carver, stand
from dbanon.kernels.compile import ZERO, maker, step
from dbanon.kernels.random import roll, uniform

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.kernels.auto.carving import Levels
    from dbanon.kernels.auto.clusters import Clusters
    from dbanon.kernels.auto.cuts import Cutter
    from dbanon.kernels.auto.moves import Search
    from dbanon.kernels.auto.pools import Pool
    from dbanon.kernels.boxes.shrinking import Carver

NOISE = 0.3
CUT_NOISE = 0.1
# Boxes are carved if k is large, when growing far apart and cutting gain almost nothing.
BUILDERS, GROW_FAR, CUT, RANDOM, CARVE = 3, 0, 1, 2, 3


class Ways(NamedTuple):
    """How pools are rebuilt.

    heat: accepted relative rise of a pool's cost; anywhere: rows without a group of k may go to any
    cluster of the block; carved: boxes are carved as well.
    """

    heat: float
    anywhere: bool
    carved: bool


class Rebuild(NamedTuple):
    """Work memory of rebuilds.

    p: the pool; q: for cutting; chosen, distance: (most,) clusters of the pool, at most ``most``;
    ends: of the groups; rows, old: (n,) int64, old the previous cluster of each row; lossy: (g,)
    int64, clusters of nonzero cost; carver: for boxes; near: (n,) int32, rows in none.
    """

    p: Pool
    q: Cutter
    chosen: NDArray[np.int64]
    distance: NDArray[np.float64]
    ends: NDArray[np.int64]
    rows: NDArray[np.int64]
    old: NDArray[np.int64]
    lossy: NDArray[np.int64]
    carver: Carver
    near: NDArray[np.int32]


@maker
def make_rebuild(s: Clusters, k: int, most: int, levels: Levels, carved: bool) -> Rebuild:
    """Return work memory for pools of at most ``most`` clusters."""
    codes, flat, layout = s.codes, s.flat, s.layout
    n = codes.shape[0]
    ladders = Ladders(levels[0], levels[1], levels[2], levels[3], levels[4])
    return Rebuild(
        make_pool(codes, flat, layout, n, n // k + 2),
        make_cutter(codes, flat, layout, n),
        np.empty(most, np.int64),
        np.empty(most),
        np.empty(n // k + 2, np.int64),
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.empty(s.size.shape[0], np.int64),
        make_carver(codes, flat, layout, ladders, n if carved else 0, ZERO),
        np.empty(n, np.int32),
    )


@step
def rebuild_clusters(w: Search, b: Rebuild, tries: int, patient: int, how: Ways) -> float:
    """Rebuild ``tries`` pools a cluster until ``patient`` failures (-1: any); return the saving."""
    s = w.s
    n_slots, most = s.size.shape[0], b.chosen.shape[0]
    lossy = b.lossy
    n_lossy = 0
    for c in range(n_slots):
        if s.size[c] > 0 and s.cost[c] > 0.0:
            lossy[n_lossy] = c
            n_lossy += 1
    saved, in_vain = 0.0, 0
    for _ in range(tries * n_lossy):
        c = lossy[roll(w.dice, n_lossy)]
        if how.heat > 0.0:
            other = lossy[roll(w.dice, n_lossy)]
            if s.size[other] > 0 and s.cost[other] > s.cost[c]:
                c = other
        if s.size[c] == 0 or s.cost[c] == 0.0:
            continue
        others = 1 + roll(w.dice, most - 1) if most > 1 else 0
        gain = _rebuild(w, b, _choose(w, b, c, others), how)
        saved += gain
        in_vain = 0 if gain > 0.0 else in_vain + 1
        if in_vain == patient:
            break
    return saved


@step
def _choose(w: Search, b: Rebuild, c: int, others: int) -> int:
    """Fill ``b.chosen`` with a cluster and its nearest by noisy union cost; return their number."""
    sizes, chosen, distance, total = w.s.size, b.chosen, b.distance, w.o.total
    chosen[0] = c
    if others == 0:
        return 1
    union_offers(w.o, w.s, c)
    found = 1
    limit = np.inf
    for other in range(sizes.shape[0]):
        if total[other] >= limit or sizes[other] == 0 or other == c:
            continue
        far = total[other] * (1.0 + NOISE * uniform(w.dice))
        if far >= limit:
            continue
        found = min(found + 1, others + 1)
        at = found - 1
        while at > 1 and distance[at - 1] > far:
            distance[at], chosen[at] = distance[at - 1], chosen[at - 1]
            at -= 1
        distance[at], chosen[at] = far, other
        if found == others + 1:
            limit = distance[found - 1]
    return found


@step
def _rebuild(w: Search, b: Rebuild, found: int, how: Ways) -> float:
    """Regroup the rows of the chosen clusters; keep the result if it costs less."""
    s, p = w.s, b.p
    n, paid = ZERO, 0.0
    for i in range(found):
        c = b.chosen[i]
        paid += s.size[c] * s.cost[c]
        row = s.head[c]
        while row != NONE:
            p.rows[n] = row
            n += 1
            row = s.following[row]
    groups = _group(w, b, n, found, how)
    if groups == 0:
        return 0.0
    heat = paid * how.heat * uniform(w.dice) if how.heat > 0.0 else 0.0
    budget = paid + heat - LEAST_GAIN
    for g in range(groups):
        budget -= p.size[g] * cost_of(p.flat, p.layout, p.box, g)
    if budget <= 0.0 or not groups_hold(p, n, groups, w.r):
        return 0.0
    for i in range(n):
        b.old[i] = s.owner[p.rows[i]]
    if not _replace(w, b, found, n, groups):
        return 0.0
    left = _insert_rest(w, b, n, budget)
    if left < 0.0:
        _restore(w, b, n)
        return 0.0
    return left + LEAST_GAIN - heat


@step
def _group(w: Search, b: Rebuild, n: int, found: int, how: Ways) -> int:
    """Group the pool by a random method; return the number of groups."""
    p, most = b.p, n
    if how.anywhere:
        most = max(found - roll(w.dice, 2), 1)
    builder = RANDOM + roll(w.dice, 2) if how.carved else roll(w.dice, BUILDERS)
    if builder == CUT:
        return _cut_pool(w, b, n)
    if builder == CARVE:
        groups = _carve_pool(w, b, n, most)
    else:
        groups = grow_groups(p, n, w.r, w.k, w.dice, builder == GROW_FAR, most)
    if not how.anywhere:
        attach_rest(p, n, groups)
    return groups


@step
def _insert_rest(w: Search, b: Rebuild, n: int, budget: float) -> float:
    """Insert ungrouped rows of the pool at least cost; return the rest of the budget, or -1."""
    s, p = w.s, b.p
    for i in range(n):
        if p.label[i] != NONE:
            continue
        row, target = p.rows[i], NONE
        for j in range(find_cheapest(w, row, NONE, budget)):
            if cluster_holds(w.r, s, w.best[j], NONE, row):
                target = w.best[j]
                budget -= w.rise[j]
                break
        if target == NONE:
            return -1.0
        join(s, target, row)
        refresh(w.o, s, target)
    return budget


@step
def _restore(w: Search, b: Rebuild, n: int) -> None:
    """Move the rows of a pool back."""
    s, p = w.s, b.p
    for i in range(n - 1, -1, -1):
        row = p.rows[i]
        if s.owner[row] != NONE:
            s.cost[s.owner[row]] = STALE
            unlink(s, row)
        link(s, row, b.old[i])
        s.cost[b.old[i]] = STALE
    for c in range(s.cost.shape[0]):
        if s.cost[c] == STALE:
            rescan(s, c)
            refresh(w.o, s, c)


@step
def _cut_pool(w: Search, b: Rebuild, n: int) -> int:
    """Group the pool by cuts at noisy costs."""
    p, rows = b.p, b.rows[:n]
    for j in range(p.layout.shape[0]):
        b.q.factor[j] = 1.0 + CUT_NOISE * uniform(w.dice)
    for i in range(n):
        rows[i] = p.rows[i]
    groups = cut_all(b.q, rows, w.r, w.k, ZERO, b.ends)
    start = 0
    for g in range(groups):
        stop = b.ends[g]
        clear(p.layout, p.box, g)
        for i in range(start, stop):
            widen(p.layout, p.box, g, p.codes, rows[i])
            p.rows[i] = rows[i]
            p.label[i] = g
        p.size[g] = stop - start
        start = stop
    return groups


@step
def _carve_pool(w: Search, b: Rebuild, n: int, most: int) -> int:
    """Group the pool by at most ``most`` boxes around random rows; return the number of groups."""
    p, q, near, left = b.p, b.carver, b.near, b.p.left
    for i in range(n):
        left[i], near[i] = i, p.rows[i]
    n_left, groups = n, ZERO
    while n_left >= w.k and groups < most:
        stand(q, ZERO + near[roll(w.dice, n_left)])
        find_box(q, near[:n_left], w.k)
        clear(p.layout, p.box, groups)
        p.size[groups] = 0
        kept = ZERO
        for i in range(n_left):
            row = ZERO + near[i]
            if is_in(q, q.at, row):
                p.label[left[i]] = groups
                p.size[groups] += 1
                widen(p.layout, p.box, groups, p.codes, row)
            else:
                near[kept], left[kept] = near[i], left[i]
                kept += 1
        n_left = kept
        groups += 1
    for i in range(n_left):
        p.label[left[i]] = NONE
    return groups


@step
def _replace(w: Search, b: Rebuild, found: int, n: int, groups: int) -> bool:
    """Replace the chosen clusters by the groups of the pool; False if there is no room."""
    s = w.s
    free = found
    for c in range(s.size.shape[0]):
        free += s.size[c] == 0
    if free < groups:
        return False
    for i in range(found):
        s.head[b.chosen[i]] = NONE
        s.size[b.chosen[i]] = 0
        s.cost[b.chosen[i]] = 0.0
    c = ZERO
    for g in range(groups):
        if g < found:
            slot = b.chosen[g]
        else:
            while s.size[c] > 0 or _is_chosen(b, found, c):
                c += 1
            slot = c
            c += 1
        b.ends[g] = slot
    _link_all(w, b, n)
    for g in range(groups):
        rescan(s, b.ends[g])
        refresh(w.o, s, b.ends[g])
    for i in range(groups, found):
        refresh(w.o, s, b.chosen[i])
    return True


@step
def _link_all(w: Search, b: Rebuild, n: int) -> None:
    """Add the rows of the pool to the clusters of their groups; the others have none."""
    s, p = w.s, b.p
    for i in range(n):
        if p.label[i] == NONE:
            s.owner[p.rows[i]] = NONE
        else:
            link(s, p.rows[i], b.ends[p.label[i]])


@step
def _is_chosen(b: Rebuild, found: int, c: int) -> bool:
    for i in range(found):
        if b.chosen[i] == c:
            return True
    return False
