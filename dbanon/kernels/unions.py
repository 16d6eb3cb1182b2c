"""What it costs to join boxes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dbanon.kernels.boxes import box_cost
from dbanon.kernels.compile import kernel
from dbanon.kernels.layout import TABLE

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Boxes(NamedTuple):
    """Boxes of rows and what they cost.

    lo, hi: (g, d) least and greatest codes; size: (g,) rows, 0 for a box that is no more; cost:
    (g,); flat, layout: as ``dbanon.kernels.boxes`` describes them.
    """

    lo: NDArray[np.int32]
    hi: NDArray[np.int32]
    size: NDArray[np.int64]
    cost: NDArray[np.float64]
    flat: NDArray[np.float64]
    layout: NDArray[np.int64]


@kernel
def _add_union_costs(
    column: int, least: int, greatest: int, boxes: Boxes, total: NDArray[np.float64]
) -> None:
    """Add what one column of the union of each box with least..greatest costs; O(g log size).

    As ``box_cost``, but without a call for each box, which would take 25 times as long.
    """
    flat = boxes.flat
    start, size, stride = boxes.layout[column]
    for b in range(total.shape[0]):
        lo, hi = min(least, boxes.lo[b, column]), max(greatest, boxes.hi[b, column])
        if lo == hi:
            continue
        if stride == TABLE:
            total[b] += flat[start + 1 + lo * (size + 1) + hi]
        elif hi == size:
            total[b] += flat[start]
        elif stride == 0:
            total[b] += flat[start + 1 + hi] - flat[start + 1 + lo]
        else:
            level = 0
            while (2 << level) <= hi - lo:
                level += 1
            table = start + 1 + level * stride
            total[b] += max(flat[table + lo], flat[table + hi - (1 << level)])


@kernel
def union_rises(
    lo: NDArray[np.int32], hi: NDArray[np.int32], size: int, boxes: Boxes
) -> NDArray[np.float64]:
    """Return what the total (rows * cost) rises by when a box of rows joins each of the boxes.

    lo, hi: (d,) and size are those of the joining box. (g,), infinite for boxes that are no more;
    O(g d).
    """
    rises = np.zeros(boxes.size.shape[0])
    own = 0.0
    for column in range(lo.shape[0]):
        own += box_cost(boxes.flat, boxes.layout, column, lo[column], hi[column])
        _add_union_costs(column, lo[column], hi[column], boxes, rises)
    for b in range(rises.shape[0]):
        if boxes.size[b] == 0:
            rises[b] = np.inf
        else:
            union = (size + boxes.size[b]) * rises[b]
            rises[b] = union - size * own - boxes.size[b] * boxes.cost[b]
    return rises
