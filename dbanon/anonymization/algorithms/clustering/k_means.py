"""k-means (Lloyd) and in one pass (Lin and Wei, PAIS 2008), of groups of at least k rows."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from dbanon.anonymization.adjusting.repair import repair
from dbanon.anonymization.adjusting.resize import resize
from dbanon.anonymization.algorithms.clustering.growth import weighted_heights
from dbanon.anonymization.distances.embedding import embed
from dbanon.anonymization.interfaces import require_at_most
from dbanon.domain.assignment import Assignment

if TYPE_CHECKING:
    from dbanon.anonymization.interfaces import Requirement
    from dbanon.domain.assignment import EncodedTable
    from dbanon.kernels.arrays import Floats, Int64s


_MOST_PAIRS = 20_000_000


@dataclass(frozen=True, slots=True)
class KMeans:
    """k-means with n / k centers, then repaired: no cluster of it is too small or too large.

    Rows are points (see ``embed``); equal rows are one point of their number's weight. The
    centers start at random points; up to ``rounds`` rounds of scikit-learn's k-means follow, of
    its version in batches when rows times centers exceed 20 million. What k-means does not bound,
    the sizes of clusters, ``resize`` does: at least k rows, fewer than 2k where that costs
    anything and l = 1. One thread computes, so that equal runs give equal groups.
    """

    rounds: int = 20

    NEEDS: ClassVar[str] = "sklearn"
    MAX_ROWS: ClassVar[int] = 50_000

    def assign(self, table: EncodedTable, requirement: Requirement, *, seed: int) -> Assignment:
        """Group the rows; O(rounds n^2 p / k) for points of p coordinates."""
        require_at_most(self.MAX_ROWS, table, algorithm="k-means")
        points, place, weight = np.unique(
            embed(table), axis=0, return_inverse=True, return_counts=True
        )
        n_centers = min(table.n_rows // max(requirement.k, 1), len(points))
        clusters = np.arange(len(points))
        if 1 < n_centers < len(points):
            clusters = self._clusters(points, weight, n_centers=n_centers, seed=seed)
        return resize(table, clusters[place.ravel()], requirement)

    def _clusters(self, points: Floats, weight: Int64s, *, n_centers: int, seed: int) -> Int64s:
        from sklearn import cluster
        from sklearn.exceptions import ConvergenceWarning
        from threadpoolctl import threadpool_limits

        is_large = len(points) * n_centers > _MOST_PAIRS
        method = cluster.MiniBatchKMeans if is_large else cluster.KMeans
        means = method(
            n_centers, init="random", n_init=1, max_iter=max(self.rounds, 1), random_state=seed
        )
        with threadpool_limits(1), warnings.catch_warnings():
            # fewer clusters than centers are as good a start for the repair
            warnings.simplefilter("ignore", ConvergenceWarning)
            labels: Int64s = means.fit_predict(points, sample_weight=weight)
        return labels


@dataclass(frozen=True, slots=True)
class OnePassKMeans:
    """The one-pass k-means algorithm (section 3): n // k clusters around random records.

    The records, sorted by the quasi-identifiers, join the nearest center, which follows them;
    clusters of more than k then give up the records farthest from their center, which in random
    order go to the nearest cluster of fewer than k, and when there is none to the nearest. Groups
    have k to 2k - 1 rows for l = 1; those that lack distinct sensitive values are merged
    afterwards. A center has the mean of an ordered column without its NULLs, and the most frequent
    value of any other, also where there is a taxonomy. Distances are those of k-member clustering:
    the difference over the range, or the height of the common ancestor over the height of the
    tree, weighted and added; NULL and a value are 1 apart. Ties go to the lower row, the lower
    value and the earlier cluster.
    """

    MAX_ROWS: ClassVar[int] = 100_000

    def assign(self, table: EncodedTable, requirement: Requirement, *, seed: int) -> Assignment:
        """Group the rows; O(n^2 d / k)."""
        from dbanon.kernels.boxes.one_pass import one_pass

        require_at_most(self.MAX_ROWS, table, algorithm="one-pass-k-means")
        n_clusters = max(table.n_rows // requirement.k, 1)
        rng = np.random.default_rng(seed)
        seeds = np.sort(rng.choice(table.n_rows, n_clusters, replace=False))
        order = rng.permutation(table.n_rows)
        codes = table.codes
        visit = np.lexsort(codes.T[::-1])
        ordered = np.array([column.taxonomy is None for column in table.quasi])
        costs = weighted_heights(table)
        group = one_pass(codes, ordered, seeds, visit, order, *costs, requirement.k)
        return repair(table, Assignment(group, n_clusters), requirement)
