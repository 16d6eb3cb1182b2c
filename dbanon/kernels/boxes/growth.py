"""Grow groups one after the other, each from a seed by the row of least cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dbanon.kernels.boxes.box_extension import (
    Costs,
    cost_of,
    cost_with,
    costs_of,
    reach_rows,
    stretch,
)
from dbanon.kernels.boxes.merges import NONE, boxes_of
from dbanon.kernels.compilation import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.kernels.layout import Floats, Int32s, Int64s

FAR_FROM_LAST, FAR_FROM_FIRST, NEIGHBOURS = 0, 1, 2


class Pool(NamedTuple):
    """The rows without a group, first in each array, in row order.

    codes: (d, n); sensitive: (s, n); row: (n,) row number; total: (n,) lower bound of the box's
    cost with the row; taken: (n,) indices of the group's rows; lo, hi: (d,) the box; origin: (d,)
    the record from which the next seed is farthest; occurs: (s, values) rows by sensitive value;
    n_distinct: (s,) values that occur; met: (s, values) last group with the value; lacking: (s,)
    missing distinct values of the group.
    """

    codes: Int32s
    sensitive: Int32s
    row: Int64s
    total: Floats
    taken: Int64s
    lo: Int32s
    hi: Int32s
    origin: Int32s
    occurs: Int64s
    n_distinct: Int64s
    met: Int64s
    lacking: Int64s


@kernel
def _fill(rows: Int32s, d: int) -> Pool:
    n, s = rows.shape[0], rows.shape[1] - d
    codes, sensitive = np.empty((d, n), np.int32), np.empty((s, n), np.int32)
    cardinality = rows[:, d:].max() + 1 if s > 0 else 0
    occurs, n_distinct = np.zeros((s, cardinality), np.int64), np.zeros(s, np.int64)
    for i in range(n):
        for j in range(d):
            codes[j, i] = rows[i, j]
        for j in range(s):
            value = rows[i, d + j]
            sensitive[j, i] = value
            n_distinct[j] += occurs[j, value] == 0
            occurs[j, value] += 1
    return Pool(
        codes,
        sensitive,
        np.arange(n),
        np.empty(n),
        np.empty(n, np.int64),
        np.empty(d, np.int32),
        np.empty(d, np.int32),
        np.empty(d, np.int32),
        occurs,
        n_distinct,
        np.full((s, cardinality), NONE),
        np.zeros(s, np.int64),
    )


@kernel
def _can_grow(n: int, k: int, l: int, p: Pool) -> bool:
    """Return True if the remaining rows and sensitive values suffice for a group."""
    enough = n >= k
    for j in range(p.n_distinct.shape[0]):
        enough = enough and p.n_distinct[j] >= l
    return enough


@kernel
def _seed(n: int, p: Pool, c: Costs) -> int:
    """Return the index of the row farthest from the origin; ties: lowest row."""
    reach_rows(n, p.codes, p.origin, p.origin, c, p.total)
    best = 0
    for i in range(n):
        if p.total[i] > p.total[best]:
            best = i
    return best


@kernel
def _take(i: int, size: int, label: int, rule: int, p: Pool) -> None:
    """Add the row at index i to the group, and to its box unless the rule is NEIGHBOURS."""
    if size == 0:
        p.lo[:] = p.hi[:] = p.codes[:, i]
    elif rule != NEIGHBOURS:
        stretch(p.codes[:, i], p.lo, p.hi)
    for j in range(p.sensitive.shape[0]):
        value = p.sensitive[j, i]
        p.lacking[j] -= p.lacking[j] > 0 and p.met[j, value] != label
        p.met[j, value] = label
        p.occurs[j, value] -= 1
        p.n_distinct[j] -= p.occurs[j, value] == 0
    p.taken[size] = i


@kernel
def _adds(i: int, need: int, label: int, p: Pool) -> bool:
    """Return True if the row adds a value to a column that lacks ``need`` of them."""
    for j in range(p.sensitive.shape[0]):
        if p.lacking[j] >= need and p.met[j, p.sensitive[j, i]] != label:
            return True
    return False


@kernel
def _cheapest(n: int, need: int, label: int, p: Pool, c: Costs) -> int:
    """Return the cheapest row that is not taken (ties: lowest), using earlier costs as bounds."""
    best, least = NONE, np.inf
    for i in range(n):
        if p.total[i] >= least or (need > 0 and not _adds(i, need, label, p)):
            continue
        p.total[i] = cost_with(p.codes[:, i], p.lo, p.hi, c)
        if p.total[i] < least:
            best, least = i, p.total[i]
    return best


@kernel
def _grow(n: int, seed: int, label: int, k: int, l: int, rule: int, p: Pool, c: Costs) -> int:
    """Fill ``taken`` with the indices of a group, in order of addition; return its size."""
    p.lacking[:] = l
    size, i = 0, seed
    while True:
        _take(i, size, label, rule, p)
        size += 1
        need = 0
        for j in range(p.lacking.shape[0]):
            need = max(need, p.lacking[j])
        if size >= k and need == 0:
            return size
        if size == 1:
            reach_rows(n, p.codes, p.lo, p.hi, c, p.total)
        p.total[i] = np.inf
        i = _cheapest(n, need if need >= k - size else 0, label, p, c)


@kernel
def _emit(n: int, size: int, label: int, group: Int32s, p: Pool) -> int:
    """Assign the taken rows to their group and close the gaps; return the remaining number."""
    for i in p.taken[:size]:
        group[p.row[i]] = label
    gaps = np.sort(p.taken[:size])
    for step in range(1, size + 1):
        start, stop = gaps[step - 1] + 1, gaps[step] if step < size else n
        _shift(p.row, start, stop, step)
        for j in range(p.codes.shape[0]):
            _shift(p.codes[j], start, stop, step)
        for j in range(p.sensitive.shape[0]):
            _shift(p.sensitive[j], start, stop, step)
    return n - size


@kernel
def _shift(values: NDArray[np.signedinteger], start: int, stop: int, step: int) -> None:
    for i in range(start, stop):
        values[i - step] = values[i]


@kernel
def _place(rows: Int32s, order: Int64s, group: Int32s, n_groups: int, c: Costs) -> None:
    """Add each row without a group, in order, to the group of least rise."""
    b = boxes_of(rows, group, n_groups, c.flat, c.layout)
    for row in order:
        if group[row] >= 0:
            continue
        best, least = NONE, np.inf
        for a in range(n_groups):
            cost = cost_with(rows[row], b.lo[a], b.hi[a], c)
            rise = (b.size[a] + 1) * cost - b.size[a] * b.cost[a]
            if rise < least:
                best, least = a, rise
        group[row] = best
        b.size[best] += 1
        stretch(rows[row], b.lo[best], b.hi[best])
        b.cost[best] = cost_of(b.lo[best], b.hi[best], c.flat, c.layout)


@kernel
def growth(
    rows: Int32s, order: Int64s, flat: Floats, layout: Int64s, k: int, l: int, rule: int
) -> tuple[Int32s, int]:
    """Grow groups until too few rows or sensitive values remain, then place the rest.

    rows: (n, d + s) codes of the d columns and the s sensitive columns; order: (n,) random order.
    rule: FAR_FROM_LAST or FAR_FROM_FIRST: each seed is the row farthest from the last or first row
    of the previous group (initially order[0]), and each row extends the box by which the next is
    measured; NEIGHBOURS: each seed is the next in order, and rows are measured by their distance
    from it. Returns the group of each row and the number of groups, one if no group can grow. O(n^2
    d).
    """
    d, n = layout.shape[0], rows.shape[0]
    p, c = _fill(rows, d), costs_of(flat, layout)
    group = np.full(n, NONE, np.int32)
    p.origin[:] = rows[order[0], :d]
    n_groups, at = 0, 0
    while _can_grow(n, k, l, p):
        if rule == NEIGHBOURS:
            while group[order[at]] >= 0:
                at += 1
            seed = np.searchsorted(p.row[:n], order[at])
        else:
            seed = _seed(n, p, c)
        size = _grow(n, seed, n_groups, k, l, rule, p, c)
        p.origin[:] = p.codes[:, p.taken[size - 1] if rule == FAR_FROM_LAST else seed]
        n = _emit(n, size, n_groups, group, p)
        n_groups += 1
    if n_groups == 0:
        return np.zeros(rows.shape[0], np.int32), 1
    _place(rows, order, group, n_groups, c)
    return group, n_groups
