"""Cost of a box: the normalized certainty penalty of a set of rows, given by its bounds.

A box is the least and the greatest code of each column. The costs of all columns are in two arrays.
``layout`` is (d, 5) int64: the column's start in ``flat``, its number of values ``size`` (also the
code of NULL), ``stride``, and the bounds of a box of no rows. ``flat`` is float64 and has for each
column the cost of everything, then

- ordered, ``stride`` 0: the position of each of the ``size`` values;
- taxonomy, ``stride`` = size - 1: a sparse table of range maxima over the ``stride`` pairs of
  adjacent leaves, level by level; an entry is the cost of the pair's lowest common ancestor. In
  depth-first order, the ancestor of a set is the costliest one between neighbours;
- small taxonomy, ``stride`` TABLE: the cost of each pair of codes, (size + 1, size + 1);
- set of values, ``stride`` SET: the cost by number of values, 0..size + 1. The bounds are then the
  two halves of the set, of 31 values each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dbanon.kernels.compilation import inlined, kernel, step
from dbanon.kernels.layout import HALF, SET, SIZE, START, STRIDE, TABLE

if TYPE_CHECKING:
    from dbanon.kernels.layout import Floats, Int32s, Int64s


@inlined
def _count_bits(half: int) -> int:
    half = half - ((half >> 1) & 0x55555555)
    half = (half & 0x33333333) + ((half >> 2) & 0x33333333)
    half = (half + (half >> 4)) & 0x0F0F0F0F
    return ((half * 0x01010101) & 0xFFFFFFFF) >> 24


@step
def _greatest(flat: Floats, start: int, stride: int, lo: int, hi: int) -> float:
    """Return the greatest of the steps lo..hi - 1 of a sparse table."""
    level = 0
    while (2 << level) <= hi - lo:
        level += 1
    table = start + level * stride
    return max(flat[table + lo], flat[table + hi - (1 << level)])


@inlined
def box_cost(flat: Floats, layout: Int64s, column: int, lo: int, hi: int) -> float:
    """Return the cost of the codes lo..hi of a column; O(1), O(log size) for a large taxonomy."""
    start, stride = layout[column, START], layout[column, STRIDE]
    if stride == TABLE:
        return flat[start + 1 + lo * (layout[column, SIZE] + 1) + hi]
    if stride == SET:
        return flat[start + 1 + _count_bits(lo) + _count_bits(hi)]
    if lo == hi:
        return 0.0
    if hi == layout[column, SIZE]:
        return flat[start]
    if stride == 0:
        return flat[start + 1 + hi] - flat[start + 1 + lo]
    return _greatest(flat, start + 1, stride, lo, hi)


@inlined
def half_bits(code: int) -> tuple[int, int]:
    """Return the set of one value as two halves."""
    if code < HALF:
        return 1 << code, 0
    return 0, 1 << (code - HALF)


@inlined
def with_code(flat: Floats, layout: Int64s, column: int, lo: int, hi: int, code: int) -> float:
    """Return the cost of the bounds lo, hi of a column, extended by one code."""
    if layout[column, STRIDE] == SET:
        low, high = half_bits(code)
        return box_cost(flat, layout, column, lo | low, hi | high)
    return box_cost(flat, layout, column, min(lo, code), max(hi, code))


@kernel
def box_costs(flat: Floats, layout: Int64s, lo: Int32s, hi: Int32s) -> Floats:
    """Return the cost of each column of each box, (g, d); lo and hi are (g, d)."""
    costs = np.empty(lo.shape, np.float64)
    for box in range(lo.shape[0]):
        for column in range(lo.shape[1]):
            costs[box, column] = box_cost(flat, layout, column, lo[box, column], hi[box, column])
    return costs


@kernel
def group_boxes(codes: Int32s, group: Int32s, n_groups: int) -> tuple[Int32s, Int32s, Int64s]:
    """Return the bounds and the size of each group: lo, hi (n_groups, d) and size (n_groups,).

    codes: (n, d); group: (n,), below 0 for none. No group is empty; O(n d).
    """
    n_columns = codes.shape[1]
    lo = np.full((n_groups, n_columns), np.iinfo(np.int32).max, np.int32)
    hi = np.full((n_groups, n_columns), -1, np.int32)
    size = np.zeros(n_groups, np.int64)
    for row in range(codes.shape[0]):
        g = group[row]
        if g < 0:
            continue
        size[g] += 1
        for column in range(n_columns):
            lo[g, column] = min(lo[g, column], codes[row, column])
            hi[g, column] = max(hi[g, column], codes[row, column])
    return lo, hi, size
