"""Clusters around a record: how far their members are, and what that costs."""

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


def radii(distances: NDArray[np.float64], clusters: Clusters) -> NDArray[np.float64]:
    """Return the distance of each center to its farthest member, (g,)."""
    shown = np.flatnonzero(clusters.group >= 0)
    group = clusters.group[shown]
    radius = np.zeros(len(clusters.center))
    np.maximum.at(radius, group, distances[clusters.center[group], shown])
    return radius


def gather_radius(distances: NDArray[np.float64], clusters: Clusters) -> float:
    """Return the greatest radius (Aggarwal et al., PODS 2006, section 2)."""
    return float(radii(distances, clusters).max())


def cellular_cost(distances: NDArray[np.float64], clusters: Clusters) -> float:
    """Return the sum over clusters of rows times radius (the same paper, section 4)."""
    size = np.bincount(clusters.group[clusters.group >= 0])
    return float((size * radii(distances, clusters)).sum())
