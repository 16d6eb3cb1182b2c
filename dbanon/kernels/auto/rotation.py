"""Rotate rows among many clusters at once, at least total cost.

One row leaves each cluster, and one enters; an assignment problem determines which, solved by
shortest augmenting paths (Jonker and Volgenant, Computing 1987, without their first phases). Rows
move along cycles of any length, at least 2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dbanon.kernels.auto.clusters import NONE, join, leave, left_cost, without
from dbanon.kernels.auto.diversity import cluster_holds
from dbanon.kernels.auto.insertion_costs import refresh
from dbanon.kernels.auto.moves import LEAST_GAIN
from dbanon.kernels.boxes.costs import with_code
from dbanon.kernels.compile import ZERO, maker, step
from dbanon.kernels.random import shuffle, uniform

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.kernels.auto.moves import Search

MOST = 300  # clusters of one assignment


class Ring(NamedTuple):
    """Clusters that rotate rows, and work memory.

    clusters: (g,) int64, those of nonzero cost; rows: (m,) int64, the leaving row of each; price:
    (m, m) cost of cluster i with the row of cluster j instead of its own; taken: (m + 1,) int64,
    new cluster of each row, from 1, 0 for none; row_dual, dual: (m + 1,) dual prices; slack: (m +
    1,); before: (m + 1,) int64; seen: (m + 1,) bool.
    """

    clusters: NDArray[np.int64]
    rows: NDArray[np.int64]
    price: NDArray[np.float64]
    taken: NDArray[np.int64]
    row_dual: NDArray[np.float64]
    dual: NDArray[np.float64]
    slack: NDArray[np.float64]
    before: NDArray[np.int64]
    seen: NDArray[np.bool_]


@maker
def make_ring(n_slots: int) -> Ring:
    """Return work memory for the clusters of a block."""
    m = min(n_slots, MOST)
    return Ring(
        np.empty(n_slots, np.int64),
        np.empty(m, np.int64),
        np.empty((m, m)),
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
        less = s.cost[c] - left_cost(s.flat, s.layout, s.box, c, s.codes, row)
        less = (less + 1e-3 * s.cost[c]) * uniform(w.dice)
        if less > most:
            best, most = row, less
        row = s.following[row]
    return best


@step
def _set_prices(w: Search, a: Ring, chosen: NDArray[np.int64]) -> None:
    s, m = w.s, chosen.shape[0]
    flat, layout, codes, price, rows = s.flat, s.layout, s.codes, a.price, a.rows
    for i in range(m):
        c = chosen[i]
        for other in range(m):
            price[i, other] = 0.0
        for j in range(layout.shape[0]):
            lo, hi = without(layout, s.box, c, j, codes[rows[i], j])
            for other in range(m):
                price[i, other] += with_code(flat, layout, j, lo, hi, codes[rows[other], j])
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
def _follow(w: Search, a: Ring, chosen: NDArray[np.int64]) -> float:
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
                holds = holds and cluster_holds(w.r, s, c, a.rows[into - 1], a.rows[j - 1])
            length += 1
            j = into
        if length > 1 and gain > LEAST_GAIN and holds:
            saved += gain
            _turn(w, a, chosen, first, length)
    return saved


@step
def _turn(w: Search, a: Ring, chosen: NDArray[np.int64], first: int, length: int) -> None:
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
