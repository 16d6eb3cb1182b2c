"""Clusters around a record."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Clusters(NamedTuple):
    """Rows around centers.

    group: (n,) int32, the cluster of each row, 0..g-1 without gaps, -1 for a row left out;
    center: (g,) int64, the row in the middle of each, which need not be a member.
    """

    group: NDArray[np.int32]
    center: NDArray[np.int64]


def best_centers(
    distances: NDArray[np.float64], group: NDArray[np.int32], n_groups: int
) -> NDArray[np.int64]:
    """Return for each group the row whose farthest member is nearest, the lowest of equals.

    distances: (n, n); any row of the table can be a center. O(n^2).
    """
    farthest = (distances[:, group == g].max(axis=1) for g in range(n_groups))
    return np.array([apart.argmin() for apart in farthest], np.int64)
