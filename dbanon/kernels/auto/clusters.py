"""Clusters of a block of rows while a search moves rows between them.

Rows of a cluster are a linked list. For each column, a cluster has its box, and the second least
and greatest code (the same if two rows share the extreme), which give the box without any one row.
A column published as sets has its set of values instead of the box, and the set of values that two
rows share instead of the second bounds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dbanon.kernels.auto.diversity import SCRATCH, Rules, count, make_rules, put, rule_holds
from dbanon.kernels.boxes.costs import box_cost, half_bits, with_code
from dbanon.kernels.compilation import ZERO, inlined, kernel, maker, step
from dbanon.kernels.layout import DISTINCT, EMPTY_HI, EMPTY_LO, HI, HI2, LO, LO2, SET, STRIDE

if TYPE_CHECKING:
    from dbanon.kernels.layout import Floats, Int32s, Int64s

NONE: Any = np.int64(-1)
LAST_BIT = 62  # of changed columns


class Clusters(NamedTuple):
    """Rows and clusters of a block.

    codes: (n, d) int32; flat, layout: costs of boxes; box: (g + 1, d, 4) int32, bounds LO and HI
    and second bounds LO2 and HI2, the last for any use; owner, following, previous: (n,) int64,
    cluster of each row and neighbours in the list, -1 at the ends; head: (g,) int64, first row;
    size: (g,) int64, 0 if the number is free; cost: (g,) float64, of one row; r: rules, with the
    counts of each cluster if they are few.
    """

    codes: Int32s
    flat: Floats
    layout: Int64s
    box: Int32s
    owner: Int64s
    following: Int64s
    previous: Int64s
    head: Int64s
    size: Int64s
    cost: Floats
    r: Rules


@maker
def make_clusters(
    codes: Int32s, flat: Floats, layout: Int64s, label: Int32s, n_slots: int, r: Rules
) -> Clusters:
    """Return the clusters of rows, given their ``label``; numbers up to ``n_slots`` are free.

    r: rules of ``n_slots`` slots.
    """
    n, d = codes.shape
    s = Clusters(
        codes,
        flat,
        layout,
        np.zeros((n_slots + 1, d, 4), np.int32),
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.full(n_slots, NONE, np.int64),
        np.zeros(n_slots, np.int64),
        np.zeros(n_slots),
        r,
    )
    for row in range(n - 1, -1, -1):
        link(s, row, ZERO + label[row])
    for c in range(n_slots):
        if s.size[c] > 0:
            rescan(s, c)
    return s


@step
def link(s: Clusters, row: int, c: int) -> None:
    """Insert a row at the head of a cluster's list; the box is unchanged."""
    first = s.head[c]
    s.owner[row] = c
    s.following[row] = first
    s.previous[row] = NONE
    if first != NONE:
        s.previous[first] = row
    s.head[c] = row
    s.size[c] += 1
    if is_counted(s.r):
        put(s.r, c, row, 1)


@step
def unlink(s: Clusters, row: int) -> None:
    """Remove a row from its cluster's list; the box is unchanged."""
    c, before, after = s.owner[row], s.previous[row], s.following[row]
    if before == NONE:
        s.head[c] = after
    else:
        s.following[before] = after
    if after != NONE:
        s.previous[after] = before
    s.size[c] -= 1
    if is_counted(s.r):
        put(s.r, c, row, -1)


@inlined
def is_counted(r: Rules) -> bool:
    """Return True if there are counts of each cluster."""
    return r.counts.shape[1] > 1 and r.kinds.shape[0] > 0


@step
def cluster_holds(s: Clusters, c: int, out: int, into: int) -> bool:
    """Return True if a cluster still meets the rules without row ``out``, with row ``into``.

    NONE is no row. O(values) a rule, or less; O(size) more without counts of each cluster.
    """
    r = s.r
    n_rules = r.kinds.shape[0]
    if n_rules == 0 or (out == NONE and into != NONE and _only_distinct(r)):
        return True
    slot, n = ZERO + c, s.size[c] - (out != NONE) + (into != NONE)
    if not is_counted(r):
        slot = SCRATCH
        _count_rows(s, c, 1)
    held = n > 0
    for rule in range(n_rules):
        held = held and _rule_holds_after(r, rule, slot, n, out, into)
    if not is_counted(r):
        _count_rows(s, c, -1)
    return held


