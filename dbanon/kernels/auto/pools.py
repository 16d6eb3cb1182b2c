"""Greedy k-member clustering of a few hundred rows (after Byun et al., DASFAA 2007, section 3.2).

Costs are recomputed only in columns where the last row changed the box.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dbanon.kernels.auto.clusters import LAST_BIT, NONE, clear, cost_of, costs_alone, widen_pair
from dbanon.kernels.auto.cuts import cut_all, make_cutter
from dbanon.kernels.auto.diversity import (
    SCRATCH,
    Rules,
    forget_rows,
    hold,
    is_wanted,
    make_rules,
    put,
    slot_holds,
)
from dbanon.kernels.boxes.costs import with_code
from dbanon.kernels.compilation import ZERO, maker, step
from dbanon.kernels.layout import BETWEEN, DISTINCT, HI, LO, SIZE, START, STRIDE, TABLE
from dbanon.kernels.random import make_dice, roll

EVERY: Any = np.int64(-1)
HOPELESS: Any = np.int64(-2)
FAR: Any = np.bool_(True)

if TYPE_CHECKING:
    from dbanon.kernels.layout import Floats, Int32s, Int64s, UInt64s


class Pool(NamedTuple):
    """Rows to be grouped, and work memory with room for the largest pool.

    codes: (n, d) of all rows; flat, layout: costs; alone: (n,) cost of each row alone; rows: of the
    pool; label: group of each; left: indices into ``rows`` not grouped yet; code: (d, room) their
    codes; part: (d, room) cost of the growing box with each, by column; cost: (room,) the sum with
    ``taken``: (room,) infinite once in the growing group, before that -alone / k; picked: rows of
    the growing group; box: (groups + 1, d, 4), the last for any use; size: (groups,).
    """

    codes: Int32s
    flat: Floats
    layout: Int64s
    alone: Floats
    rows: Int64s
    label: Int64s
    left: Int64s
    code: Int32s
    part: Floats
    cost: Floats
    taken: Floats
    picked: Int64s
    box: Int32s
    size: Int64s


@maker
def make_pool(codes: Int32s, flat: Floats, layout: Int64s, room: int, groups: int) -> Pool:
    """Return work memory for pools of at most ``room`` rows and ``groups`` groups."""
    d = codes.shape[1]
    return Pool(
        codes,
        flat,
        layout,
        costs_alone(codes, flat, layout),
        np.empty(room, np.int64),
        np.empty(room, np.int64),
        np.empty(room, np.int64),
        np.empty((d, room), np.int32),
        np.empty((d, room)),
        np.empty(room),
        np.zeros(room),
        np.empty(room + 1, np.int64),
        np.empty((groups + 1, d, 4), np.int32),
        np.empty(groups, np.int64),
    )


@step
def grow_groups(p: Pool, n: int, r: Rules, k: int, dice: UInt64s, far: bool, most: int) -> int:
    """Group the first n rows of a pool; return the number of groups, 0 on failure.

    far: the next seed is the row farthest from the last one, otherwise random. Groups have at least
    k rows; the rules are a goal, not guaranteed. O(n^2 / k * changes of the box).
    """
    codes, rows, left, code = p.codes, p.rows, p.left, p.code
    for i in range(n):
        left[i] = i
        p.taken[i] = -p.alone[rows[i]] / k
        for j in range(code.shape[0]):
            code[j, i] = codes[rows[i], j]
    n_left, groups = n, ZERO
    seed = roll(dice, n)
    if far:
        seed = _farthest(p, n_left, rows[seed])
    while n_left >= k and groups < most:
        size = _grow(p, n_left, r, k, groups, seed)
        if size == 0:
            break
        n_left = _squeeze(p, n_left, groups)
        groups += 1
        if n_left >= k:
            seed = _farthest(p, n_left, p.picked[size - 1]) if far else roll(dice, n_left)
    for i in range(n_left):
        p.label[left[i]] = NONE
    return groups


@step
def _price_column(p: Pool, j: int, lo: int, hi: int, n_left: int) -> None:
    """Compute the cost of bounds in column j with each of the remaining rows."""
    flat, layout, code, part = p.flat, p.layout, p.code, p.part
    start, width = layout[j, START] + 1, layout[j, SIZE] + 1
    if layout[j, STRIDE] == TABLE:
        for i in range(n_left):
            part[j, i] = flat[start + min(lo, code[j, i]) * width + max(hi, code[j, i])]
    else:
        for i in range(n_left):
            part[j, i] = with_code(flat, layout, j, lo, hi, code[j, i])


@step
def _price(p: Pool, g: int, n_left: int, changed: int) -> None:
    """Compute the cost of group g with each of the remaining rows, for changed columns."""
    part, cost, taken = p.part, p.cost, p.taken
    for i in range(n_left):
        cost[i] = taken[i]
    for j in range(part.shape[0]):
        if (changed >> min(j, LAST_BIT)) & 1:
            _price_column(p, j, p.box[g, j, LO], p.box[g, j, HI], n_left)
        for i in range(n_left):
            cost[i] += part[j, i]


@step
def _farthest(p: Pool, n_left: int, row: int) -> int:
    """Return the index in ``left`` of the row that costs most together with ``row``."""
    last = p.box.shape[0] - 1
    clear(p.layout, p.box, last)
    widen_pair(p.layout, p.box, last, p.codes, row)
    _price(p, last, n_left, EVERY)
    best, most, cost = 0, -1.0, p.cost
    for i in range(n_left):
        if cost[i] > most:
            best, most = i, cost[i]
    return best


@step
def _grow(p: Pool, n_left: int, r: Rules, k: int, g: int, seed: int) -> int:
    """Grow a group from an index of ``left``; return its size, 0 if it cannot meet the rules."""
    codes, layout, box, rows, left, picked = p.codes, p.layout, p.box, p.rows, p.left, p.picked
    cost, taken, ruled = p.cost, p.taken, r.kinds.shape[0] > 0
    place, size, least = seed, ZERO, np.inf
    clear(layout, box, g)
    while place >= 0:
        row = rows[left[place]]
        picked[size] = row
        size += 1
        put(r, SCRATCH, row, 1)
        taken[place] = np.inf
        changed = widen_pair(layout, box, g, codes, row)
        if size >= k and (not ruled or slot_holds(r, SCRATCH, size)):
            forget_rows(r, picked, size)
            p.size[g] = size
            return size
        cost[place] = np.inf
        if size == 1:
            changed = EVERY
        if changed != 0:
            _price(p, g, n_left, changed)
        at = ZERO + place if changed == 0 and not ruled else n_left
        place = _cheapest_new(p, n_left, r, k, size) if ruled else NONE
        if place == NONE:
            place, least = _cheapest(cost, n_left, at, least)
    forget_rows(r, picked, size)
    return 0


@step
def _cheapest(cost: Floats, n_left: int, at: int, least: float) -> tuple[int, float]:
    """Return the first place of least cost and this cost, (NONE, infinity) if all are taken.

    at: first place that may cost ``least``, if no place costs less; n_left if unknown.
    """
    while at < n_left and cost[at] > least:
        at += 1
    if at == n_left:
        at, least = NONE, np.inf
        for i in range(n_left):
            if cost[i] < least:
                at, least = ZERO + i, cost[i]
    return at, least


@step
def _squeeze(p: Pool, n_left: int, g: int) -> int:
    """Label the rows taken by the group, and close the gaps; return the remaining number."""
    label, left, code, taken = p.label, p.left, p.code, p.taken
    kept = 0
    for i in range(n_left):
        if taken[i] > 0.0:
            label[left[i]] = g
            continue
        left[kept] = left[i]
        taken[kept] = taken[i]
        for j in range(code.shape[0]):
            code[j, kept] = code[j, i]
        kept += 1
    return kept


@step
def _cheapest_new(p: Pool, n_left: int, r: Rules, k: int, size: int) -> int:
    """Return the cheapest row of a value that a rule needs, NONE, or HOPELESS if none is left."""
    rule = _pressing_rule(r, k, size)
    if rule == NONE:
        return NONE
    best, least = NONE, np.inf
    for i in range(n_left):
        if p.cost[i] < least and is_wanted(r, rule, size, p.rows[p.left[i]]):
            best, least = i, p.cost[i]
    return HOPELESS if best == NONE and r.kinds[rule] == DISTINCT else best


@step
def _pressing_rule(r: Rules, k: int, size: int) -> int:
    """Return a rule that fails unless the next row has a new value, or NONE."""
    for rule in range(r.kinds.shape[0]):
        if r.kinds[rule] != DISTINCT:
            if size >= k or r.kinds[rule] >= BETWEEN:
                return rule
            continue
        missing = r.limits[rule, 0] - r.sums[rule, SCRATCH]
        if missing > 0 and k - size <= missing:
            return rule
    return NONE


@step
def attach_rest(p: Pool, n: int, groups: int) -> None:
    """Add every ungrouped row of the pool to the group of least rise."""
    codes, flat, layout, box, size = p.codes, p.flat, p.layout, p.box, p.size
    for i in range(n if groups > 0 else 0):
        if p.label[i] != NONE:
            continue
        row, best, least = p.rows[i], 0, np.inf
        for g in range(groups):
            cost = 0.0
            for j in range(layout.shape[0]):
                cost += with_code(flat, layout, j, box[g, j, LO], box[g, j, HI], codes[row, j])
            rise = (size[g] + 1) * cost - size[g] * cost_of(flat, layout, box, g)
            if rise < least:
                best, least = g, rise
        widen_pair(layout, box, best, codes, row)
        size[best] += 1
        p.label[i] = best


@step
def groups_hold(p: Pool, n: int, groups: int, r: Rules) -> bool:
    """Return True if every group of the first n rows meets the rules."""
    if r.kinds.shape[0] == 0:
        return True
    for g in range(groups):
        m = ZERO
        for i in range(n):
            if p.label[i] == g:
                p.picked[m] = p.rows[i]
                m += 1
        if not hold(r, p.picked, m):
            return False
    return True


@maker
def grow_blocks(
    codes: Int32s,
    sensitive: Int32s,
    flat: Floats,
    layout: Int64s,
    rules: tuple[Int64s, Int64s, Floats],
    numbers: Int64s,
    label: Int32s,
) -> None:
    """Fill in the cluster of each row, (n,); all rows together must meet the rules.

    numbers: k, the seed, and the most rows of a block, which is one cluster if its greedy clusters
    violate the rules. O(n d^2 log(n / most) + n most d).
    """
    k, seed, most = numbers[0], numbers[1], numbers[2]
    n = codes.shape[0]
    r = make_rules(rules[0], rules[1], rules[2], sensitive)
    least = max(k, most // 8)
    rows, ends = np.arange(n), np.empty(n // least + 1, np.int64)
    blocks = cut_all(make_cutter(codes, flat, layout, n), rows, r, least, most, ends)
    largest = ends[0]
    for block in range(1, blocks):
        largest = max(largest, ends[block] - ends[block - 1])
    p = make_pool(codes, flat, layout, largest, largest // k + 2)
    dice = make_dice(seed, n)
    found, start = 0, 0
    for block in range(blocks):
        size = ends[block] - start
        for i in range(size):
            p.rows[i] = rows[start + i]
        groups = grow_groups(p, size, r, k, dice, FAR, size) if size >= 2 * k else 0
        attach_rest(p, size, groups)
        if not groups_hold(p, size, groups, r):
            groups = 0
        for i in range(size):
            label[p.rows[i]] = found + (p.label[i] if groups > 0 else 0)
        found += max(groups, 1)
        start = ends[block]
