"""One round of merging small groups with their nearest ones (Xu et al., KDD 2006)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dbanon.kernels.boxes.box_extension import NONE, absorb, boxes_of, costs_of, nearest_box
from dbanon.kernels.compile import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray


@kernel
def merge_small(
    lo: NDArray[np.int32],
    hi: NDArray[np.int32],
    size: NDArray[np.int64],
    flat: NDArray[np.float64],
    layout: NDArray[np.int64],
    k: int,
) -> NDArray[np.int64]:
    """Merge every group of fewer than k rows, in order, with the group nearest to it.

    lo, hi: (g, d) the boxes, size: (g,) the rows of the groups; all are overwritten. Return the
    group that each ends up in, (g,), which is the lower of the two at each merge, so that no group
    is merged on its own account twice. O(g^2 d).
    """
    c, boxes = costs_of(flat, layout), boxes_of(lo, hi, size)
    n_groups = size.shape[0]
    into = np.arange(n_groups)
    for a in range(n_groups):
        if size[a] == 0 or size[a] >= k:
            continue
        b, _ = nearest_box(a, boxes, c)
        if b == NONE:
            break
        absorb(min(a, b), max(a, b), boxes)
        into[max(a, b)] = min(a, b)
    for a in range(n_groups):
        into[a] = into[into[a]]
    return into