@step
def _only_distinct(r: Rules) -> bool:
    for kind in r.kinds:
        if kind != DISTINCT:
            return False
    return True


@step
def _count_rows(s: Clusters, c: int, times: int) -> None:
    row = s.head[c]
    while row != NONE:
        put(s.r, SCRATCH, row, times)
        row = s.following[row]


@step
def _rule_holds_after(r: Rules, rule: int, slot: int, n: int, out: int, into: int) -> bool:
    column, before = r.columns[rule], r.sums[rule, slot]
    if out != NONE:
        count(r, rule, slot, r.sensitive[out, column], -1)
    if into != NONE:
        count(r, rule, slot, r.sensitive[into, column], 1)
    held = rule_holds(r, rule, slot, n)
    if out != NONE:
        count(r, rule, slot, r.sensitive[out, column], 1)
    if into != NONE:
        count(r, rule, slot, r.sensitive[into, column], -1)
    r.sums[rule, slot] = before
    return held


@step
def clear(layout: Int64s, box: Int32s, c: int) -> None:
    """Reset the bounds of a cluster to those of no row."""
    for j in range(layout.shape[0]):
        box[c, j, LO] = box[c, j, LO2] = layout[j, EMPTY_LO]
        box[c, j, HI] = box[c, j, HI2] = layout[j, EMPTY_HI]


@step
def widen(layout: Int64s, box: Int32s, c: int, codes: Int32s, row: int) -> None:
    """Extend the bounds of a cluster by a row."""
    for j in range(layout.shape[0]):
        code = codes[row, j]
        if layout[j, STRIDE] == SET:
            low, high = half_bits(code)
            box[c, j, LO2] |= box[c, j, LO] & low
            box[c, j, HI2] |= box[c, j, HI] & high
            box[c, j, LO] |= low
            box[c, j, HI] |= high
        else:
            if code < box[c, j, LO]:
                box[c, j, LO2] = box[c, j, LO]
                box[c, j, LO] = code
            elif code < box[c, j, LO2]:
                box[c, j, LO2] = code
            if code > box[c, j, HI]:
                box[c, j, HI2] = box[c, j, HI]
                box[c, j, HI] = code
            elif code > box[c, j, HI2]:
                box[c, j, HI2] = code


@step
def widen_pair(layout: Int64s, box: Int32s, g: int, codes: Int32s, row: int) -> int:
    """Extend bounds of a group by a row; return changed columns as bits (the last is shared)."""
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


@step
def cost_of(flat: Floats, layout: Int64s, box: Int32s, c: int) -> float:
    """Return the cost of one row of a cluster, by its box."""
    total = 0.0
    for j in range(layout.shape[0]):
        total += box_cost(flat, layout, j, box[c, j, LO], box[c, j, HI])
    return total


@step
def rescan(s: Clusters, c: int) -> None:
    """Recompute the bounds and the cost of a cluster; O(size * d)."""
    layout, box, codes, following = s.layout, s.box, s.codes, s.following
    clear(layout, box, c)
    row = s.head[c]
    while row != NONE:
        widen(layout, box, c, codes, row)
        row = following[row]
    s.cost[c] = cost_of(s.flat, layout, box, c) if s.size[c] > 0 else 0.0


@step
def join(s: Clusters, c: int, row: int) -> None:
    """Add a row to a cluster; O(d)."""
    if s.size[c] == 0:
        clear(s.layout, s.box, c)
    link(s, row, c)
    widen(s.layout, s.box, c, s.codes, row)
    s.cost[c] = cost_of(s.flat, s.layout, s.box, c)


@step
def leave(s: Clusters, row: int) -> None:
    """Remove a row from its cluster; O(size * d), less if bounds do not change."""
    c = s.owner[row]
    unlink(s, row)
    if not _is_inside(s, c, row):
        _shrink(s, c)


@step
def _is_inside(s: Clusters, c: int, row: int) -> bool:
    """Return True if the bounds of a cluster are the same without a row."""
    for j in range(s.layout.shape[0]):
        if s.layout[j, STRIDE] == SET:
            return False
        if not s.box[c, j, LO2] < s.codes[row, j] < s.box[c, j, HI2]:
            return False
    return True


