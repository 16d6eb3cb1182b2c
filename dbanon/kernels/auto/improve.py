"""One round of local search over blocks of clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dbanon.kernels.auto.blocks import cut_blocks
from dbanon.kernels.auto.clusters import (
    NONE,
    Clusters,
    clear,
    cluster_holds,
    cost_of,
    is_counted,
    join,
    leave,
    link,
    make_clusters,
    rescan,
    unlink,
    widen,
    without,
)
from dbanon.kernels.auto.cuts import Cutter, cut_all, make_cutter
from dbanon.kernels.auto.diversity import forget, make_rules_of_slots
from dbanon.kernels.auto.insertion_costs import (
    add_costs,
    cheapest_offers,
    cost_without,
    refresh,
    union_offers,
)
from dbanon.kernels.auto.moves import (
    FRUITLESS,
    LEAST_GAIN,
    STALE,
    Search,
    absorb_failing,
    dissolve_clusters,
    find_cheapest,
    make_search,
    pass_rows,
    patience,
)
from dbanon.kernels.auto.pools import (
    Pool,
    attach_rest,
    groups_hold,
    grow_blocks,
    grow_groups,
    make_pool,
)
from dbanon.kernels.boxes.shrinking import Carver, Ladders, find_box, is_in, make_carver, stand
from dbanon.kernels.compilation import ZERO, kernel, maker, step
from dbanon.kernels.random import make_dice, roll, shuffle, uniform

if TYPE_CHECKING:
    from dbanon.kernels.auto.carving import Levels
    from dbanon.kernels.layout import Bools, Floats, Int32s, Int64s


IMPROVE, GROW, DIVIDE = 0, 1, 2  # tasks

MILLIONTH = 1e-6
NOISE = 0.3
CUT_NOISE = 0.1
# One pool in so many has the nearest clusters; if boxes are carved, those that rows fit gain more.
NEAR, SELDOM_NEAR = 2, 10
# Boxes are carved if k is large, when growing far apart and cutting gain almost nothing.
BUILDERS, GROW_FAR, CUT, RANDOM, CARVE = 3, 0, 1, 2, 3


class Ways(NamedTuple):
    """How pools are rebuilt.

    heat: accepted relative rise of a pool's cost; anywhere: share of pools whose rows without a
    group of k may go to any cluster of the block; fitting: whether most have clusters that rows
    fit, and none is cut.
    """

    heat: float
    anywhere: float
    fitting: bool


class Rebuild(NamedTuple):
    """Work memory of rebuilds.

    p: the pool; q: for cutting; chosen: (most,) int64, clusters of the pool; ends: of the groups;
    rows, old: (n,) int64, old the previous cluster of each row; lossy: (g,) int64, clusters of
    nonzero cost; near: (n,) int32, rows in no box.
    """

    p: Pool
    q: Cutter
    chosen: Int64s
    ends: Int64s
    rows: Int64s
    old: Int64s
    lossy: Int64s
    near: Int32s


@maker
def make_rebuild(s: Clusters, k: int, most: int) -> Rebuild:
    """Return work memory for pools of at most ``most`` clusters."""
    codes, flat, layout = s.codes, s.flat, s.layout
    n = codes.shape[0]
    return Rebuild(
        make_pool(codes, flat, layout, n, n // k + 2),
        make_cutter(codes, flat, layout, n),
        np.empty(most, np.int64),
        np.empty(n // k + 2, np.int64),
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.empty(s.size.shape[0], np.int64),
        np.empty(n, np.int32),
    )


@step
def rebuild_clusters(
    w: Search, b: Rebuild, carver: Carver | None, tries: int, patient: int, how: Ways
) -> float:
    """Rebuild ``tries`` pools a cluster until ``patient`` failures (-1: any); return the saving.

    carver: for boxes; what uses it is not compiled for None.
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
        if how.heat > 0.0:
            other = lossy[roll(w.dice, n_lossy)]
            if s.size[other] > 0 and s.cost[other] > s.cost[c]:
                c = other
        if s.size[c] == 0 or s.cost[c] == 0.0:
            continue
        others = 1 + roll(w.dice, most - 1) if most > 1 else 0
        near = roll(w.dice, SELDOM_NEAR if how.fitting or carver is not None else NEAR) == 0
        found = choose_near(w, b, c, others) if near else choose_fitting(w, b, c, others)
        gain = _rebuild(w, b, carver, found, how)
        saved += gain
        in_vain = 0 if gain > 0.0 else in_vain + 1
        if in_vain == patient:
            break
    return saved


