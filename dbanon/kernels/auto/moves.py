"""Move single rows of a block between clusters: move, chain and swap."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dbanon.kernels.auto.clusters import (
    NONE,
    Clusters,
    cluster_holds,
    costs_alone,
    exchanged_cost,
    join,
    leave,
    link,
    rescan,
    unlink,
)
from dbanon.kernels.auto.insertion_costs import (
    Offers,
    cheapest_offers,
    cost_without,
    make_offers,
    may_cost,
    refresh,
    set_aside,
)
from dbanon.kernels.compilation import ZERO, inlined, maker, step
from dbanon.kernels.layout import WIDE
from dbanon.kernels.random import roll, shuffle

if TYPE_CHECKING:
    from dbanon.kernels.layout import Floats, Int64s, UInt64s


# A change must save more than this: sums of costs differ in their last digits.
LEAST_GAIN = 1e-9
CANDIDATES = 3
# With many columns, a rebuilt group hardly ever beats one from which single rows have
# been moved: rebuilding stops after this number of consecutive failures. In a hot round only
# while moves save this share of the cost of a block, as it accepts losses on purpose.
UNSETTLED, FRUITLESS = 0.002, 50
# The cost of a cluster that is still to be computed.
STALE = -1.0


class Search(NamedTuple):
    """A block under search.

    s: clusters; k: least size; dice: random state; best, rise: (CANDIDATES,) cheapest
    clusters for a row and their rises; o: costs with one more row; alone: (n,) cost of each row
    alone, which it costs at least in any cluster.
    """

    s: Clusters
    k: int
    dice: UInt64s
    best: Int64s
    rise: Floats
    o: Offers
    alone: Floats


@maker
def make_search(s: Clusters, k: int, dice: UInt64s) -> Search:
    """Return a search over clusters, with work memory."""
    best, rise = np.empty(CANDIDATES, np.int64), np.empty(CANDIDATES)
    return Search(s, k, dice, best, rise, make_offers(s), costs_alone(s.codes, s.flat, s.layout))


@step
def find_cheapest(w: Search, row: int, not_in: int, most: float) -> int:
    """Fill ``w.best`` with the clusters of least rise for a row, below ``most``."""
    return cheapest_offers(w.o, w.s, row, not_in, most, w.best, w.rise)


@step
def pass_rows(w: Search, order: Int64s) -> float:
    """Try to move every row of a cluster of nonzero cost; return the saving."""
    s = w.s
    shuffle(w.dice, order, order.shape[0])
    saved = 0.0
    for row in order:
        c = s.owner[row]
        size = s.size[c]
        if s.cost[c] == 0.0 or size == 1:
            continue
        without = cost_without(w.o, s, row)
        if size == w.k and without == s.cost[c]:
            continue
        gain = size * s.cost[c] - (size - 1) * without
        found = find_cheapest(w, row, c, gain)
        if found == 0:
            continue
        done = _move(w, row, found, gain) if size > w.k else _chain(w, row)
        if done == 0.0:
            done = _swap(w, row, found)
        saved += done
    return saved


@step
def _move(w: Search, row: int, found: int, gain: float) -> float:
    """Move a row to the cheapest cluster that stays diverse; its own may lose a row."""
    s = w.s
    if gain - w.rise[0] <= LEAST_GAIN or not cluster_holds(s, s.owner[row], row, NONE):
        return 0.0
    for i in range(found):
        if gain - w.rise[i] <= LEAST_GAIN:
            break
        if cluster_holds(s, w.best[i], NONE, row):
            origin = s.owner[row]
            leave(s, row)
            join(s, w.best[i], row)
            refresh(w.o, s, origin)
            refresh(w.o, s, w.best[i])
            return gain - w.rise[i]
    return 0.0


@step
def _chain(w: Search, row: int) -> float:
    """Move a row to its cheapest cluster, and fill its place from a cluster with a spare row."""
    s = w.s
    c, target = s.owner[row], w.best[0]
    budget = s.size[c] * s.cost[c] - w.rise[0]
    best, change = _find_spare(w, row, target, budget - LEAST_GAIN)
    if best == NONE:
        return 0.0
    best, change = _best_of_donor(w, row, best, change)
    if not (
        cluster_holds(s, c, row, best)
        and cluster_holds(s, s.owner[best], best, NONE)
        and cluster_holds(s, target, NONE, row)
    ):
        return 0.0
    donor = s.owner[best]
    leave(s, row)
    join(s, target, row)
    leave(s, best)
    join(s, c, best)
    refresh(w.o, s, c)
    refresh(w.o, s, target)
    refresh(w.o, s, donor)
    return budget - change


@inlined
def _refill(w: Search, c: int, row: int, donor: int, spare: int, most: float) -> float:
    """Return the cost of cluster c with ``spare`` replacing ``row``, minus the donor's saving."""
    s, saved = w.s, 0.0
    if s.cost[donor] > 0.0:
        without = cost_without(w.o, s, spare)
        saved = s.size[donor] * s.cost[donor] - (s.size[donor] - 1) * without
    bound = (most + saved) / s.size[c]
    if not may_cost(w.o, s, row, spare, bound):
        return np.inf
    cost = exchanged_cost(s.flat, s.layout, s.box, c, s.codes, row, spare, bound)
    return s.size[c] * cost - saved


