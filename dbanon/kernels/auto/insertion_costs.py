"""Find the clusters of a block that a row joins at least cost.

Every row is repeatedly offered to every cluster, while clusters seldom change. So the cost of each
cluster with one more code is stored by code, and that of a row is a sum over contiguous numbers,
which vectorizes. What has no such form is only bounded, and computed for the clusters that remain:
of flat columns, all of whose values are equally far apart, bits count those in which a row differs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dbanon.kernels.auto.clusters import NONE, Clusters, left_cost, without
from dbanon.kernels.boxes.costs import box_cost, with_code
from dbanon.kernels.compilation import ZERO, inlined, maker, step
from dbanon.kernels.layout import HI, LO, SIZE, START, STRIDE, TABLE, WIDE

if TYPE_CHECKING:
    from dbanon.kernels.layout import Floats, Int32s, Int64s, UInt64s


# A column with more values, in all or in the block, has no prices: they are computed when asked.
MOST_VALUES, MOST_PRICED = 4096, 128
ORDERED, DIRECT, FLAT = -1, -2, -3
# Bits that are compared of a code of a flat column, and the most such columns, one bit each.
BITS, MOST_FLAT, VARIES = 3, 64, 3
ROUNDING = 1e-9
NO_CODE: Any = np.int32(-2)


class Offers(NamedTuple):
    """Costs of clusters with one more row.

    at: (n, d) int32, line of ``price`` for each row and column, ORDERED if ``low`` and ``high``
    suffice, FLAT if bits do because all values are equally far apart, DIRECT if nothing is stored;
    column, code: (m,) of each line; price: (m, g) cost of that column of each cluster with that
    code; place: (n, d) position in an ordered column, code in a flat one; low, high: (d, g) least
    and greatest place in ordered columns; only: (d, g) int32, code of flat columns, NONE if there
    are several; bits: (n, BITS) uint64, of these; masks: (BITS + 1, g + 1) uint64, the same of
    clusters, then the columns whose values differ, the last for a cluster without a row; flat_cost:
    (1,) least cost of a flat column, -1 if all totals are exact; base: (g,) cost of columns
    of which nothing is stored, or, if columns are flat, what the others cost already; more: (g,)
    size with one more row; paid: (g,) size * cost, -inf if empty; total: (g,) work memory; changed:
    (g + 1,) int64, number of the last change of each cluster, and of all; left, as_of: (n,) cost of
    its cluster without each row, and the change it is of; used: (1,) int64, clusters from here on
    have had no row.
    """

    at: Int32s
    column: Int64s
    code: Int32s
    price: Floats
    place: Floats
    low: Floats
    high: Floats
    only: Int32s
    bits: UInt64s
    masks: UInt64s
    flat_cost: Floats
    base: Floats
    more: Floats
    paid: Floats
    total: Floats
    changed: Int64s
    left: Floats
    as_of: Int64s
    used: Int64s


@maker
def make_offers(s: Clusters) -> Offers:
    """Return the offers of all clusters; O(g * codes of the block)."""
    n, d = s.codes.shape
    g = s.size.shape[0]
    at = np.empty((n, d), np.int32)
    column, code = np.empty(d * MOST_PRICED, np.int64), np.empty(d * MOST_PRICED, np.int32)
    place, bits = np.zeros((n, d)), np.zeros((n, BITS), np.uint64)
    flat_cost = np.full(1, -1.0)
    m = _choose_forms(s, at, column, code, place, bits, flat_cost)
    o = Offers(
        at,
        column[:m],
        code[:m],
        np.zeros((m, g)),
        place,
        np.zeros((d, g)),
        np.zeros((d, g)),
        np.empty((d, g), np.int32),
        bits,
        np.zeros((BITS + 1, g + 1), np.uint64),
        flat_cost,
        np.zeros(g),
        np.ones(g),
        np.empty(g),
        np.empty(g),
        np.zeros(g + 1, np.int64),
        np.empty(n),
        np.full(n, NONE, np.int64),
        np.zeros(1, np.int64),
    )
    for c in range(g):
        refresh(o, s, c)
    return o


@maker
def _choose_forms(
    s: Clusters,
    at: Int32s,
    column: Int64s,
    code: Int32s,
    place: Floats,
    bits: UInt64s,
    flat_cost: Floats,
) -> int:
    """Fill the arrays of ``Offers`` that depend on rows alone; return the number of lines."""
    m = n_flat = ZERO
    for j in range(at.shape[1]):
        if s.layout[j, STRIDE] == 0:
            at[:, j] = ORDERED
            for row in range(at.shape[0]):
                place[row, j] = _position(s.flat, s.layout, j, s.codes[row, j])
        elif n_flat < MOST_FLAT and _is_flat(s.flat, s.layout, j):
            at[:, j] = FLAT
            cost = s.flat[s.layout[j, START]]
            flat_cost[0] = cost if n_flat == 0 else min(flat_cost[0], cost)
            for row in range(at.shape[0]):
                place[row, j] = s.codes[row, j]
                for bit in range(BITS):
                    bits[row, bit] |= _bit(s.codes[row, j], bit, n_flat)
            n_flat += 1
        else:
            m = _list_codes(s.codes, s.layout, j, at, column, code, m)
            if at[0, j] == DIRECT:
                flat_cost[0] = max(flat_cost[0], 0.0)
    return m


@step
def _is_flat(flat: Floats, layout: Int64s, j: int) -> bool:
    """Return True if different values of a taxonomy cost as much as everything.

    Of few columns, those of a small taxonomy have exact prices instead.
    """
    start, size = layout[j, START], layout[j, SIZE]
    if layout[j, STRIDE] == TABLE and layout.shape[0] >= WIDE:
        for i in range((size + 1) * (size + 1)):
            if flat[start + 1 + i] != flat[start] and i % (size + 2) != 0:
                return False
        return True
    for i in range(layout[j, STRIDE]):
        if flat[start + 1 + i] != flat[start]:
            return False
    return layout[j, STRIDE] > 0


@inlined
def _bit(code: int, bit: int, column: int) -> np.uint64:
    """Return a bit of a code, in the place of a flat column."""
    return np.uint64((code >> bit) & 1) << np.uint64(column)


@inlined
def _count(x: np.uint64) -> float:
    """Return the number of bits."""
    x -= (x >> np.uint64(1)) & np.uint64(0x5555555555555555)
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    for shift in (8, 16, 32):  # a product of this size, or of 64 bits, has no vector instruction
        x += x >> np.uint64(shift)
    return np.float64(np.int32(x & np.uint64(127)))


@maker
def _list_codes(
    codes: Int32s, layout: Int64s, j: int, at: Int32s, column: Int64s, code: Int32s, m: int
) -> int:
    """Give each code of column j a line, from m; return the number of lines."""
    at[:, j] = DIRECT
    if layout[j, SIZE] >= MOST_VALUES:
        return m
    line = np.full(layout[j, SIZE] + 1, DIRECT, np.int32)
    begin = m
    for value in codes[:, j]:
        if line[value] == DIRECT:
            if m - begin == MOST_PRICED:
                return begin
            line[value] = m
            column[m], code[m] = j, value
            m += 1
    for row in range(codes.shape[0]):
        at[row, j] = line[codes[row, j]]
    return m


@step
def _position(flat: Floats, layout: Int64s, j: int, code: int) -> float:
    """Return the position of a code of an ordered column; NULL is far from all values."""
    start, size = layout[j, START], layout[j, SIZE]
    if code == size:
        return flat[start + size] + 2.0 * flat[start] if size > 0 else 0.0
    return flat[start + 1 + code]


@step
def _joined_cost(o: Offers, s: Clusters, c: int, row: int, direct: bool) -> float:
    """Return the cost of a cluster with one more row; direct: in columns without prices; O(d)."""
    total = 0.0
    for j in range(s.layout.shape[0]):
        if not direct or o.at[row, j] == DIRECT:
            lo, hi = s.box[c, j, LO], s.box[c, j, HI]
            total += with_code(s.flat, s.layout, j, lo, hi, s.codes[row, j])
    return total


@step
def refresh(o: Offers, s: Clusters, c: int) -> None:
    """Recompute the costs of a changed cluster with one more row."""
    flat, layout, box, price, column, code = s.flat, s.layout, s.box, o.price, o.column, o.code
    o.changed[-1] += 1
    o.changed[c] = o.changed[-1]
    o.more[c] = s.size[c] + 1.0
    o.paid[c] = s.size[c] * s.cost[c] if s.size[c] > 0 else -np.inf
    if s.size[c] > 0:
        o.used[0] = max(o.used[0], c + 1)
    for i in range(price.shape[0]):
        j, new = column[i], 0.0
        if s.size[c] > 0:
            new = with_code(flat, layout, j, box[c, j, LO], box[c, j, HI], code[i])
        price[i, c] = new
    for bit in range(BITS + 1):
        o.masks[bit, c] = 0
    o.base[c] = 0.0
    if s.size[c] > 0 and o.flat_cost[0] <= 0.0:
        o.base[c] = _joined_cost(o, s, c, s.head[c], True)
    n_flat = ZERO
    for j in range(layout.shape[0] if s.size[c] > 0 else 0):
        if o.at[0, j] == FLAT:
            lo, hi = box[c, j, LO], box[c, j, HI]
            o.only[j, c] = lo if lo == hi else NONE
            _mark(o.masks[:, c], n_flat, lo, hi)
            n_flat += 1
            continue
        if o.flat_cost[0] > 0.0:
            o.base[c] += box_cost(flat, layout, j, box[c, j, LO], box[c, j, HI])
        if layout[j, STRIDE] == 0:
            o.low[j, c] = _position(flat, layout, j, box[c, j, LO])
            o.high[j, c] = _position(flat, layout, j, box[c, j, HI])


@step
def _add_up(o: Offers, s: Clusters, row: int) -> None:
    """Fill ``o.total`` with the cost of each cluster with one more row, or a lower bound."""
    total, price, low, high, place = o.total, o.price, o.low, o.high, o.place
    flat, layout, g = s.flat, s.layout, o.used[0]
    _count_flat(o, row)
    if o.flat_cost[0] > 0.0:  # hardly any cluster costs so little
        return
    for j in range(layout.shape[0]):
        line = o.at[row, j]
        if line >= 0:
            for c in range(g):
                total[c] += price[line, c]
        elif line == ORDERED:
            x, most = place[row, j], flat[layout[j, START]]
            for c in range(g):
                total[c] += min(max(high[j, c], x) - min(low[j, c], x), most)


@step
def _count_flat(o: Offers, row: int) -> None:
    """Fill ``o.total`` with a lower bound of what no other form adds."""
    total, base, cost = o.total, o.base, o.flat_cost[0]
    for c in range(o.used[0]):
        total[c] = base[c]
        if cost > 0.0:
            total[c] += cost * _count_of(o, c, row)


@inlined
def _count_of(o: Offers, c: int, row: int) -> float:
    """Return in how many flat columns a row differs from a cluster, at least."""
    differ = o.masks[VARIES, c]
    for bit in range(BITS):
        differ |= o.masks[bit, c] ^ o.bits[row, bit]
    return _count(differ)


@step
def _mark(mask: UInt64s, column: int, lo: int, hi: int) -> None:
    """Set the bits of a flat column with these bounds."""
    for bit in range(BITS):
        mask[bit] |= _bit(lo, bit, column)
    mask[VARIES] |= _bit(ZERO + (lo != hi), 0, column)


@step
def add_costs(
    flat: Floats,
    layout: Int64s,
    j: int,
    form: int,
    lo: int,
    hi: int,
    code: Int32s,
    place: Floats,
    total: Floats,
) -> None:
    """Add to ``total`` the cost of bounds of column j with each of the codes.

    form, place: of ``Offers``.
    """
    most = flat[layout[j, START]]
    if form == FLAT:
        for i in range(total.shape[0]):
            total[i] += 0.0 if place[i] == lo and place[i] == hi else most
    elif form == ORDERED:
        low, high = _position(flat, layout, j, lo), _position(flat, layout, j, hi)
        for i in range(total.shape[0]):
            total[i] += min(max(high, place[i]) - min(low, place[i]), most)
    else:
        for i in range(total.shape[0]):
            total[i] += with_code(flat, layout, j, lo, hi, code[i])


@inlined
def cost_without(o: Offers, s: Clusters, row: int) -> float:
    """Return the cost of a row's cluster without it; computed once for each change of the cluster.

    The cluster has another row.
    """
    c = s.owner[row]
    if o.as_of[row] != o.changed[c]:
        o.left[row] = left_cost(s.flat, s.layout, s.box, c, s.codes, row)
        o.as_of[row] = o.changed[c]
    return o.left[row]


@step
def set_aside(o: Offers, s: Clusters, row: int) -> None:
    """Prepare ``may_cost`` for the cluster of a row."""
    for bit in range(BITS + 1):
        o.masks[bit, -1] = 0
    n_flat = ZERO
    for j in range(s.layout.shape[0]):
        if o.at[0, j] == FLAT:
            lo, hi = without(s.layout, s.box, s.owner[row], j, s.codes[row, j])
            _mark(o.masks[:, -1], n_flat, lo, hi)
            n_flat += 1


@inlined
def may_cost(o: Offers, s: Clusters, out: int, into: int, most: float) -> bool:
    """Return False if the cluster of row ``out`` costs more with row ``into`` in its place.

    ``out`` was set aside. Only looks at all columns if many are flat.
    """
    if o.flat_cost[0] <= 0.0:
        return True
    total, c = o.flat_cost[0] * _count_of(o, -1, into), s.owner[out]
    for j in range(s.layout.shape[0]):
        if total > most + ROUNDING:
            return False
        if o.at[0, j] != FLAT:
            lo, hi = without(s.layout, s.box, c, j, s.codes[out, j])
            total += with_code(s.flat, s.layout, j, lo, hi, s.codes[into, j])
    return total <= most + ROUNDING


@step
def cheapest_offers(
    o: Offers, s: Clusters, row: int, not_in: int, limit: float, best: Int64s, rises: Floats
) -> int:
    """Fill ``best`` with the clusters of least rise for a row, below ``limit``, cheapest first.

    Fills ``rises`` of size * cost; returns their number. Ties: lowest number. O(g * d).
    """
    _add_up(o, s, row)
    total, more, paid, exact = o.total, o.more, o.paid, o.flat_cost[0] < 0.0
    found = 0
    for c in range(o.used[0]):
        rise = more[c] * total[c] - paid[c]
        if rise >= limit + ROUNDING or c == not_in:
            continue
        if not exact:
            rise += more[c] * _underrated(o, s, c, row, (limit + ROUNDING - rise) / more[c])
            if rise < limit + ROUNDING:
                rise = more[c] * _joined_cost(o, s, c, row, False) - paid[c]
        if rise >= limit:
            continue
        found = min(found + 1, best.shape[0])
        at = found - 1
        while at > 0 and rises[at - 1] > rise:
            rises[at], best[at] = rises[at - 1], best[at - 1]
            at -= 1
        rises[at], best[at] = rise, c
        if found == best.shape[0]:
            limit = rises[found - 1]
    return found


@step
def _underrated(o: Offers, s: Clusters, c: int, row: int, most: float) -> float:
    """Return how much more than ``o.total`` a cluster costs with a row, at least.

    Stops above ``most``.
    """
    if o.flat_cost[0] <= 0.0:
        return _joined_cost(o, s, c, row, True) - o.base[c]
    total, flat, layout = 0.0, s.flat, s.layout
    for j in range(layout.shape[0]):
        if o.at[0, j] == ORDERED:
            low, high, x, cost = o.low[j, c], o.high[j, c], o.place[row, j], flat[layout[j, START]]
            total += min(max(high, x) - min(low, x), cost) - min(high - low, cost)
            if total > most:
                break
    return total


@step
def union_offers(o: Offers, s: Clusters, c: int) -> None:
    """Fill ``o.total`` with the cost of each cluster joined with c; a lower bound for sets."""
    total, price, low, high, only = o.total, o.price, o.low, o.high, o.only
    flat, layout, box, more, g = s.flat, s.layout, s.box, o.more, o.used[0]
    total[:] = 0.0
    for j in range(layout.shape[0]):
        form, most = o.at[0, j], flat[layout[j, START]]
        if form == FLAT:
            same = only[j, c] if only[j, c] != NONE else NO_CODE
            for other in range(g):
                total[other] += 0.0 if only[j, other] == same else most
        elif form == ORDERED:
            lo, hi = low[j, c], high[j, c]
            for other in range(g):
                total[other] += min(max(high[j, other], hi) - min(low[j, other], lo), most)
        elif form == DIRECT:
            a, b = _extremes(s, c, j)
            x, y = s.codes[a, j], s.codes[b, j]
            for other in range(g):
                if more[other] > 1.0:
                    lo, hi = box[other, j, LO], box[other, j, HI]
                    one = with_code(flat, layout, j, lo, hi, x)
                    total[other] += max(one, with_code(flat, layout, j, lo, hi, y))
        else:
            a, b = _extremes(s, c, j)
            first, last = price[o.at[a, j]], price[o.at[b, j]]
            for other in range(g):
                total[other] += max(first[other], last[other])


@step
def _extremes(s: Clusters, c: int, j: int) -> tuple[int, int]:
    """Return rows of a cluster with the least and the greatest code of a column."""
    codes, following = s.codes, s.following
    row = s.head[c]
    a = b = row
    while row != NONE:
        if codes[row, j] < codes[a, j]:
            a = row
        if codes[row, j] > codes[b, j]:
            b = row
        row = following[row]
    return a, b