@step
def choose_near(w: Search, b: Rebuild, c: int, others: int) -> int:
    """Fill ``b.chosen`` with a cluster and its nearest by noisy union cost; return their number."""
    total, found = w.o.total, ZERO + 1
    b.chosen[0] = c
    union_offers(w.o, w.s, c)
    for other in range(total.shape[0]):
        total[other] *= 1.0 + NOISE * uniform(w.dice)
        if w.s.size[other] == 0 or other == c:
            total[other] = np.inf
    for _ in range(others):
        nearest = np.argmin(total)
        if total[nearest] < np.inf:
            total[nearest] = np.inf
            b.chosen[found] = nearest
            found += 1
    return found


@step
def choose_fitting(w: Search, b: Rebuild, c: int, others: int) -> int:
    """Fill ``b.chosen`` with a cluster and those that its rows fit best; return their number.

    Rows of a large box may fit small ones, although no union with these is cheap.
    """
    found = ZERO + 1
    b.chosen[0] = c
    for _ in range(2 * others):
        if found > others:
            break
        row = w.s.head[c]
        for _ in range(roll(w.dice, w.s.size[c])):
            row = w.s.following[row]
        fits = cheapest_offers(w.o, w.s, row, c, np.inf, w.best[:1], w.rise)
        if fits > 0 and w.best[0] not in b.chosen[:found]:
            b.chosen[found] = w.best[0]
            found += 1
    return found


@step
def _rebuild(w: Search, b: Rebuild, carver: Carver | None, found: int, how: Ways) -> float:
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
    anywhere = how.anywhere == 1.0 or (how.anywhere > 0.0 and uniform(w.dice) < how.anywhere)
    most = max(found - roll(w.dice, 2), 1) if anywhere else n
    groups = _group(w, b, carver, n, most, how.fitting)
    if groups == 0:
        return 0.0
    heat = paid * how.heat * uniform(w.dice) if how.heat > 0.0 else 0.0
    budget = paid + heat - LEAST_GAIN
    for g in range(groups):
        budget -= p.size[g] * cost_of(p.flat, p.layout, p.box, g)
    if budget <= 0.0 or not groups_hold(p, n, groups, s.r):
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
def _group(w: Search, b: Rebuild, carver: Carver | None, n: int, most: int, grown: bool) -> int:
    """Group the pool by a random method, all its n rows if ``most`` is n; return the number."""
    p = b.p
    if carver is not None or grown:
        builder = RANDOM + (roll(w.dice, 2) if carver is not None else ZERO)
    else:
        builder = ZERO + roll(w.dice, BUILDERS)
    if builder == CUT:
        return _cut_pool(w, b, n)
    groups = ZERO
    if builder != CARVE:
        groups = grow_groups(p, n, w.s.r, w.k, w.dice, builder == GROW_FAR, most)
    elif carver is not None:
        groups = _carve_pool(w, b, carver, n, most)
    if most == n:
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
            if cluster_holds(s, w.best[j], NONE, row):
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
    groups = cut_all(b.q, rows, w.s.r, w.k, ZERO, b.ends)
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
def _carve_pool(w: Search, b: Rebuild, q: Carver, n: int, most: int) -> int:
    """Group the pool by at most ``most`` boxes around random rows; return the number of groups."""
    p, near, left = b.p, b.near, b.p.left
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
    s, p, slots = w.s, b.p, found
    for c in range(s.size.shape[0]):
        if s.size[c] == 0 and slots < groups:
            b.ends[slots] = c
            slots += 1
    if slots < groups:
        return False
    for i in range(found):
        b.ends[i] = b.chosen[i]
        s.head[b.chosen[i]] = NONE
        s.size[b.chosen[i]] = 0
        s.cost[b.chosen[i]] = 0.0
        if is_counted(s.r):
            forget(s.r, b.chosen[i])
    for i in range(n):
        s.owner[p.rows[i]] = NONE  # of rows in no group
        if p.label[i] != NONE:
            link(s, p.rows[i], b.ends[p.label[i]])
    for g in range(groups):
        rescan(s, b.ends[g])
        refresh(w.o, s, b.ends[g])
    for i in range(groups, found):
        refresh(w.o, s, b.chosen[i])
    return True


MOST = 300  # clusters of one assignment


