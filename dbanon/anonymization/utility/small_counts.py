"""Counts of the source that may be told: nothing of fewer than k rows, and no last digit.

A report lies beside the release it is about, so each figure is one more that a reader can subtract.
Counts are rounded to multiples of k, or of a thousandth of the rows where that is more, so that who
knows the release does not find in a difference the few rows that it leaves out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Counts = NDArray[np.float64]

_FINEST = 0.001


def persons_in(places: NDArray[np.int64], persons: NDArray[np.int64], *, n_bins: int) -> Counts:
    """Return how many persons have rows in each bin; places: the bin of each row, -1 for none."""
    inside = places >= 0
    pairs = np.unique(persons[inside].astype(np.int64) * n_bins + places[inside])
    return np.bincount(pairs % n_bins, minlength=n_bins).astype(np.float64)


def hidden(counts: Counts, k: int) -> NDArray[np.bool_]:
    """Return which of some counts must not be told.

    Those below k, and as many of the least others as it takes until what a reader gets for all of
    them together, by subtracting the rest from the sum, is k or more of at least two. With k = 1
    there is nothing to hide.
    """
    secret = counts < k
    if k <= 1 or not secret.any():
        secret[:] = False
        return secret
    for at in np.argsort(counts, kind="stable"):
        if secret.sum() > 1 and counts[secret].sum() >= k:
            break
        secret[at] = True
    return secret


def unit_of(k: int, rows: float) -> float:
    """Return of what the shares of so many rows are multiples."""
    return max(k / rows, _FINEST) if k > 1 and rows > 0.0 else _FINEST


def told(counts: Counts, *, unit: float) -> Counts:
    """Return the shares of counts in their sum, rounded so that no last digit is known."""
    total = counts.sum()
    return np.minimum(np.rint(counts / (total or 1.0) / unit) * unit, 1.0)


def as_figures(shares: Counts, secret: NDArray[np.bool_]) -> tuple[float | None, ...]:
    """Return shares as they are written, None for those that are hidden."""
    pairs = zip(shares.tolist(), secret.tolist(), strict=True)
    return tuple(None if is_secret else round(share, 6) for share, is_secret in pairs)
