"""Blocks of neighbouring points, with borders that move from round to round."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dbanon.kernels.compile import kernel
from dbanon.kernels.cuts import cut_all, make_cutter
from dbanon.kernels.diversity import make_rules

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
def cut_blocks(
    codes: NDArray[np.int32],
    flat: NDArray[np.float64],
    layout: NDArray[np.int64],
    least: int,
    most: int,
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Cut rows where the sides cost least until a part has at most ``most``, where that can be.

    A part has at least ``least`` rows; equal rows are never cut. Return the rows in order of their
    parts, (n,), and where the parts begin, (parts + 1,). O(n d^2) a level.
    """
    n = codes.shape[0]
    nothing = np.empty(0, np.int64)
    r = make_rules(nothing, nothing, np.empty((0, 2)), np.empty((n, 0), np.int32))
    rows, ends = np.arange(n).astype(np.int32), np.zeros(n // least + 2, np.int64)
    parts = cut_all(make_cutter(codes, flat, layout, n), rows, r, least, most, ends[1:])
    return rows, ends[: parts + 1]


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
