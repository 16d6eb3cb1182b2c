"""Blocks of neighbouring points, with borders that move from round to round."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dbanon.kernels.compile import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray


@kernel
def halve(points: NDArray[np.float32], most: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Halve points at the median of their widest column until a part has at most ``most``.

    points: (n, d) float32, scaled as wished. Return the points in order of their parts, (n,), and
    where the parts begin, (parts + 1,). O(n log n) a level.
    """
    n = points.shape[0]
    order = np.arange(n)
    stack = [(0, n)]
    ends = [0]
    while len(stack) > 0:
        start, stop = stack.pop()
        if stop - start <= most:
            ends.append(stop)
            continue
        part = order[start:stop]
        column = _widest(points, part)
        keys = np.empty(stop - start, np.float32)
        for i in range(stop - start):
            keys[i] = points[part[i], column]
        order[start:stop] = part[np.argsort(keys, kind="mergesort")]
        middle = (start + stop) // 2
        stack.append((middle, stop))
        stack.append((start, middle))
    return order, np.array(ends)


@kernel
def _widest(points: NDArray[np.float32], part: NDArray[np.int64]) -> int:
    best, widest = 0, -1.0
    for j in range(points.shape[1]):
        least, most = np.inf, -np.inf
        for i in part:
            least, most = min(least, points[i, j]), max(most, points[i, j])
        if most - least > widest:
            best, widest = j, most - least
    return best
