"""Bringing groups of fewer than k rows up to k (Xu et al., KDD 2006)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dbanon.kernels.boxes.box_extension import (
    NONE,
    absorb,
    boxes_of,
    cost_of,
    cost_with,
    costs_of,
    nearest_box,
    reach_rows,
    stretch,
)
from dbanon.kernels.boxes.costs import group_boxes
from dbanon.kernels.compile import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.kernels.boxes.box_extension import Boxes, Costs


class Groups(NamedTuple):
    """Groups as linked lists of rows, with their boxes.

    boxes: of the groups; lo, hi, size: the same arrays; cost: (g,) of each box; head: (g,)
    first row; following: (n,) the next row of the same group, -1 after the last; low, high: (d,) a
    box that is tried; picked: (n,) the rows that it would take, and taken: (n,) whether a row is
    one of them; codes: (d, n) of the rows; near: (n,) what the box that borrows costs with each.
    """

    rows: NDArray[np.int32]
    boxes: Boxes
    lo: NDArray[np.int32]
    hi: NDArray[np.int32]
    size: NDArray[np.int64]
    cost: NDArray[np.float64]
    head: NDArray[np.int64]
    following: NDArray[np.int64]
    low: NDArray[np.int32]
    high: NDArray[np.int32]
    picked: NDArray[np.int64]
    taken: NDArray[np.bool_]
    codes: NDArray[np.int32]
    near: NDArray[np.float64]


@kernel
def _list(rows: NDArray[np.int32], group: NDArray[np.int32], n_groups: int, c: Costs) -> Groups:
    n, d = rows.shape[0], c.layout.shape[0]
    lo, hi, size = group_boxes(rows[:, :d], group, n_groups)
    head, following = np.full(n_groups, NONE), np.full(n, NONE)
    for row in range(n - 1, -1, -1):
        following[row] = head[group[row]]
        head[group[row]] = row
    g = Groups(
        rows,
        boxes_of(lo, hi, size),
        lo,
        hi,
        size,
        np.empty(n_groups),
        head,
        following,
        np.empty(d, np.int32),
        np.empty(d, np.int32),
        np.empty(n, np.int64),
        np.zeros(n, np.bool_),
        rows[:, :d].T.copy(),
        np.empty(n),
    )
    for a in range(n_groups):
        g.cost[a] = cost_of(lo[a], hi[a], c)
    return g


@kernel
def _pick(b: int, found: int, g: Groups, c: Costs) -> tuple[int, float]:
    """Return the row of group b, not yet taken, that costs the tried box least, and the cost."""
    best, least = NONE, np.inf
    row = g.head[b]
    while row != NONE:
        if not g.taken[row]:
            cost = g.near[row]
            if found > 0 and cost <= least:
                cost = cost_with(g.rows[row], g.low, g.high, c)
            if cost < least or (cost == least and row < best):
                best, least = row, cost
        row = g.following[row]
    return best, least


@kernel
def _cost_without(b: int, g: Groups, c: Costs) -> float:
    """Return the cost of the box of the rows of group b that are not taken."""
    g.low[:], g.high[:] = np.iinfo(np.int32).max, -1
    row = g.head[b]
    while row != NONE:
        if not g.taken[row]:
            stretch(g.rows[row], g.low, g.high)
        row = g.following[row]
    return cost_of(g.low, g.high, c)


@kernel
def _borrow(a: int, b: int, k: int, most: float, g: Groups, c: Costs) -> float:
    """Fill ``picked`` with the rows that bring group a to k out of group b; return the rise.

    The nearest row goes first, then the nearest to both. Returns infinity as soon as the rise
    cannot be less than ``most``, because what group a costs by then is a part of it.
    """
    g.low[:], g.high[:] = g.lo[a], g.hi[a]
    need = k - g.size[a]
    before_a, before_b = g.size[a] * g.cost[a], g.size[b] * g.cost[b]
    found, cost, rise = 0, g.cost[a], np.inf
    while found < need and k * cost - before_a - before_b < most:
        row, cost = _pick(b, found, g, c)
        g.picked[found] = row
        g.taken[row] = True
        found += 1
        stretch(g.rows[row], g.low, g.high)
    if k * cost - before_a - before_b < most:
        rest = (g.size[b] - need) * _cost_without(b, g, c)
        rise = k * cost + rest - before_a - before_b
    for row in g.picked[:found]:
        g.taken[row] = False
    return rise


@kernel
def _donor(a: int, k: int, most: float, g: Groups, c: Costs) -> int:
    """Return the group to borrow from at the least rise below ``most``; ties: lowest."""
    best, least = NONE, most
    if g.size.max() >= 2 * k - g.size[a]:
        reach_rows(g.near.shape[0], g.codes, g.lo[a], g.hi[a], c, g.near)
    for b in range(g.size.shape[0]):
        if b != a and g.size[b] >= 2 * k - g.size[a]:
            rise = _borrow(a, b, k, least, g, c)
            if rise < least:
                best, least = b, rise
    return best


@kernel
def _move(a: int, b: int, k: int, g: Groups, c: Costs) -> None:
    """Move the rows that group a borrows from group b."""
    _borrow(a, b, k, np.inf, g, c)
    need = k - g.size[a]
    for row in g.picked[:need]:
        before = NONE
        other = g.head[b]
        while other != row:
            before, other = other, g.following[other]
        if before == NONE:
            g.head[b] = g.following[row]
        else:
            g.following[before] = g.following[row]
        g.following[row] = g.head[a]
        g.head[a] = row
    g.size[a] += need
    g.size[b] -= need
    for part in (a, b):
        g.cost[part] = _cost_without(part, g, c)
        g.lo[part], g.hi[part] = g.low, g.high
        g.boxes.corner[:, part] = g.low


@kernel
def _merge(a: int, b: int, cost: float, g: Groups) -> None:
    """Move all rows of group b to group a, whose box costs ``cost`` with them."""
    last = g.head[b]
    while g.following[last] != NONE:
        last = g.following[last]
    g.following[last] = g.head[a]
    g.head[a] = g.head[b]
    absorb(a, b, g.boxes)
    g.cost[a] = cost


@kernel
def make_up(
    rows: NDArray[np.int32],
    group: NDArray[np.int32],
    n_groups: int,
    flat: NDArray[np.float64],
    layout: NDArray[np.int64],
    k: int,
) -> NDArray[np.int32]:
    """Bring every group to k rows, by borrowing rows or by merging, whichever costs less.

    rows: (n, d + s); group: (n,). A group borrows from one that keeps k rows, or merges with the
    group whose union with it has the least rows times cost; merging wins ties. Return the new
    group of each row, the lower of two that merged. O(small groups * n d).
    """
    c = costs_of(flat, layout)
    g = _list(rows, group, n_groups, c)
    for a in range(n_groups):
        while 0 < g.size[a] < k:
            b, cost = nearest_box(a, g.boxes, c)
            if b == NONE:
                break
            rise = (g.size[a] + g.size[b]) * cost - g.size[a] * g.cost[a]
            donor = _donor(a, k, rise - g.size[b] * g.cost[b], g, c)
            if donor != NONE:
                _move(a, donor, k, g, c)
            else:
                _merge(min(a, b), max(a, b), cost, g)
    made_up = np.empty_like(group)
    for a in range(n_groups):
        row = g.head[a]
        while row != NONE and g.size[a] > 0:
            made_up[row] = a
            row = g.following[row]
    return made_up
