"""DBSCAN (Ester et al., KDD 1996), OPTICS (Ankerst et al., SIGMOD 1999) and DENCLUE.

The latter is by Hinneburg, Keim (KDD 1998). Clusters have at least k rows.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from dbanon.anonymization.adjusting.resize import resize
from dbanon.anonymization.distances.rows import embed, pairwise
from dbanon.anonymization.interfaces import Requirement, require_at_most
from dbanon.domain.errors import PolicyError

if TYPE_CHECKING:
    from dbanon.domain.assignment import Assignment, EncodedTable
    from dbanon.kernels.layout import Floats, Int64s


_STILL = 1e-3  # of sigma; what moves by less has arrived
_FAR = 40.0  # times sigma; the influence beyond is below float precision


@dataclass(frozen=True, slots=True)
class Dbscan:
    """Clusters of rows that have k rows, counting themselves, within ``eps``.

    ``eps`` 0 takes the median distance to the k-th nearest row, so at least half of the rows are in
    a cluster. Noise joins the cluster whose cost it raises least, or is suppressed within the
    budget; clusters of 2k rows or more are cut (``resize``).
    """

    eps: float = 0.0
    distance: str = "manhattan"

    NEEDS: ClassVar[str] = "sklearn"
    MAX_ROWS: ClassVar[int] = 10_000

    def assign(self, table: EncodedTable, requirement: Requirement, *, seed: int) -> Assignment:
        """Group the rows; O(n^2) time and memory."""
        require_at_most(self.MAX_ROWS, table, algorithm="dbscan")
        apart, k = pairwise(table, self.distance), max(requirement.k, 1)
        eps = self.eps or float(np.median(np.partition(apart, k - 1, axis=1)[:, k - 1]))
        from sklearn.cluster import DBSCAN

        # scikit-learn wants a radius above 0; the next number above it includes equal rows alone
        density = DBSCAN(
            eps=max(eps, float(np.nextafter(0.0, 1.0))), min_samples=k, metric="precomputed"
        )
        return resize(table, density.fit_predict(apart), requirement)


@dataclass(frozen=True, slots=True)
class Optics:
    """Clusters between steep drops and rises of the reachability of k rows.

    ``steepness`` is the least relative drop or rise (xi in the paper). Noise and sizes as in
    ``Dbscan``.
    """

    steepness: float = 0.05
    distance: str = "manhattan"

    NEEDS: ClassVar[str] = "sklearn"
    MAX_ROWS: ClassVar[int] = 10_000

    def assign(self, table: EncodedTable, requirement: Requirement, *, seed: int) -> Assignment:
        """Group the rows; O(n^2) time and memory."""
        if not 0.0 < self.steepness < 1.0:
            msg = f"a steepness of {self.steepness} is not between 0 and 1"
            raise PolicyError(msg, hint="0.05 tells a drop of five percent")
        require_at_most(self.MAX_ROWS, table, algorithm="optics")
        clusters = np.zeros(table.n_rows, np.int64)
        if table.n_rows > max(requirement.k, 1):
            clusters = self._clusters(pairwise(table, self.distance), max(requirement.k, 2))
        return resize(table, clusters, requirement)

    def _clusters(self, apart: Floats, k: int) -> Int64s:
        from sklearn.cluster import cluster_optics_xi

        order, reach, before = ordering(apart, k)
        with warnings.catch_warnings():
            # a drop to 0 is infinitely steep
            warnings.filterwarnings("ignore", "divide by zero", RuntimeWarning)
            labels: Int64s
            labels, _ = cluster_optics_xi(
                reachability=reach,
                predecessor=before,
                ordering=order,
                min_samples=k,
                xi=self.steepness,
            )
        return labels


def ordering(apart: Floats, k: int) -> tuple[Int64s, Floats, Int64s]:
    """Return the rows in OPTICS order, their reachability and their predecessor, (n,) each.

    apart: (n, n); k: rows of a dense place. No maximum radius. The first row has reachability inf
    and predecessor -1. Ties: lower row. O(n^2).
    """
    n_rows = len(apart)
    core = np.partition(apart, k - 1, axis=1)[:, k - 1]
    order, reach, before = np.empty(n_rows, np.int64), np.full(n_rows, np.inf), np.full(n_rows, -1)
    waiting = np.ones(n_rows, np.bool_)
    for place in range(n_rows):
        row = int(np.where(waiting, reach, np.inf).argmin()) if place > 0 else 0
        order[place], waiting[row] = row, False
        through = np.maximum(core[row], apart[row])
        is_nearer = waiting & (through < reach)
        reach[is_nearer], before[is_nearer] = through[is_nearer], row
    return order, reach, before


@dataclass(frozen=True, slots=True)
class Denclue:
    """Clusters of the rows whose ascent leads to the same maximum of the density.

    Rows are points (``embed``). The density is the sum of Gaussian influences of width ``sigma`` of
    all rows (section 3.1); attractors within half of ``sigma`` are one. Instead of steps of fixed
    length, each step goes to the mean of the rows, weighted by influence, which never lowers the
    density (Hinneburg, Gabriel, IDA 2007), for at most ``rounds`` steps. ``sigma`` 0 takes the
    median distance to the k-th nearest row, counting the row itself. Rows whose attractor has less
    density than k rows at a distance of ``sigma`` are noise. Sizes as in ``dbscan``.
    """

    sigma: float = 0.0
    rounds: int = 100

    NEEDS: ClassVar[str] = "sklearn"
    MAX_ROWS: ClassVar[int] = 5_000

    def assign(self, table: EncodedTable, requirement: Requirement, *, seed: int) -> Assignment:
        """Group the rows; O(rounds n^2 p) for points of p coordinates, O(n^2) memory."""
        from threadpoolctl import threadpool_limits

        if self.sigma < 0.0:
            msg = f"a sigma of {self.sigma:g} is no width"
            raise PolicyError(msg, hint="leave sigma out to use distances of the table")
        require_at_most(self.MAX_ROWS, table, algorithm="denclue")
        k = max(requirement.k, 1)
        points, place, weight = np.unique(
            embed(table), axis=0, return_inverse=True, return_counts=True
        )
        rows = place.ravel()
        apart = _distances(points, points)[rows][:, rows]
        sigma = self.sigma or float(np.median(np.partition(apart, k - 1, axis=1)[:, k - 1]))
        clusters = np.arange(len(points))
        if sigma > 0.0:
            with threadpool_limits(1):  # so that equal runs are equal
                ends = attractors(points, weight, sigma, rounds=self.rounds)
                is_dense = influences(ends, points, sigma) @ weight >= k * math.exp(-0.5)
            clusters = np.where(is_dense, joined(ends, sigma / 2.0), -1)
        return resize(table, clusters[rows], requirement)


def attractors(points: Floats, weight: Int64s, sigma: float, *, rounds: int) -> Floats:
    """Return the attractor of each of m points, (m, p); weight: the rows of each."""
    ends, climbing = points.copy(), np.arange(len(points))
    for _ in range(rounds):
        pull = influences(ends[climbing], points, sigma) * weight
        ahead = (pull @ points) / pull.sum(axis=1, keepdims=True)
        steps = np.sqrt(((ahead - ends[climbing]) ** 2).sum(axis=1))
        ends[climbing] = ahead
        climbing = climbing[steps > _STILL * sigma]
        if len(climbing) == 0:
            break
    return ends


def influences(places: Floats, points: Floats, sigma: float) -> Floats:
    """Return the influence of each point on each place, (len(places), m), 1 at distance 0."""
    widths = np.minimum(_distances(places, points), _FAR * sigma) / sigma
    influence: Floats = np.exp(-0.5 * widths**2)
    return influence


def joined(places: Floats, reach: float) -> Int64s:
    """Return a cluster of each place, (m,); chains of places within reach are one."""
    from scipy.cluster.hierarchy import fcluster, linkage

    if len(places) == 1:
        return np.zeros(1, np.int64)
    clusters: Int64s = fcluster(linkage(places, "single"), reach, "distance")
    return clusters.astype(np.int64)


def _distances(places: Floats, points: Floats) -> Floats:
    from scipy.spatial.distance import cdist

    apart: Floats = cdist(places, points)
    return apart
