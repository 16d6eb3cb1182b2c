"""The start for dense data: cut into blocks, then greedy k-member clustering in each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dbanon.kernels.auto.cuts import cut_all, make_cutter
from dbanon.kernels.auto.diversity import make_rules
from dbanon.kernels.auto.pools import FAR, groups_hold, grow_groups, make_pool
from dbanon.kernels.compile import ZERO, kernel
from dbanon.kernels.random import make_dice

if TYPE_CHECKING:
    from numpy.typing import NDArray


@kernel
def start_segment(
    codes: NDArray[np.int32],
    sensitive: NDArray[np.int32],
    flat: NDArray[np.float64],
    layout: NDArray[np.int64],
    rules: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]],
    k: int,
    most: int,
    seed: int,
) -> NDArray[np.int32]:
    """Return the cluster of each row; the segment as a whole must keep the rules.

    most: the rows of a block. A block whose greedy clusters do not keep the rules is one cluster,
    which does because cuts see to it. O(n d^2 log(n / most) + n most d).
    """
    n = codes.shape[0]
    r = make_rules(rules[0], rules[1], rules[2], sensitive)
    least = max(k, most // 8)
    rows, ends = np.arange(n), np.empty(n // least + 1, np.int64)
    blocks = cut_all(make_cutter(codes, flat, layout, n), rows, r, least, most, ends)
    largest, start = ZERO, ZERO
    for block in range(blocks):
        largest = max(largest, ends[block] - start)
        start = ends[block]
    p = make_pool(codes, flat, layout, largest, largest // k + 2)
    dice = make_dice(seed, n)
    label, found, start = np.empty(n, np.int32), 0, 0
    for block in range(blocks):
        size = ends[block] - start
        for i in range(size):
            p.rows[i] = rows[start + i]
        groups = grow_groups(p, size, r, k, dice, FAR) if size >= 2 * k else 0
        if not groups_hold(p, size, groups, r):
            groups = 0
        for i in range(size):
            label[p.rows[i]] = found + (p.label[i] if groups > 0 else 0)
        found += max(groups, 1)
        start = ends[block]
    return label