class Ring(NamedTuple):
    """Clusters that rotate rows, and work memory.

    clusters: (g,) int64, those of nonzero cost; rows: (m,) int64, the leaving row of each; price:
    (m, m) cost of cluster i with the row of cluster j instead of its own; code, place: (d, m), of
    these rows as in ``Offers``; taken: (m + 1,) int64, new cluster of each row, from 1, 0 for none;
    row_dual, dual: (m + 1,) dual prices; slack: (m + 1,); before: (m + 1,) int64; seen: (m + 1,)
    bool.
    """

    clusters: Int64s
    rows: Int64s
    price: Floats
    code: Int32s
    place: Floats
    taken: Int64s
    row_dual: Floats
    dual: Floats
    slack: Floats
    before: Int64s
    seen: Bools


@maker
def make_ring(n_slots: int, d: int) -> Ring:
    """Return work memory for the clusters of a block, of d columns."""
    m = min(n_slots, MOST)
    return Ring(
        np.empty(n_slots, np.int64),
        np.empty(m, np.int64),
        np.empty((m, m)),
        np.empty((d, m), np.int32),
        np.empty((d, m)),
        np.empty(m + 1, np.int64),
        np.empty(m + 1),
        np.empty(m + 1),
        np.empty(m + 1),
        np.empty(m + 1, np.int64),
        np.empty(m + 1, np.bool_),
    )


@step
def rotate(w: Search, a: Ring) -> float:
    """Rotate a row of each cluster; return the saving."""
    s, found = w.s, ZERO
    for c in range(s.size.shape[0]):
        if s.size[c] > 1 and s.cost[c] > 0.0:
            a.clusters[found] = c
            found += 1
    shuffle(w.dice, a.clusters, found)
    saved, most = 0.0, a.rows.shape[0]
    pieces = (found + most - 1) // most
    for piece in range(pieces):
        start, stop = piece * found // pieces, (piece + 1) * found // pieces
        chosen = a.clusters[start:stop]
        for i in range(stop - start):
            a.rows[i] = _dear_row(w, chosen[i])
        _set_prices(w, a, chosen)
        assign(a, stop - start)
        saved += _follow(w, a, chosen)
    return saved


@step
def _dear_row(w: Search, c: int) -> int:
    """Return a random row of a cluster, weighted by the saving without it."""
    s = w.s
    row, best, most = s.head[c], s.head[c], -1.0
    while row != NONE:
        less = s.cost[c] - cost_without(w.o, s, row)
        less = (less + 1e-3 * s.cost[c]) * uniform(w.dice)
        if less > most:
            best, most = row, less
        row = s.following[row]
    return best


@step
def _set_prices(w: Search, a: Ring, chosen: Int64s) -> None:
    s, m = w.s, chosen.shape[0]
    flat, layout, codes, price, rows = s.flat, s.layout, s.codes, a.price, a.rows
    for j in range(layout.shape[0]):
        for i in range(m):
            a.code[j, i] = codes[rows[i], j]
            a.place[j, i] = w.o.place[rows[i], j]
    for i in range(m):
        c = chosen[i]
        for other in range(m):
            price[i, other] = 0.0
        for j in range(layout.shape[0]):
            lo, hi = without(layout, s.box, c, j, codes[rows[i], j])
            add_costs(flat, layout, j, w.o.at[0, j], lo, hi, a.code[j], a.place[j], price[i, :m])
        for other in range(m):
            price[i, other] *= s.size[c]


@step
def assign(a: Ring, m: int) -> None:
    """Fill ``taken`` with the assignment of m clusters to m rows of least total price."""
    taken, before = a.taken, a.before
    for j in range(m + 1):
        taken[j], a.dual[j], a.row_dual[j] = 0, 0.0, 0.0
    for i in range(1, m + 1):
        taken[0], at = i, ZERO
        for j in range(m + 1):
            a.slack[j], a.seen[j] = np.inf, False
        while taken[at] != 0:
            at = _next_row(a, m, at)
        while at != 0:
            taken[at] = taken[before[at]]
            at = before[at]


