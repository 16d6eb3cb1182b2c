"""BIRCH (Zhang, Ramakrishnan, Livny, SIGMOD 1996), with groups of at least k rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from dbanon.anonymization.adjusting.resize import resize
from dbanon.anonymization.distances.embedding import embed
from dbanon.anonymization.limits import require_at_most
from dbanon.domain.errors import PolicyError

if TYPE_CHECKING:
    from dbanon.anonymization.interfaces import Requirement
    from dbanon.domain.assignment import Assignment, EncodedTable
    from dbanon.kernels.arrays import Floats, Int64s


@dataclass(frozen=True, slots=True)
class Birch:
    """The entries of a tree of clustering features, which rows join one after the other.

    Rows are points (see ``embed``), equal ones one point. A point goes down to the nearest entry
    and joins it if the entry's points then lie within ``radius`` of their mean, by the root of
    the mean square; a node has at most ``branching`` entries (section 4). ``radius`` 0 takes the
    median distance of a row from the k-th nearest, itself included. The paper then clusters the
    entries by another method; here ``resize`` makes groups of them: at least k rows, fewer than
    2k where that costs anything and l = 1.
    """

    radius: float = 0.0
    branching: int = 50

    NEEDS: ClassVar[str] = "sklearn"
    MAX_ROWS: ClassVar[int] = 50_000

    def assign(self, table: EncodedTable, requirement: Requirement, *, seed: int) -> Assignment:
        """Group the rows; O(n^2 p) at worst for points of p coordinates, O(n p) memory."""
        from threadpoolctl import threadpool_limits

        if self.radius < 0.0 or self.branching < 2:  # noqa: PLR2004 - to branch
            msg = f"no tree has a radius of {self.radius:g} and a branching of {self.branching}"
            raise PolicyError(msg, hint="leave both out, or choose at least 0 and 2")
        require_at_most(self.MAX_ROWS, table, algorithm="birch")
        rows = embed(table)
        points, place = np.unique(rows, axis=0, return_inverse=True)
        clusters = np.arange(len(points))
        with threadpool_limits(1):  # so that equal runs are equal
            radius = self.radius or _usual_radius(rows, max(requirement.k, 1))
            if radius > 0.0:
                clusters = entries(points, radius, branching=self.branching)
        return resize(table, clusters[place.ravel()], requirement)


def _usual_radius(rows: Floats, k: int) -> float:
    """Return the median distance of a point from the k-th nearest."""
    from sklearn.neighbors import NearestNeighbors

    neighbours = NearestNeighbors(n_neighbors=k)
    return float(np.median(neighbours.fit(rows).kneighbors(rows)[0][:, -1]))


def entries(points: Floats, radius: float, *, branching: int) -> Int64s:
    """Return the entry of the tree whose mean is nearest to each of the points, (m,)."""
    from sklearn import cluster

    tree = cluster.Birch(threshold=radius, branching_factor=branching, n_clusters=None)
    labels: Int64s = tree.fit_predict(points).astype(np.int64)
    return labels