@step
def _shrink(s: Clusters, c: int) -> None:
    """Recompute the bounds and the cost of a cluster that lost a row, until they are complete."""
    layout, box, codes, following = s.layout, s.box, s.codes, s.following
    before = box.shape[0] - 1
    for j in range(box.shape[1]):
        for bound in range(4):
            box[before, j, bound] = box[c, j, bound]
    clear(layout, box, c)
    row, met, check = s.head[c], 0, 64
    while row != NONE:
        widen(layout, box, c, codes, row)
        row = following[row]
        met += 1
        if met == check:
            if _is_same(box, c, before):
                break
            check *= 2
    s.cost[c] = cost_of(s.flat, layout, box, c) if s.size[c] > 0 else 0.0


@step
def _is_same(box: Int32s, a: int, b: int) -> bool:
    """Return True if two boxes have the same bounds."""
    for j in range(box.shape[1]):
        for bound in range(4):
            if box[a, j, bound] != box[b, j, bound]:
                return False
    return True


@inlined
def without(layout: Int64s, box: Int32s, c: int, j: int, code: int) -> tuple[int, int]:
    """Return the bounds of column j without one row of that code."""
    lo, hi = box[c, j, LO], box[c, j, HI]
    if layout[j, STRIDE] == SET:
        low, high = half_bits(code)
        lo, hi = lo & ~(low & ~box[c, j, LO2]), hi & ~(high & ~box[c, j, HI2])
    else:
        if code == lo:
            lo = box[c, j, LO2]
        if code == hi:
            hi = box[c, j, HI2]
    return lo, hi


@inlined
def left_cost(flat: Floats, layout: Int64s, box: Int32s, c: int, codes: Int32s, row: int) -> float:
    """Return the cost of a cluster without one of its rows; it has another."""
    total = 0.0
    for j in range(layout.shape[0]):
        lo, hi = without(layout, box, c, j, codes[row, j])
        total += box_cost(flat, layout, j, lo, hi)
    return total


@inlined
def exchanged_cost(
    flat: Floats,
    layout: Int64s,
    box: Int32s,
    c: int,
    codes: Int32s,
    out: int,
    into: int,
    most: float,
) -> float:
    """Return the cost of a cluster with row ``into`` instead of its row ``out``; O(d).

    Infinite above ``most``: a truncated sum could look like a tie when multiplied.
    """
    total = 0.0
    for j in range(layout.shape[0]):
        lo, hi = without(layout, box, c, j, codes[out, j])
        total += with_code(flat, layout, j, lo, hi, codes[into, j])
        if total > most:
            return np.inf
    return total


@kernel
def costs_alone(codes: Int32s, flat: Floats, layout: Int64s) -> Floats:
    """Return the cost of each row as a cluster of its own, (n,), which no search can save."""
    costs, box = np.empty(codes.shape[0]), np.empty((1, codes.shape[1], 4), np.int32)
    for row in range(codes.shape[0]):
        clear(layout, box, ZERO)
        widen(layout, box, ZERO, codes, row)
        costs[row] = cost_of(flat, layout, box, ZERO)
    return costs


@kernel
def total_cost(
    codes: Int32s, flat: Floats, layout: Int64s, label: Int32s, n_clusters: int
) -> float:
    """Return the sum over clusters of size * cost; O(n d)."""
    box = np.empty((n_clusters, codes.shape[1], 4), np.int32)
    size = np.zeros(n_clusters, np.int64)
    for c in range(n_clusters):
        clear(layout, box, c)
    for row in range(codes.shape[0]):
        c = ZERO + label[row]
        widen(layout, box, c, codes, row)
        size[c] += 1
    total = 0.0
    for c in range(n_clusters):
        total += size[c] * cost_of(flat, layout, box, c)
    return total


@kernel
def leaving_gains(
    codes: Int32s, flat: Floats, layout: Int64s, label: Int32s, n_clusters: int
) -> Floats:
    """Return how much the total of size * cost falls without each row, (n,)."""
    nothing = np.empty(0, np.int64)
    r = make_rules(nothing, nothing, np.empty((0, 2)), np.empty((codes.shape[0], 0), np.int32))
    s = make_clusters(codes, flat, layout, label, n_clusters, r)
    gains = np.zeros(codes.shape[0])
    for row in range(codes.shape[0]):
        c = s.owner[row]
        if s.size[c] > 1:
            without = left_cost(flat, layout, s.box, c, codes, row)
            gains[row] = s.size[c] * s.cost[c] - (s.size[c] - 1) * without
    return gains
