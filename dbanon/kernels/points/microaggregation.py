"""Groups of k to 2k - 1 points: MDAV in blocks, then local search."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dbanon.kernels.compile import kernel
from dbanon.kernels.points.kdtree import nearest, plant, split
from dbanon.kernels.points.local_search import dense, gather, search
from dbanon.kernels.points.mdav_tree import LEAF, mdav_tree

if TYPE_CHECKING:
    from dbanon.kernels.arrays import Floats, Int32s, Int64s
    from dbanon.kernels.points.kdtree import Tree


@kernel
def blocks(points: Floats, k: int, n_blocks: int) -> Int32s:
    """Return the groups of MDAV in each of a power of two of blocks; n >= k * blocks."""
    n = points.shape[0]
    points, row, group = points.copy(), np.arange(n), np.empty(n, np.int32)
    starts = split(points, row, np.full(n_blocks, 0.5), k)
    n_groups = 0
    for block in range(n_blocks):
        begin, end = starts[block], starts[block + 1]
        inside, n_inside = mdav_tree(points[begin:end].copy(), k, LEAF)
        for i in range(begin, end):
            group[row[i]] = n_groups + inside[i - begin]
        n_groups += n_inside
    return group


@kernel
def near_places(n_near: int, slack: float, t: Tree) -> Int32s:
    """Return the places of the nearest other points of each place, (n, n_near), nearest first."""
    n = t.row.shape[0]
    near = np.empty((n, n_near), np.int32)
    rows, distances = np.empty(n_near + 1, np.int64), np.empty(n_near + 1)
    for i in range(n):
        nearest(t.points[i], rows, distances, slack, t)
        found = 0
        for row in rows:
            if row != t.row[i] and found < n_near:
                near[i, found] = t.place[row]
                found += 1
    return near


@kernel
def near_rows(points: Floats, n_near: int, slack: float) -> tuple[Int64s, Int32s]:
    """Return the rows in the order of a tree, and ``near_places`` in that order; n_near < n."""
    t = plant(points, LEAF)
    return t.row, near_places(n_near, slack, t)


@kernel
def polish(points: Floats, group: Int32s, k: int, n_near: int, slack: float, sweeps: int) -> Int32s:
    """Return better groups by local search over the nearest points; n_near < n."""
    t = plant(points, LEAF)
    g = gather(t.points, group[t.row], k)
    search(k, near_places(n_near, slack, t), sweeps, g)
    return dense(g.group[t.place])
