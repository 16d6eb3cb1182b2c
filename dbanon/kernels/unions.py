"""What it costs to join boxes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dbanon.kernels.boxes import box_cost
from dbanon.kernels.compile import kernel

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
def union_rises(
    lo: NDArray[np.int32], hi: NDArray[np.int32], size: int, boxes: Boxes
) -> NDArray[np.float64]:
    """Return what the total (rows * cost) rises by when a box of rows joins each of the boxes.

    lo, hi: (d,) and size are those of the joining box. (g,), infinite for boxes that are no more;
    O(g d).
    """
    rises = np.full(boxes.size.shape[0], np.inf)
    own = 0.0
    for column in range(lo.shape[0]):
        own += box_cost(boxes.flat, boxes.layout, column, lo[column], hi[column])
    for b in range(boxes.size.shape[0]):
        if boxes.size[b] == 0:
            continue
        union = 0.0
        for column in range(lo.shape[0]):
            least = min(lo[column], boxes.lo[b, column])
            greatest = max(hi[column], boxes.hi[b, column])
            union += box_cost(boxes.flat, boxes.layout, column, least, greatest)
        rises[b] = (size + boxes.size[b]) * union - size * own - boxes.size[b] * boxes.cost[b]
    return rises