@step
def _find_spare(w: Search, row: int, target: int, most: float) -> tuple[int, float]:
    """Return the best replacement of ``row``, among one random row of each cluster above k."""
    s, k, dice = w.s, w.k, w.dice
    c = s.owner[row]
    best = NONE
    set_aside(w.o, s, row)
    for donor in range(s.size.shape[0]):
        if s.size[donor] <= k or donor == c or donor == target:
            continue
        spare = s.head[donor]
        for _ in range(roll(dice, s.size[donor])):
            spare = s.following[spare]
        change = _refill(w, c, row, donor, spare, most)
        if change < most:
            best, most = spare, change
    return best, most


@step
def _best_of_donor(w: Search, row: int, spare: int, change: float) -> tuple[int, float]:
    """Return the best replacement among the rows of the same donor."""
    s = w.s
    c, donor = s.owner[row], s.owner[spare]
    if s.cost[donor] == 0.0:
        return spare, change
    other = s.head[donor]
    while other != NONE:
        found = _refill(w, c, row, donor, other, change)
        if found < change:
            spare, change = other, found
        other = s.following[other]
    return spare, change


@step
def _swap(w: Search, row: int, found: int) -> float:
    """Swap a row with a row of one of the candidate clusters."""
    s = w.s
    c = s.owner[row]
    for i in range(found):
        other = w.best[i]
        paid = s.size[c] * s.cost[c] + s.size[other] * s.cost[other]
        best, least = best_exchange(s, row, other, paid - LEAST_GAIN)
        if best == NONE:
            continue
        leave(s, row)
        leave(s, best)
        join(s, c, best)
        join(s, other, row)
        refresh(w.o, s, c)
        refresh(w.o, s, other)
        return paid - least
    return 0.0


@step
def best_exchange(s: Clusters, row: int, other: int, most: float) -> tuple[int, float]:
    """Return the best possible row of a cluster to swap ``row`` with, and the cost of both then."""
    codes, flat, layout, box, following = s.codes, s.flat, s.layout, s.box, s.following
    c = s.owner[row]
    here, there, ruled = s.size[c], s.size[other], s.r.kinds.shape[0] > 0
    best = NONE
    candidate = s.head[other]
    while candidate != NONE:
        cost = exchanged_cost(flat, layout, box, other, codes, candidate, row, most / there)
        total = there * cost
        if total < most:
            bound = (most - total) / here
            total += here * exchanged_cost(flat, layout, box, c, codes, row, candidate, bound)
            if total < most and _may_swap(s, row, candidate):
                best, most = candidate, total
        if s.cost[other] == 0.0 and not ruled:
            break
        candidate = following[candidate]
    return best, most


@step
def _may_swap(s: Clusters, a: int, b: int) -> bool:
    """Return True if the clusters of two rows meet the rules with each other's row."""
    return cluster_holds(s, s.owner[a], a, b) and cluster_holds(s, s.owner[b], b, a)


@step
def absorb_failing(w: Search, members: Int64s) -> None:
    """Dissolve every cluster that is too small or violates a rule, at any cost."""
    s = w.s
    for c in range(s.size.shape[0]):
        if s.size[c] > 0 and (s.size[c] < w.k or not cluster_holds(s, c, NONE, NONE)):
            _dissolve(w, c, members, np.inf)


@step
def patience(s: Clusters, saved: float, heat: float) -> int:
    """Return how many consecutive tries may fail, -1 for any number; saved: by single moves."""
    paid = 0.0
    for c in range(s.size.shape[0]):
        paid += s.size[c] * s.cost[c]
    stops = heat == 0.0 or saved > UNSETTLED * paid
    return FRUITLESS if s.layout.shape[0] >= WIDE and stops else NONE


@step
def dissolve_clusters(w: Search, members: Int64s, patient: int) -> float:
    """Dissolve clusters until ``patient`` consecutive failures (-1: any); return the saving."""
    saved, in_vain = 0.0, 0
    for c in range(w.s.size.shape[0]):
        if w.s.size[c] > 0 and w.s.cost[c] > 0.0:
            gain = _dissolve(w, c, members, w.s.size[c] * w.s.cost[c] - LEAST_GAIN)
            saved += gain
            in_vain = 0 if gain > 0.0 else in_vain + 1
            if in_vain == patient:
                break
    return saved


@step
def _dissolve(w: Search, c: int, members: Int64s, budget: float) -> float:
    """Move the rows of a cluster one by one within the budget, or none; return the rest of it."""
    s = w.s
    n = ZERO
    row = s.head[c]
    while row != NONE:
        members[n] = row
        budget -= w.alone[row]
        n += 1
        row = s.following[row]
    for i in range(n):
        row = members[i]
        budget += w.alone[row]
        target = NONE
        for j in range(find_cheapest(w, row, c, budget)):
            if cluster_holds(s, w.best[j], NONE, row):
                target = w.best[j]
                budget -= w.rise[j]
                break
        if target == NONE:
            _undo(w, c, members, i)
            return 0.0
        unlink(s, row)
        join(s, target, row)
        refresh(w.o, s, target)
    s.cost[c] = 0.0
    refresh(w.o, s, c)
    return budget


@step
def _undo(w: Search, c: int, members: Int64s, n: int) -> None:
    """Move the first n rows back to the cluster, whose bounds are unchanged."""
    s = w.s
    for i in range(n - 1, -1, -1):
        s.cost[s.owner[members[i]]] = STALE
        unlink(s, members[i])
        link(s, members[i], c)
    for other in range(s.cost.shape[0]):
        if s.cost[other] == STALE:
            rescan(s, other)
            refresh(w.o, s, other)
