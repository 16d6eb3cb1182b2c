"""Carve clusters out of all rows: the cheapest box of k rows first, among boxes around seeds.

A box shrinks from the nearest rows to k; seeds whose boxes lost rows to a cluster get another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dbanon.kernels.auto.clusters import NONE
from dbanon.kernels.auto.diversity import Rules, hold, make_rules
from dbanon.kernels.boxes.costs import box_cost
from dbanon.kernels.boxes.shrinking import (
    BINS,
    Carver,
    Ladders,
    copy_levels,
    find_box,
    is_in,
    make_carver,
    stand,
)
from dbanon.kernels.compilation import ZERO, kernel, maker, step
from dbanon.kernels.layout import START
from dbanon.kernels.random import make_dice, shuffle

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.kernels.layout import Floats, Int32s, Int64s, UInt64s

    Levels = tuple[Int64s, Int64s, Int32s, Int32s, Floats]


LOOKED_AT = 2048  # rows that estimate the distance of the nearest
FEWEST = 3  # multiple of the requested rows that must be left of the nearest ones


class Seeds(NamedTuple):
    """Seed rows and their boxes, (q,) each.

    cost: of the box, infinite once useless; least: its least rows; at: (q, 2 d) its levels; near:
    (q, room) nearest rows, of which n_near (q,) may be left.
    """

    row: Int64s
    cost: Floats
    least: Int64s
    at: Int64s
    near: Int32s
    n_near: Int64s


@step
def _distance(w: Carver, seed: int, row: int, limit: float) -> float:
    """Return the cost of a seed and a row together, at least the limit if above it."""
    total = 0.0
    for j in range(w.codes.shape[1] - 1, -1, -1):  # large taxonomies come first, and take longest
        a, b = w.codes[seed, j], w.codes[row, j]
        total += box_cost(w.flat, w.layout, j, min(a, b), max(a, b))
        if total > limit:
            break
    return total


@step
def _gather(w: Carver, seed: int, live: Int64s, near: Int32s) -> int:
    """Fill ``near`` with about half as many rows as it holds; return their number."""
    limit, n, room = np.inf, live.shape[0], near.shape[0]
    if n > room:
        looked_at, most = min(n, LOOKED_AT), 0.0
        for j in range(w.codes.shape[1]):
            most += w.flat[w.layout[j, START]]
        width = most / BINS
        bins = w.bins
        bins[:] = 0
        for i in range(looked_at):
            bins[min(int(_distance(w, seed, live[i], np.inf) / width), BINS - 1)] += 1
        enough, up_to, b = looked_at * (room // 2) / n, 0, 0
        while b < BINS and up_to < enough:
            up_to += bins[b]
            b += 1
        limit = b * width
    found = ZERO
    for row in live:
        if _distance(w, seed, row, limit) <= limit:
            near[found] = row
            found += 1
            if found == room:
                break
    return found


@step
def _renew(w: Carver, s: Seeds, i: int, live: Int64s, label: Int32s) -> None:
    """Find a box around a seed among the rows without a cluster."""
    stand(w, s.row[i])
    near, n = s.near[i], ZERO
    for a in range(s.n_near[i]):
        if label[near[a]] == NONE:
            near[n] = near[a]
            n += 1
    if n < FEWEST * s.least[i] and n < live.shape[0]:
        n = _gather(w, s.row[i], live, near)
    s.n_near[i] = n
    s.cost[i] = find_box(w, near[:n], s.least[i])
    copy_levels(s.at[i], w.at)


@step
def _still_has(w: Carver, s: Seeds, i: int, label: Int32s) -> bool:
    """Return True if the box around a seed still has its least rows."""
    n = ZERO
    for a in range(s.n_near[i]):
        row = s.near[i, a]
        if label[row] == NONE and is_in(w, s.at[i], row):
            n += 1
            if n == s.least[i]:
                return True
    return False


@maker
def _make_seeds(q: int, d: int, room: int) -> Seeds:
    return Seeds(
        np.empty(q, np.int64),
        np.empty(q),
        np.empty(q, np.int64),
        np.empty((q, 2 * d), np.int64),
        np.empty((q, room), np.int32),
        np.zeros(q, np.int64),
    )


@step
def _list_live(live: Int64s, label: Int32s) -> int:
    """List the rows without a cluster in order; return their number."""
    n_live = ZERO
    for row in range(label.shape[0]):
        if label[row] == NONE:
            live[n_live] = row
            n_live += 1
    return n_live


@kernel
def carve(
    codes: Int32s,
    sensitive: Int32s,
    flat: Floats,
    layout: Int64s,
    rules: tuple[Int64s, Int64s, Floats],
    levels: Levels,
    numbers: Int64s,
) -> Int32s:
    """Return the cluster of each row, -1 for the rest: fewer than k, or not diverse.

    levels: of ``Ladders``; numbers: (5,) k, seeds per possible cluster, near rows per k, tries of a
    box, random seed. O(n^2 d seeds / k).
    """
    n, d = codes.shape
    k, per_cluster = numbers[0], numbers[1]
    room = min(n, 2 * numbers[2] * k)
    ladders = Ladders(levels[0], levels[1], levels[2], levels[3], levels[4])
    w = make_carver(codes, flat, layout, ladders, room, numbers[3])
    r = make_rules(rules[0], rules[1], rules[2], sensitive)
    q = max(min(n, per_cluster * (n // k)), 1)
    s = _make_seeds(q, d, room)
    label, live = np.full(n, NONE, np.int32), np.arange(n)
    dice = make_dice(numbers[4], n)
    shuffle(dice, live, n)
    n_live, found, before = n, 0, -1
    while n_live >= k and found > before:
        before = found
        many = max(min(n_live, per_cluster * (n_live // k)), 1)
        for i in range(many):
            s.row[i], s.least[i], s.n_near[i] = live[i], k, 0
            _renew(w, s, i, live[:n_live], label)
        found = _carve_all(w, s, many, r, live[:n_live], label, found)
        n_live = _list_live(live, label)
        shuffle(dice, live, n_live)
    return label


@step
def _carve_all(
    w: Carver, s: Seeds, many: int, r: Rules, live: Int64s, label: Int32s, found: int
) -> int:
    """Turn the boxes around seeds into clusters, cheapest first; return the number of clusters."""
    n_live = live.shape[0]
    while True:
        i = _cheapest(s, many)
        if s.cost[i] == np.inf:
            return found
        if label[s.row[i]] != NONE:
            s.cost[i] = np.inf
            continue
        stand(w, s.row[i])
        if not _still_has(w, s, i, label):
            _renew(w, s, i, live[:n_live], label)
            continue
        n = _collect(w, s.at[i], live[:n_live], r.members)
        if r.kinds.shape[0] > 0 and not hold(r, r.members, n):
            s.least[i] = n + max(n // 2, 1)
            s.n_near[i] = 0
            _renew(w, s, i, live[:n_live], label)
            continue
        for a in range(n):
            label[r.members[a]] = found
        found += 1
        n_live = _compact(live, n_live, label)


@step
def _cheapest(s: Seeds, many: int) -> int:
    best = ZERO
    for i in range(1, many):
        if s.cost[i] < s.cost[best]:
            best = i
    return best


@step
def _collect(w: Carver, at: Int64s, live: Int64s, members: Int64s) -> int:
    """Find the live rows in a box around the seed; return their number."""
    n = ZERO
    for row in live:
        if is_in(w, at, row):
            members[n] = row
            n += 1
    return n


@step
def _compact(live: NDArray[np.integer], n_live: int, label: Int32s) -> int:
    """Move the rows without a cluster to the front; return their number."""
    kept = ZERO
    for a in range(n_live):
        if label[live[a]] == NONE:
            live[kept] = live[a]
            kept += 1
    return kept


SMALLEST = 1024


class Table(NamedTuple):
    """The tuples without a class, and a hash table of them as generalized by one node.

    live: (u,) int32, these tuples, first; codes, weights, exact: (u, d), (u,) and (u,), in the same
    order, their codes, their rows and their sums of marks without generalization; raised, begin:
    (d,) int64, the generalized columns of the node, and where their marks begin; slots: (room,)
    int32, the class at each place of the hash table; places, keys, rows, last: (u,), of each class
    its place, its sum of marks, its rows and its last tuple; chain: (u,) int32, the previous tuple
    of the class.
    """

    live: Int32s
    codes: Int32s
    weights: Int64s
    exact: UInt64s
    raised: Int64s
    begin: Int64s
    slots: Int32s
    places: Int64s
    keys: UInt64s
    rows: Int64s
    last: Int32s
    chain: Int32s


@kernel
def _make_table(codes: Int32s, bounds: Int64s, begin: Int64s, marks: UInt64s) -> Table:
    u, d = codes.shape
    exact = np.zeros(u, np.uint64)
    for i in range(u):
        for j in range(d):
            exact[i] += marks[begin[j, 0] + codes[i, j]]
    live, weights = np.arange(u).astype(np.int32), bounds[1:] - bounds[:-1]
    room = SMALLEST
    while room < 2 * u:
        room *= 2
    slots, places = np.full(room, NONE, np.int32), np.empty(u, np.int64)
    keys, rows = np.empty(u, np.uint64), np.empty(u, np.int64)
    last, chain = np.empty(u, np.int32), np.empty(u, np.int32)
    raised, begins = np.empty(d, np.int64), np.empty(d, np.int64)
    return Table(
        live, codes.copy(), weights, exact, raised, begins, slots, places, keys, rows, last, chain
    )


@kernel
def peel(
    marks: UInt64s,
    begin: Int64s,
    nodes: NDArray[np.int16],
    codes: Int32s,
    bounds: Int64s,
    r: Rules,
    k: int,
    budget: int,
) -> Int32s:
    """Assign a number to every class of k rows that meets the rules, node after node.

    marks: a random number for each (column, level, generalized code), indexed by ``begin`` (d,
    levels) + code, from level 1 on less that of level 0; nodes: (m, d) level of each column; codes:
    (u, d) distinct tuples; bounds: (u + 1,) start of each tuple's rows; budget: most tuples to look
    up. Returns the class of each tuple, (u,), -1 for the rest. The sum of marks identifies a
    generalized tuple; a collision merges two classes, which costs but is safe.
    """
    u = codes.shape[0]
    label = np.full(u, NONE, np.int32)
    t = _make_table(codes, bounds, begin, marks)
    n_live, found = u, 0
    for node in nodes:
        budget -= n_live
        if n_live == 0 or budget < 0:
            break
        n_classes = _fill(t, begin, marks, node, n_live)
        before = found
        for c in range(n_classes):
            if t.rows[c] >= k and _holds(r, t.last[c], t.chain, bounds):
                _name(label, t.last[c], t.chain, found)
                found += 1
            t.slots[t.places[c]] = NONE
        if found > before:
            n_live = _shrink(t, n_live, label)
    return label


@step
def _shrink(t: Table, n_live: int, label: Int32s) -> int:
    """Move the tuples without a class to the front; return their number."""
    kept = ZERO
    for a in range(n_live):
        if label[t.live[a]] == NONE:
            t.live[kept] = t.live[a]
            t.weights[kept] = t.weights[a]
            t.exact[kept] = t.exact[a]
            for j in range(t.codes.shape[1]):
                t.codes[kept, j] = t.codes[a, j]
            kept += 1
    return kept


@step
def _fill(t: Table, begin: Int64s, marks: UInt64s, node: NDArray[np.int16], n_live: int) -> int:
    """Put the live tuples in classes by their generalized codes; return the number of classes."""
    room = t.slots.shape[0]
    while room > SMALLEST and room > 8 * n_live:
        room //= 2
    mask = np.uint64(room - 1)
    n_raised = 0
    for j in range(node.shape[0]):
        if node[j] > 0:
            t.raised[n_raised] = j
            t.begin[n_raised] = begin[j, node[j]]
            n_raised += 1
    n_classes = 0
    for a in range(n_live):
        key = t.exact[a]
        for m in range(n_raised):
            key += marks[t.begin[m] + t.codes[a, t.raised[m]]]
        at = np.int64(key & mask)
        c = t.slots[at]
        while c != NONE and t.keys[c] != key:
            at = (at + 1) & (room - 1)
            c = t.slots[at]
        if c == NONE:
            c = n_classes
            t.slots[at] = c
            t.places[c] = at
            t.keys[c] = key
            t.rows[c] = 0
            t.last[c] = NONE
            n_classes += 1
        t.chain[t.live[a]] = t.last[c]
        t.last[c] = t.live[a]
        t.rows[c] += t.weights[a]
    return n_classes


@step
def _holds(r: Rules, t: int, chain: Int32s, bounds: Int64s) -> bool:
    if r.kinds.shape[0] == 0:
        return True
    n = ZERO
    while t != NONE:
        for row in range(bounds[t], bounds[t + 1]):
            r.members[n] = row
            n += 1
        t = chain[t]
    return hold(r, r.members, n)


@step
def _name(label: Int32s, t: int, chain: Int32s, name: int) -> None:
    while t != NONE:
        label[t] = name
        t = chain[t]
