"""Rebuilding a few neighbouring clusters of a block from their rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dbanon.kernels.auto.clusters import NONE, clear, cost_of, link, rescan, widen
from dbanon.kernels.auto.cuts import cut_all
from dbanon.kernels.auto.insertion_costs import refresh, union_offers
from dbanon.kernels.auto.moves import LEAST_GAIN
from dbanon.kernels.auto.pools import groups_hold, grow_groups
from dbanon.kernels.compile import ZERO, step
from dbanon.kernels.random import roll, uniform

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.kernels.auto.cuts import Cutter
    from dbanon.kernels.auto.moves import Search
    from dbanon.kernels.auto.pools import Pool

NOISE = 0.3
CUT_NOISE = 0.1
# The third builder grows from random seeds.
BUILDERS, GROW_FAR, CUT = 3, 0, 1


class Rebuild(NamedTuple):
    """Work memory of rebuilds.

    p: the pool; q: for cutting it; chosen: (most,) int64, the clusters in the pool, where ``most``
    is the largest number of them; distance: (most,) float64; ends: where the groups end; rows:
    (n,) int64; lossy: (g,) int64, the clusters that cost something.
    """

    p: Pool
    q: Cutter
    chosen: NDArray[np.int64]
    distance: NDArray[np.float64]
    ends: NDArray[np.int64]
    rows: NDArray[np.int64]
    lossy: NDArray[np.int64]


@step
def rebuild_clusters(w: Search, b: Rebuild, tries: int, patient: int) -> float:
    """Rebuild ``tries`` pools for each cluster of the block; return what was saved.

    patient: it ends after so many tries in a row that saved nothing, -1 for never.
    """
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
        if s.size[c] == 0 or s.cost[c] == 0.0:
            continue
        others = 1 + roll(w.dice, most - 1) if most > 1 else 0
        gain = _rebuild(w, b, _choose(w, b, c, others))
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
def _rebuild(w: Search, b: Rebuild, found: int) -> float:
    """Group the rows of the chosen clusters anew; keep the result if it costs less."""
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
    builder = roll(w.dice, BUILDERS)
    if builder == CUT:
        groups = _cut_pool(w, b, n)
    else:
        groups = grow_groups(p, n, w.r, w.k, w.dice, builder == GROW_FAR)
    if groups == 0:
        return 0.0
    total = 0.0
    for g in range(groups):
        total += p.size[g] * cost_of(p.flat, p.layout, p.box, g)
    if total >= paid - LEAST_GAIN or not groups_hold(p, n, groups, w.r):
        return 0.0
    return paid - total if _replace(w, b, found, n, groups) else 0.0


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
def _replace(w: Search, b: Rebuild, found: int, n: int, groups: int) -> bool:
    """Put the groups of the pool in place of the chosen clusters; whether there was room."""
    s, p = w.s, b.p
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
    for i in range(n):
        link(s, p.rows[i], b.ends[p.label[i]])
    for g in range(groups):
        rescan(s, b.ends[g])
        refresh(w.o, s, b.ends[g])
    for i in range(groups, found):
        refresh(w.o, s, b.chosen[i])
    return True


@step
def _is_chosen(b: Rebuild, found: int, c: int) -> bool:
    for i in range(found):
        if b.chosen[i] == c:
            return True
    return False
