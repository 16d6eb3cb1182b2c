"""What it costs to join boxes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dbanon.kernels.boxes.costs import box_cost
from dbanon.kernels.compile import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Boxes(NamedTuple):
    """Boxes of rows and what they cost.

    lo, hi: (g, d) least and greatest codes; size: (g,) rows, 0 for a box that is no more; cost:
    (g,); flat, layout: as ``dbanon.kernels.boxes.costs`` describes them.
    """

    lo: NDArray[np.int32]
    hi: NDArray[np.int32]
    size: NDArray[np.int64]
    cost: NDArray[np.float64]
    flat: NDArray[np.float64]
    layout: NDArray[np.int64]


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
    flat, layout, los, his = boxes.flat, boxes.layout, boxes.lo, boxes.hi
    for j in range(lo.shape[0]):
        own += box_cost(flat, layout, j, lo[j], hi[j])
        for b in range(rises.shape[0]):
            rises[b] += box_cost(flat, layout, j, min(lo[j], los[b, j]), max(hi[j], his[b, j]))
    for b in range(rises.shape[0]):
        if boxes.size[b] == 0:
            rises[b] = np.inf
        else:
            union = (size + boxes.size[b]) * rises[b]
            rises[b] = union - size * own - boxes.size[b] * boxes.cost[b]
    return rises
