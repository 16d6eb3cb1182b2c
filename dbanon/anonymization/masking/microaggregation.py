"""Microaggregation as masking: values are replaced by the mean of their group (DMKD 2005).

Also each column by its own order (Defays, Nanopoulos, 1993; Domingo-Ferrer, Mateo-Sanz, 2002).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from dbanon.anonymization.interfaces import Bounds, NumberMasking, Rows
from dbanon.anonymization.loss.metrics import first_component
from dbanon.anonymization.recodings.central import group_means, group_medians, stretched
from dbanon.domain.assignment import Assignment

if TYPE_CHECKING:
    from collections.abc import Collection

    from numpy.typing import NDArray

    from dbanon.kernels.layout import Floats


_GROUPS = Bounds("k of microaggregation", least=1)
_DIGITS = 12  # differences by rounding alone are equal, on every machine


@dataclass(frozen=True, slots=True)
class Microaggregation(NumberMasking):
    """Replace the values of columns together by the means of groups of at least ``k`` rows.

    Groups are those of MDAV, or of cuts with the least error along an axis: the sum of the
    standardized columns or their first principal component; for one column these are optimal
    (Hansen, Mukherjee, TKDE 2003). ``restore_variance`` stretches each column to its old deviation.
    Ranks take the lower median (Domingo-Ferrer, Torra, DMKD 2005).
    """

    k: int = field(metadata=_GROUPS.field())
    by: Literal["mdav", "z-sum", "principal"] = "mdav"
    restore_variance: bool = False

    of_ranks: ClassVar[bool] = True
    joint: ClassVar[bool] = True

    @property
    def least(self) -> int:
        """Least number of persons whose values hide each other."""
        return self.k

    def mask(self, values: Floats, rows: Rows) -> Floats:
        """Return the means; O(n^2 p / k) for MDAV (less on a tree), otherwise O(n k)."""
        groups = _groups(_standardized(values), self.k, self.by)
        masked = aggregate(values, groups, restore_variance=self.restore_variance)
        for j in rows.ranks:
            medians = group_medians(values[:, j], groups.group, n_groups=groups.n_groups)
            masked[:, j] = medians[groups.group]
        return masked


def aggregate(
    values: NDArray[np.float64], assignment: Assignment, *, restore_variance: bool = False
) -> NDArray[np.float64]:
    """Replace the values of each group by their means; O(p n log n).

    values: (n, p) without NaN, no row suppressed. Means shrink the variance of a column;
    ``restore_variance`` stretches it to its old mean and deviation, so group values are no longer
    the means of their members, but members still share them.
    """
    masked = np.empty(values.shape)
    for column, result in zip(values.T, masked.T, strict=True):
        means = group_means(column, assignment.group, n_groups=assignment.n_groups)
        if restore_variance:
            means = stretched(means, column, assignment.group)
        result[:] = means[assignment.group]
    return masked


def _groups(points: Floats, k: int, by: str) -> Assignment:
    """Group standardized rows; fewer than 2 k are one group."""
    from dbanon.kernels.points.mdav import LEAF, mdav_tree
    from dbanon.kernels.points.microaggregation import least_error_blocks

    n = len(points)
    if n < 2 * k:
        return Assignment(np.zeros(n, np.int32), 1)
    if by == "mdav":
        group, n_groups = mdav_tree(np.ascontiguousarray(points), k, LEAF)
        return Assignment(group, int(n_groups))
    scores = (points @ _axis(points, by)).round(_DIGITS)
    order = np.argsort(scores, kind="stable")
    blocks, n_groups = least_error_blocks(scores[order], k)
    group = np.empty(n, np.int32)
    group[order] = blocks
    return Assignment(group, int(n_groups))


def _axis(points: Floats, by: str) -> Floats:
    """Return the weight of each column."""
    if by == "z-sum":
        return np.ones(points.shape[1])
    return first_component(points)


def _standardized(values: Floats) -> Floats:
    spread = values.std(axis=0)
    offsets = values - values.mean(axis=0)
    return np.asarray(offsets / np.where(spread > 0.0, spread, 1.0))


@dataclass(frozen=True, slots=True)
class IndividualRanking(NumberMasking):
    """Replace the values of each column by the means of ``k`` successive ones, ranks by medians."""

    k: int = field(metadata=_GROUPS.field())

    of_ranks: ClassVar[bool] = True

    @property
    def least(self) -> int:
        """Least number of persons whose values hide each other."""
        return self.k

    def mask(self, values: Floats, rows: Rows) -> Floats:
        """Return the means; O(n log n)."""
        return individual_ranking(values, self.k, ranks=rows.ranks)


def individual_ranking(
    values: NDArray[np.float64], k: int, *, ranks: Collection[int] = ()
) -> NDArray[np.float64]:
    """Replace the values of each column by the means of k successive ones; O(p n log n).

    Each column is sorted separately and cut after each k values; the last block has up to 2k - 1.
    The loss is small because columns do not share their blocks. For the same reason **rows do not
    become k-anonymous**: the combination of means identifies a row like its values.

    values: (n, p), NaN for NULL, which stays; a column with fewer than k values gets one mean.
    ranks: the columns that get lower medians. Equal values are cut in row order. Returns (n, p).
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
