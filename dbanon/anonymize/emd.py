"""The earth mover's distance of classes from the table (Li, Li, Venkatasubramanian, ICDE 2007).

All functions take how often each sensitive value occurs in each class, counts (g, m), and in the
whole table, whole (m,), and return the distance of each class in [0, 1], (g,); O(g m). They differ
in how far apart two values are. Every class has a row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dbanon.domain.taxonomy import height_shares

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.domain.taxonomy import Taxonomy


def emd_equal(counts: NDArray[np.int64], whole: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the distance when any two values are 1 apart: half the sum of the differences."""
    emd: NDArray[np.float64] = np.abs(_extra(counts, whole)).sum(axis=1) / 2
    return emd


def emd_ordered(counts: NDArray[np.int64], whole: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the distance when values are as far apart as their ranks in the table.

    Values are in order; those that the table does not hold have no rank.
    """
    there = whole > 0
    carried = np.cumsum(_extra(counts[:, there], whole[there]), axis=1)
    emd: NDArray[np.float64] = np.abs(carried).sum(axis=1) / max(int(there.sum()) - 1, 1)
    return emd


def emd_hierarchical(
    counts: NDArray[np.int64], whole: NDArray[np.int64], *, taxonomy: Taxonomy
) -> NDArray[np.float64]:
    """Return the distance when values are as far apart as their common ancestor is high.

    Values are the leaves of the taxonomy. What a subtree has too much or too little of crosses
    the edge above it, and pays half the rise of that edge.
    """
    carried = np.zeros((len(counts), taxonomy.n_leaves + 1))
    np.cumsum(_extra(counts, whole), axis=1, out=carried[:, 1:])
    height = height_shares(taxonomy)
    emd = np.zeros(len(counts))
    for node in range(1, len(taxonomy.parent)):
        rise = height[taxonomy.parent[node]] - height[node]
        extra = carried[:, taxonomy.leaf_hi[node] + 1] - carried[:, taxonomy.leaf_lo[node]]
        emd += rise / 2 * np.abs(extra)
    return emd


def _extra(counts: NDArray[np.int64], whole: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the share of each value in each class less its share in the table, (g, m)."""
    extra: NDArray[np.float64] = counts / counts.sum(axis=1, keepdims=True) - whole / whole.sum()
    return extra
