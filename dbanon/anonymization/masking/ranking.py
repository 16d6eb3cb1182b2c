"""Individual ranking (Defays, Nanopoulos, 1993; Domingo-Ferrer, Mateo-Sanz, TKDE 2002)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from dbanon.anonymization.masking.interfaces import NumberMasking
from dbanon.anonymization.masking.microaggregation import require_groups
from dbanon.anonymization.means import group_means, group_medians

if TYPE_CHECKING:
    from collections.abc import Collection

    from numpy.typing import NDArray

    from dbanon.anonymization.masking.interfaces import Rows
    from dbanon.kernels.arrays import Floats


@dataclass(frozen=True, slots=True)
class IndividualRanking(NumberMasking):
    """Replace the values of each column by the means of ``k`` successive ones, ranks by medians."""

    k: int

    of_ranks: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Raise PolicyError for groups of nobody."""
        require_groups(self.k)

    @property
    def least(self) -> int:
        """How many persons the rows must be of, or it hides nobody among them."""
        return self.k

    def mask(self, values: Floats, rows: Rows) -> Floats:
        """Return the means; O(n log n)."""
        return individual_ranking(values, self.k, ranks=rows.ranks)


def individual_ranking(
    values: NDArray[np.float64], k: int, *, ranks: Collection[int] = ()
) -> NDArray[np.float64]:
    """Replace the values of each column by the means of k successive ones.

    Every column is sorted for itself and cut after each k values, the last block holding up to
    2k - 1. The loss is small because columns do not share their blocks, and for the same reason
    **rows do not become k-anonymous**: the combination of means is as telling as the values were.
    It masks numbers and anonymizes nobody.

    values: (n, p), NaN for NULL, which stays; a column with fewer than k values gets one mean.
    ranks: the columns that get lower medians instead of means.
    Equal values are cut in row order. Returns (n, p). O(p n log n).
    """
    masked = np.full(values.shape, np.nan)
    for j, (column, result) in enumerate(zip(values.T, masked.T, strict=True)):
        present = np.flatnonzero(~np.isnan(column))
        order = present[np.argsort(column[present], kind="stable")]
        n_blocks = max(len(order) // k, 1)
        block = np.minimum(np.arange(len(order)) // k, n_blocks - 1)
        centers = group_medians if j in ranks else group_means
        found = centers(column[order], block, n_groups=n_blocks if len(order) else 0)
        result[order] = found[block]
    return masked
