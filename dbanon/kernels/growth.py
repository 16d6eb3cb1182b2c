"""Greedy k-member clustering of a few hundred rows (Byun et al., DASFAA 2007, section 3.2).

Departs from the paper where it saves time without changing the result: the cost of taking a row
in is computed anew only when the last row changed the box.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dbanon.kernels.boxes import with_code
from dbanon.kernels.clusters import NONE, clear, cost_of, widen
from dbanon.kernels.compile import inlined, kernel
from dbanon.kernels.dice import roll
from dbanon.kernels.diversity import is_wanted, rows_hold
from dbanon.kernels.layout import BETWEEN, DISTINCT, HI, LO

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.kernels.diversity import Rules


class Pool(NamedTuple):
    """Rows to be grouped and work memory; all arrays have room for the largest pool.

    codes: (n, d) of all rows; flat, layout: costs; rows: the rows in the pool; label: the group of
    each; left: places of ``rows`` not grouped yet; cost: of the growing box with each of ``left``;
    picked: rows of the growing group; box: (groups, d, 4) of the groups, the last for any use;
    size: (groups,).
    """

    codes: NDArray[np.int32]
    flat: NDArray[np.float64]
    layout: NDArray[np.int64]
    rows: NDArray[np.int32]
    label: NDArray[np.int32]
    left: NDArray[np.int32]
    cost: NDArray[np.float64]
    picked: NDArray[np.int32]
    box: NDArray[np.int32]
    size: NDArray[np.int64]


@kernel
def make_pool(
    codes: NDArray[np.int32],
    flat: NDArray[np.float64],
    layout: NDArray[np.int64],
    room: int,
    groups: int,
) -> Pool:
    """Return work memory for pools of at most ``room`` rows and ``groups`` groups."""
    return Pool(
        codes,
        flat,
        layout,
        np.empty(room, np.int32),
        np.empty(room, np.int32),
        np.empty(room, np.int32),
        np.empty(room, np.float64),
        np.empty(room + 1, np.int32),
        np.empty((groups + 1, codes.shape[1], 4), np.int32),
        np.empty(groups, np.int64),
    )


@inlined
def _widened_cost(
    flat: NDArray[np.float64],
    layout: NDArray[np.int64],
    box: NDArray[np.int32],
    g: int,
    codes: NDArray[np.int32],
    row: int,
) -> float:
    """Return the cost of the box of group g with one more row."""
    total = 0.0
    for j in range(layout.shape[0]):
        total += with_code(flat, layout, j, box[g, j, LO], box[g, j, HI], codes[row, j])
    return total


@kernel
def grow_groups(p: Pool, n: int, r: Rules, k: int, dice: NDArray[np.uint64], far: bool) -> int:
    """Group the first n rows of a pool; return the number of groups, 0 when it fails.

    ``far`` takes the row farthest from the last one for the next seed, else a random one. Groups
    have at least k rows; the rules are sought, not proved. O(n^2 / k * changes of the box * d).
    """
    for i in range(n):
        p.left[i] = i
    n_left, groups = n, 0
    seed = roll(dice, n)
    if far:
        seed = _farthest(p, n_left, p.rows[seed])
    while n_left >= k:
        before = n_left
        n_left = _grow(p, n_left, r, k, groups, seed)
        if n_left == before:
            break
        groups += 1
        if n_left >= k:
            last = p.picked[before - n_left - 1]
            seed = _farthest(p, n_left, last) if far else roll(dice, n_left)
    if groups > 0:
        for i in range(n_left):
            _attach(p, p.left[i], groups)
    return groups


@kernel
def _farthest(p: Pool, n_left: int, row: int) -> int:
    """Return the place in ``left`` of the row that costs most together with ``row``."""
    codes, flat, layout, box, rows, left = p.codes, p.flat, p.layout, p.box, p.rows, p.left
    last = box.shape[0] - 1
    clear(layout, box, last)
    widen(layout, box, last, codes, row)
    best, most = 0, -1.0
    for i in range(n_left):
        cost = _widened_cost(flat, layout, box, last, codes, rows[left[i]])
        if cost > most:
            best, most = i, cost
    return best


@kernel
def _grow(p: Pool, n_left: int, r: Rules, k: int, g: int, seed: int) -> int:
    """Grow one group from a place of ``left``; return how many rows are left.

    All of them when the rows left cannot make a group that keeps the rules.
    """
    start, place, size, box_cost = n_left, seed, 0, -1.0
    clear(p.layout, p.box, g)
    while True:
        chosen = p.left[place]
        row = p.rows[chosen]
        p.picked[size] = row
        size += 1
        n_left -= 1
        p.left[place], p.left[n_left] = p.left[n_left], chosen
        p.cost[place] = p.cost[n_left]
        widen(p.layout, p.box, g, p.codes, row)
        if size >= k and rows_hold(r, p.picked, size):
            break
        if n_left == 0:
            return start
        now = cost_of(p.flat, p.layout, p.box, g)
        if now != box_cost:
            box_cost = now
            _price(p, n_left, g)
        place = _cheapest(p, n_left, r, _pressing_rule(p, r, k, size), size)
    for i in range(n_left, start):
        p.label[p.left[i]] = g
    p.size[g] = size
    return n_left


@kernel
def _price(p: Pool, n_left: int, g: int) -> None:
    """Compute what group g would cost with each of the rows left."""
    codes, flat, layout, box, rows, left = p.codes, p.flat, p.layout, p.box, p.rows, p.left
    cost = p.cost
    for i in range(n_left):
        cost[i] = _widened_cost(flat, layout, box, g, codes, rows[left[i]])


@kernel
def _cheapest(p: Pool, n_left: int, r: Rules, rule: int, size: int) -> int:
    """Return the place in ``left`` of the cheapest row, of a new value if a rule presses."""
    cost = p.cost
    best, least = NONE, np.inf
    if rule != NONE:
        for i in range(n_left):
            if cost[i] < least and is_wanted(r, rule, p.picked, size, p.rows[p.left[i]]):
                best, least = i, cost[i]
    if best == NONE:
        for i in range(n_left):
            if cost[i] < least:
                best, least = i, cost[i]
    return best


@kernel
def _pressing_rule(p: Pool, r: Rules, k: int, size: int) -> int:
    """Return a rule that the group will not keep unless the next row has a new value, or NONE."""
    for rule in range(r.kinds.shape[0]):
        if r.kinds[rule] != DISTINCT:
            if size >= k or r.kinds[rule] >= BETWEEN:
                return rule
            continue
        column, met = r.columns[rule], 0
        for i in range(size):
            value = r.sensitive[p.picked[i], column]
            met += r.counts[value] == 0
            r.counts[value] += 1
        for i in range(size):
            r.counts[r.sensitive[p.picked[i], column]] = 0
        missing = r.limits[rule, 0] - met
        if missing > 0 and k - size <= missing:
            return rule
    return NONE


@kernel
def _attach(p: Pool, place: int, groups: int) -> None:
    """Put a row that is left into the group whose cost rises least."""
    codes, flat, layout, box, size = p.codes, p.flat, p.layout, p.box, p.size
    row = p.rows[place]
    best, least = 0, np.inf
    for g in range(groups):
        rise = (size[g] + 1) * _widened_cost(flat, layout, box, g, codes, row)
        rise -= size[g] * cost_of(flat, layout, box, g)
        if rise < least:
            best, least = g, rise
    widen(layout, box, best, codes, row)
    size[best] += 1
    p.label[place] = best