@step
def _next_row(a: Ring, m: int, at: int) -> int:
    """Follow the cheapest edge from a row to a new one; return that row."""
    price, taken, dual, row_dual = a.price, a.taken, a.dual, a.row_dual
    slack, before, seen = a.slack, a.before, a.seen
    seen[at] = True
    cluster, least, nearest = taken[at], np.inf, ZERO
    for j in range(1, m + 1):
        if seen[j]:
            continue
        reduced = price[cluster - 1, j - 1] - row_dual[cluster] - dual[j]
        if reduced < slack[j]:
            slack[j], before[j] = reduced, at
        if slack[j] < least:
            least, nearest = slack[j], j
    for j in range(m + 1):
        if seen[j]:
            row_dual[taken[j]] += least
            dual[j] -= least
        else:
            slack[j] -= least
    return nearest


@step
def _follow(w: Search, a: Ring, chosen: Int64s) -> float:
    """Move rows along each cycle that saves something and meets the rules."""
    s, m, saved = w.s, chosen.shape[0], 0.0
    for j in range(1, m + 1):
        a.seen[j] = False
    for first in range(1, m + 1):
        gain, holds, length, j = 0.0, True, ZERO, first
        while not a.seen[j]:
            a.seen[j] = True
            into = a.taken[j]
            c = chosen[into - 1]
            gain += s.size[c] * s.cost[c] - a.price[into - 1, j - 1]
            if into != j:
                holds = holds and cluster_holds(s, c, a.rows[into - 1], a.rows[j - 1])
            length += 1
            j = into
        if length > 1 and gain > LEAST_GAIN and holds:
            saved += gain
            _turn(w, a, chosen, first, length)
    return saved


@step
def _turn(w: Search, a: Ring, chosen: Int64s, first: int, length: int) -> None:
    """Move each row of a cycle to its new cluster."""
    j = first
    for _ in range(length):
        leave(w.s, a.rows[j - 1])
        j = a.taken[j]
    for _ in range(length):
        join(w.s, chosen[a.taken[j] - 1], a.rows[j - 1])
        j = a.taken[j]
    for _ in range(length):
        refresh(w.o, w.s, chosen[j - 1])
        j = a.taken[j]


@kernel
def work_on(
    task: int,
    codes: Int32s,
    sensitive: Int32s,
    flat: Floats,
    layout: Int64s,
    rules: tuple[Int64s, Int64s, Floats],
    levels: Levels | None,
    found: Int32s,
    numbers: Int64s,
) -> None:
    """Run a round on the rows of a block, or grow or cut clusters; ``found`` is replaced.

    codes: (n, d), sensitive: (n, s); levels: of ``Ladders``, None without carving; found: (1, n),
    their clusters, or (2, n); numbers: (11,) k, clusters, row passes, tries per cluster, most
    clusters in a pool, seed, block, rotations, heat in millionths, and so is the share of pools
    whose rows may go anywhere, and 1 if fitting; or those of ``grow_blocks`` and ``cut_blocks``,
    which are parts of this kernel because each has machine code of its own of all that it calls.
    """
    if task != IMPROVE:
        if task == GROW:
            grow_blocks(codes, sensitive, flat, layout, rules, numbers, found[0])
        else:
            cut_blocks(codes, flat, layout, numbers, found)
        return
    k, n_clusters, n = numbers[0], numbers[1], codes.shape[0]
    n_slots = max(min(n_clusters + n_clusters // 2 + 4, n // k + 1), n_clusters)
    r = make_rules_of_slots(rules[0], rules[1], rules[2], sensitive, n_slots)
    s = make_clusters(codes, flat, layout, found[0], n_slots, r)
    w = make_search(s, k, make_dice(numbers[5], numbers[6]))
    order, saved = np.arange(n), 0.0
    absorb_failing(w, order)
    for _ in range(numbers[2]):
        saved += pass_rows(w, order)
    for _ in range(numbers[7]):
        saved += rotate(w, make_ring(n_slots, codes.shape[1]))
    how = Ways(numbers[8] * MILLIONTH, numbers[9] * MILLIONTH, numbers[10] != 0)
    patient = patience(s, saved, how.heat)
    # Hardly any large cluster dissolves in a hot round.
    dissolve_clusters(w, order, FRUITLESS if levels is not None and how.heat > 0.0 else patient)
    b = make_rebuild(s, k, min(numbers[4], n_clusters))
    if levels is None:
        rebuild_clusters(w, b, None, numbers[3], patient, how)
    else:
        carver = make_carver(codes, flat, layout, Ladders(*levels), n, ZERO)
        rebuild_clusters(w, b, carver, numbers[3], patient, how)
    for row in range(n):
        found[0, row] = s.owner[row]
