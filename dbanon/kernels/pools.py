"""Greedy k-member clustering of a few hundred rows (Byun et al., DASFAA 2007, section 3.2).

Departs from the paper where it saves time without changing the result: the cost of taking a row
in is computed anew only when the last row changed the box.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dbanon.kernels.boxes import half_bits, with_code
from dbanon.kernels.clusters import NONE, clear, cost_of, widen
from dbanon.kernels.compile import kernel, merged
from dbanon.kernels.dice import roll
from dbanon.kernels.diversity import is_wanted, rows_hold
from dbanon.kernels.layout import BETWEEN, DISTINCT, HI, LO, SET, STRIDE

EVERY, LAST_BIT = -1, 62
HOPELESS = -2

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.kernels.diversity import Rules


class Pool(NamedTuple):
    """Rows to be grouped and work memory; all arrays have room for the largest pool.

    codes: (n, d) of all rows; flat, layout: costs; rows: the rows in the pool; label: the group of
    each; left: places of ``rows`` not grouped yet; cost: of the growing box with each of ``left``;
    part: (room, d) the same by place and column; picked: rows of the growing group; box: (groups,
    d, 4) of the groups, the last for any use; size: (groups,).
    """

    codes: NDArray[np.int32]
    flat: NDArray[np.float64]
    layout: NDArray[np.int64]
    rows: NDArray[np.int32]
    label: NDArray[np.int32]
    left: NDArray[np.int32]
    cost: NDArray[np.float64]
    part: NDArray[np.float64]
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
        np.empty((room, codes.shape[1])),
        np.empty(room + 1, np.int32),
        np.empty((groups + 1, codes.shape[1], 4), np.int32),
        np.empty(groups, np.int64),
    )


@merged
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


@merged
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


@merged
def _grow(p: Pool, n_left: int, r: Rules, k: int, g: int, seed: int) -> int:
    """Grow one group from a place of ``left``; return how many rows are left.

    All of them when the rows left cannot make a group that keeps the rules.
    """
    # arrays are taken out of the tuple once, which saves counting references at every step
    codes, flat, layout, box, rows, left = p.codes, p.flat, p.layout, p.box, p.rows, p.left
    cost, part, picked, label, ruled = p.cost, p.part, p.picked, p.label, r.kinds.shape[0] > 0
    start, place, size = n_left, seed, 0
    clear(layout, box, g)
    while True:
        chosen = left[place]
        picked[size] = rows[chosen]
        size += 1
        n_left -= 1
        left[place], left[n_left] = left[n_left], chosen
        cost[place] = cost[n_left]
        changed = widen_pair(layout, box, g, codes, rows[chosen])
        if size >= k and (not ruled or rows_hold(r, picked, size)):
            break
        if n_left == 0:
            return start
        if size == 1:
            changed = EVERY
        if changed != 0:
            _price(flat, layout, box, g, codes, rows, left[:n_left], cost, part, changed)
        place = _cheapest_new(p, n_left, r, k, size) if ruled else NONE
        if place == HOPELESS:
            return start
        if place == NONE:
            place = int(np.argmin(cost[:n_left]))
    for i in range(n_left, start):
        label[left[i]] = g
    p.size[g] = size
    return n_left


@merged
def widen_pair(
    layout: NDArray[np.int64],
    box: NDArray[np.int32],
    g: int,
    codes: NDArray[np.int32],
    row: int,
) -> int:
    """Take a row into the first bounds of a group; return the changed columns as bits.

    All columns from the 63rd on share a bit.
    """
    changed = 0
    for j in range(layout.shape[0]):
        code = codes[row, j]
        lo, hi = box[g, j, LO], box[g, j, HI]
        if layout[j, STRIDE] == SET:
            low, high = half_bits(code)
            box[g, j, LO], box[g, j, HI] = lo | low, hi | high
        else:
            box[g, j, LO], box[g, j, HI] = min(lo, code), max(hi, code)
        if lo != box[g, j, LO] or hi != box[g, j, HI]:
            changed |= 1 << min(j, LAST_BIT)
    return changed


@merged
def _price(
    flat: NDArray[np.float64],
    layout: NDArray[np.int64],
    box: NDArray[np.int32],
    g: int,
    codes: NDArray[np.int32],
    rows: NDArray[np.int32],
    left: NDArray[np.int32],
    cost: NDArray[np.float64],
    part: NDArray[np.float64],
    changed: int,
) -> None:
    """Compute what group g would cost with each of the rows left, where columns changed."""
    for i in range(left.shape[0]):
        place = left[i]
        row = rows[place]
        total = 0.0
        for j in range(layout.shape[0]):
            if (changed >> min(j, LAST_BIT)) & 1:
                part[place, j] = with_code(
                    flat, layout, j, box[g, j, LO], box[g, j, HI], codes[row, j]
                )
            total += part[place, j]
        cost[i] = total


@kernel
def _cheapest_new(p: Pool, n_left: int, r: Rules, k: int, size: int) -> int:
    """Return the place of the cheapest row of a wanted value if a rule presses, else NONE.

    HOPELESS when a rule asks for a new value and none is left.
    """
    rule = _pressing_rule(p, r, k, size)
    if rule == NONE:
        return NONE
    values = r.sensitive[:, r.columns[rule]]
    for i in range(size):
        r.counts[values[p.picked[i]]] += 1
    best, least = NONE, np.inf
    for i in range(n_left):
        if p.cost[i] < least and is_wanted(r, rule, size, p.rows[p.left[i]]):
            best, least = i, p.cost[i]
    for i in range(size):
        r.counts[values[p.picked[i]]] = 0
    return HOPELESS if best == NONE and r.kinds[rule] == DISTINCT else best


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


@merged
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


@kernel
def groups_hold(p: Pool, n: int, groups: int, r: Rules) -> bool:
    """Whether every group of the first n rows keeps the rules."""
    if r.kinds.shape[0] == 0:
        return True
    for g in range(groups):
        m = 0
        for i in range(n):
            if p.label[i] == g:
                p.picked[m] = p.rows[i]
                m += 1
        if not rows_hold(r, p.picked, m):
            return False
    return True
