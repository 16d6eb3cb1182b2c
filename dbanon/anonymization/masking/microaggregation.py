"""Microaggregation as masking: members take the mean of their group (DMKD 2005)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.domain.assignment import Assignment


def aggregate(
    values: NDArray[np.float64], assignment: Assignment, *, restore_variance: bool = False
) -> NDArray[np.float64]:
    """Replace the values of each group by their means; O(n p).

    values: (n, p) without NaN, no row suppressed. Means keep the mean of a column and shrink its
    variance; ``restore_variance`` stretches each column to its old mean and deviation. That moves
    group values away from the means of their members, but members still share them.
    """
    size = np.bincount(assignment.group, minlength=assignment.n_groups)
    masked = np.empty(values.shape)
    for j in range(values.shape[1]):
        # sums of distances from the mean lose fewer digits than sums of values
        mean = values[:, j].mean()
        sums = np.bincount(assignment.group, values[:, j] - mean, assignment.n_groups)
        masked[:, j] = mean + (sums / size)[assignment.group]
        if restore_variance:
            masked[:, j] = _stretch(masked[:, j], mean, spread=values[:, j].std())
    return masked


def _stretch(
    column: NDArray[np.float64], mean: np.float64, *, spread: np.float64
) -> NDArray[np.float64]:
    offsets = column - column.mean()
    deviation = offsets.std()
    if deviation > 0.0:
        offsets *= spread / deviation
    stretched: NDArray[np.float64] = mean + offsets
    return stretched
