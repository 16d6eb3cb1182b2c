"""Cost of extending a box to a row, or to each of many rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dbanon.kernels.boxes.costs import box_cost
from dbanon.kernels.compilation import kernel
from dbanon.kernels.layout import SIZE, START, STRIDE, Floats, Int32s, Int64s


class Costs(NamedTuple):
    """The costs of boxes, and a table by code, filled for each column."""

    flat: Floats
    layout: Int64s
    table: Floats


@kernel
def costs_of(flat: Floats, layout: Int64s) -> Costs:
    """Return the costs with memory for the largest column."""
    return Costs(flat, layout, np.empty(layout[:, SIZE].max() + 1))


@kernel
def cost_of(lo: Int32s, hi: Int32s, flat: Floats, layout: Int64s) -> float:
    """Return the cost of a box, (d,)."""
    total = 0.0
    for j in range(lo.shape[0]):
        total += box_cost(flat, layout, j, lo[j], hi[j])
    return total


@kernel
def cost_with(codes: Int32s, lo: Int32s, hi: Int32s, c: Costs) -> float:
    """Return the cost of a box extended to a row; codes beyond d columns are ignored."""
    total = 0.0
    for j in range(lo.shape[0]):
        total += box_cost(c.flat, c.layout, j, min(lo[j], codes[j]), max(hi[j], codes[j]))
    return total


@kernel
def stretch(codes: Int32s, lo: Int32s, hi: Int32s) -> None:
    """Extend a box to a row; codes beyond d columns are ignored."""
    for j in range(lo.shape[0]):
        lo[j], hi[j] = min(lo[j], codes[j]), max(hi[j], codes[j])


@kernel
def _reach_positions(
    n: int, codes: Int32s, j: int, bounds: tuple[int, int], c: Costs, total: Floats
) -> None:
    """Add the cost of an ordered column with each row, if its bounds are values."""
    size, start = c.layout[j, SIZE], c.layout[j, START]
    low, high = c.flat[start + 1 + bounds[0]], c.flat[start + 1 + bounds[1]]
    for i in range(n):
        if codes[i] == size:
            total[i] += c.flat[start]
        else:
            position = c.flat[start + 1 + codes[i]]
            total[i] += max(high, position) - min(low, position)


@kernel
def reach_rows(n: int, codes: Int32s, lo: Int32s, hi: Int32s, c: Costs, total: Floats) -> None:
    """Fill the cost of the box lo..hi, (d,), with each of the first n rows of codes, (d, n)."""
    total[:n] = 0.0
    for j in range(codes.shape[0]):
        size, low, high = c.layout[j, SIZE], lo[j], hi[j]
        if size < n:
            for code in range(size + 1):
                c.table[code] = box_cost(c.flat, c.layout, j, min(low, code), max(high, code))
            for i in range(n):
                total[i] += c.table[codes[j, i]]
        elif size > 1 and c.layout[j, STRIDE] == 0 and high < size:
            _reach_positions(n, codes[j], j, (low, high), c, total)
        else:
            for i in range(n):
                code = codes[j, i]
                total[i] += box_cost(c.flat, c.layout, j, min(low, code), max(high, code))
