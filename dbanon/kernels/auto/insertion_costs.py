"""Find the clusters of a block that a row joins at least cost.

Every row is repeatedly offered to every cluster, while clusters seldom change. So the cost of each
cluster with one more code is stored by code, and that of a row is a sum over contiguous numbers,
which vectorizes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dbanon.kernels.auto.clusters import NONE, Clusters
from dbanon.kernels.boxes.costs import with_code
from dbanon.kernels.compilation import ZERO, maker, step
from dbanon.kernels.layout import HI, LO, SIZE, START, STRIDE

if TYPE_CHECKING:
    from numpy.typing import NDArray


# A column with more values, in all or in the block, has no prices: they are computed when asked.
MOST_VALUES, MOST_PRICED = 4096, 128
ORDERED, DIRECT, FLAT = -1, -2, -3
PIECE: Any = np.int64(16)  # clusters that are skipped if they have all codes of a line for nothing


class Offers(NamedTuple):
    """Costs of clusters with one more row.

    at: (n, d) int32, line of ``price`` for each row and column, ORDERED if ``low`` and ``high``
    suffice, FLAT if they do because all values are equally far apart, DIRECT if nothing is stored;
    column, code: (m,) of each line; price: (m, g) cost of that column of each cluster with that
    code; above: (m, pieces) how many of these are not 0; place: (n, d) position in an ordered
    column, code in a flat one; low, high: (d, g) least and greatest place; more: (g,) size with one
    more row; paid: (g,) size * cost, -inf if empty; total: (g,) work memory.
    """

    at: NDArray[np.int32]
    column: NDArray[np.int64]
    code: NDArray[np.int32]
    price: NDArray[np.float64]
    above: NDArray[np.int16]
    place: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    more: NDArray[np.float64]
    paid: NDArray[np.float64]
    total: NDArray[np.float64]


@maker
def make_offers(s: Clusters) -> Offers:
    """Return the offers of all clusters; O(g * codes of the block)."""
    n, d = s.codes.shape
    g = s.size.shape[0]
    at = np.empty((n, d), np.int32)
    column, code = np.empty(d * MOST_PRICED, np.int64), np.empty(d * MOST_PRICED, np.int32)
    place = np.zeros((n, d))
    m = ZERO
    for j in range(d):
        if s.layout[j, STRIDE] == 0:
            at[:, j] = ORDERED
            for row in range(n):
                place[row, j] = _position(s.flat, s.layout, j, s.codes[row, j])
        elif _is_flat(s.flat, s.layout, j):
            at[:, j] = FLAT
            for row in range(n):
                place[row, j] = s.codes[row, j]
        else:
            m = _list_codes(s.codes, s.layout, j, at, column, code, m)
    o = Offers(
        at,
        column[:m],
        code[:m],
        np.zeros((m, g)),
        np.zeros((m, (g + PIECE - 1) // PIECE), np.int16),
        place,
        np.zeros((d, g)),
        np.zeros((d, g)),
        np.ones(g),
        np.empty(g),
        np.empty(g),
    )
    for c in range(g):
        refresh(o, s, c)
    return o


@step
def _is_flat(flat: NDArray[np.float64], layout: NDArray[np.int64], j: int) -> bool:
    """Return True if different values of a large taxonomy cost as much as everything."""
    for i in range(layout[j, STRIDE]):
        if flat[layout[j, START] + 1 + i] != flat[layout[j, START]]:
            return False
    return layout[j, STRIDE] > 0


@maker
def _list_codes(
    codes: NDArray[np.int32],
    layout: NDArray[np.int64],
    j: int,
    at: NDArray[np.int32],
    column: NDArray[np.int64],
    code: NDArray[np.int32],
    m: int,
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
def _position(flat: NDArray[np.float64], layout: NDArray[np.int64], j: int, code: int) -> float:
    """Return the position of a code of an ordered column; NULL is far from all values."""
    start, size = layout[j, START], layout[j, SIZE]
    if code == size:
        return flat[start + size] + 2.0 * flat[start] if size > 0 else 0.0
    return flat[start + 1 + code]


@step
def refresh(o: Offers, s: Clusters, c: int) -> None:
    """Recompute the costs of a changed cluster with one more row."""
    flat, layout, box, price, column, code = s.flat, s.layout, s.box, o.price, o.column, o.code
    o.more[c] = s.size[c] + 1.0
    o.paid[c] = s.size[c] * s.cost[c] if s.size[c] > 0 else -np.inf
    for i in range(price.shape[0]):
        j, new = column[i], 0.0
        if s.size[c] > 0:
            new = with_code(flat, layout, j, box[c, j, LO], box[c, j, HI], code[i])
        o.above[i, c // PIECE] += (new != 0.0) - (price[i, c] != 0.0)
        price[i, c] = new
    for j in range(layout.shape[0] if s.size[c] > 0 else 0):
        if o.at[0, j] == FLAT:
            o.low[j, c], o.high[j, c] = box[c, j, LO], box[c, j, HI]
        elif layout[j, STRIDE] == 0:
            o.low[j, c] = _position(flat, layout, j, box[c, j, LO])
            o.high[j, c] = _position(flat, layout, j, box[c, j, HI])


@step
def _add_line(
    total: NDArray[np.float64], price: NDArray[np.float64], above: NDArray[np.int16]
) -> None:
    for piece in range(above.shape[0]):
        if above[piece] > 0:
            for c in range(piece * PIECE, min((piece + 1) * PIECE, total.shape[0])):
                total[c] += price[c]


@step
def _add_up(o: Offers, s: Clusters, row: int) -> None:
    """Fill ``o.total`` with the cost of each cluster with one more row."""
    total, price, low, high, place = o.total, o.price, o.low, o.high, o.place
    flat, layout, box, more = s.flat, s.layout, s.box, o.more
    g = total.shape[0]
    total[:] = 0.0
    for j in range(layout.shape[0]):
        line = o.at[row, j]
        if line >= 0:
            _add_line(total, price[line], o.above[line])
        elif line == FLAT:
            x, most = place[row, j], flat[layout[j, START]]
            for c in range(g):
                total[c] += 0.0 if low[j, c] == x and high[j, c] == x else most
        elif line == ORDERED:
            x, most = place[row, j], flat[layout[j, START]]
            for c in range(g):
                total[c] += min(max(high[j, c], x) - min(low[j, c], x), most)
        else:
            for c in range(g):
                if more[c] > 1.0:
                    lo, hi = box[c, j, LO], box[c, j, HI]
                    total[c] += with_code(flat, layout, j, lo, hi, s.codes[row, j])


@step
def cheapest_offers(
    o: Offers,
    s: Clusters,
    row: int,
    not_in: int,
    limit: float,
    best: NDArray[np.int64],
    rises: NDArray[np.float64],
) -> int:
    """Fill ``best`` with the clusters of least rise for a row, below ``limit``, cheapest first.

    Fills ``rises`` of size * cost; returns their number. Ties: lowest number. O(g * d).
    """
    _add_up(o, s, row)
    total, more, paid = o.total, o.more, o.paid
    found = 0
    for c in range(total.shape[0]):
        rise = more[c] * total[c] - paid[c]
        if rise >= limit or c == not_in:
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
def union_offers(o: Offers, s: Clusters, c: int) -> None:
    """Fill ``o.total`` with the cost of each cluster joined with c; a lower bound for sets."""
    total, price, low, high = o.total, o.price, o.low, o.high
    flat, layout, box, more = s.flat, s.layout, s.box, o.more
    g = total.shape[0]
    total[:] = 0.0
    for j in range(layout.shape[0]):
        a, b = _extremes(s, c, j)
        first, last = o.at[a, j], o.at[b, j]
        if first >= 0:
            for other in range(g):
                total[other] += max(price[first, other], price[last, other])
        elif first == FLAT:
            lo, hi, most = o.place[a, j], o.place[b, j], flat[layout[j, START]]
            for other in range(g):
                total[other] += 0.0 if low[j, other] == hi and high[j, other] == lo else most
        elif first == ORDERED:
            lo, hi, most = low[j, c], high[j, c], flat[layout[j, START]]
            for other in range(g):
                total[other] += min(max(high[j, other], hi) - min(low[j, other], lo), most)
        else:
            x, y = s.codes[a, j], s.codes[b, j]
            for other in range(g):
                if more[other] > 1.0:
                    lo, hi = box[other, j, LO], box[other, j, HI]
                    one = with_code(flat, layout, j, lo, hi, x)
                    total[other] += max(one, with_code(flat, layout, j, lo, hi, y))


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
