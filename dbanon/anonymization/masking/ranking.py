"""Individual ranking (Defays, Nanopoulos, 1993; Domingo-Ferrer, Mateo-Sanz, TKDE 2002)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def individual_ranking(values: NDArray[np.float64], k: int) -> NDArray[np.float64]:
    """Replace the values of each column by the means of k successive ones.

    Every column is sorted for itself and cut after each k values, the last block holding up to
    2k - 1. The loss is small because columns do not share their blocks, and for the same reason
    **rows do not become k-anonymous**: the combination of means is as telling as the values were.
    It masks numbers and anonymizes nobody.

    values: (n, p), NaN for NULL, which stays; a column with fewer than k values gets one mean.
    Equal values are cut in row order. Returns (n, p). O(p n log n).
    """
    masked = np.full(values.shape, np.nan)
    for column, result in zip(values.T, masked.T, strict=True):
        present = np.flatnonzero(~np.isnan(column))
        order = present[np.argsort(column[present], kind="stable")]
        n_blocks = max(len(order) // k, 1)
        block = np.minimum(np.arange(len(order)) // k, n_blocks - 1)
        means = np.bincount(block, weights=column[order]) / np.bincount(block)
        result[order] = means[block]
    return masked
