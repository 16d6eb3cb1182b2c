"""Optimal microaggregation of sorted numbers (Hansen, Mukherjee, TKDE 2003)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dbanon.kernels.compile import kernel

if TYPE_CHECKING:
    from dbanon.kernels.arrays import Floats, Int32s

TIE = 1e-12  # errors that differ by a smaller share are equal


@kernel
def least_error_blocks(x: Floats, k: int) -> tuple[Int32s, int]:
    """Cut sorted numbers into blocks of k to 2k - 1 with the least squared error; O(n k).

    x: (n,) ascending, n >= k. Returns the block of each, (n,), and the number of blocks. Ties:
    earliest first cut. Shortest path from the end: ``best[i]`` is the least error of x[i:]. The
    error of a block is updated around its running mean, which loses no digits, unlike sums of
    squares.
    """
    n = x.shape[0]
    best = np.full(n + 1, np.inf)
    best[n] = 0.0
    end = np.full(n + 1, n, np.int64)
    for i in range(n - k, -1, -1):
        mean, error = 0.0, 0.0
        for j in range(i, min(i + 2 * k - 1, n)):
            step = x[j] - mean
            mean += step / (j - i + 1)
            error += step * (x[j] - mean)
            if j - i + 1 >= k and error + best[j + 1] < best[i] * (1.0 - TIE):
                best[i] = error + best[j + 1]
                end[i] = j + 1
    block = np.empty(n, np.int32)
    n_blocks, i = 0, 0
    while i < n:
        block[i : end[i]] = n_blocks
        n_blocks += 1
        i = end[i]
    return block, n_blocks
