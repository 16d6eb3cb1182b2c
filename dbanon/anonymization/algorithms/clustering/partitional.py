"""Clustering around centers: k-means (Lloyd; in one pass: Lin and Wei, PAIS 2008) and k-medoids.

The latter by swapping (PAM; Kaufman, Rousseeuw, 1990) or random swaps (CLARANS; Ng, Han, VLDB
1994).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from dbanon.anonymization.adjusting.repair import repair
from dbanon.anonymization.adjusting.resize import resize
from dbanon.anonymization.algorithms.clustering.growth import weighted_heights
from dbanon.anonymization.distances.rows import embed, pairwise
from dbanon.anonymization.interfaces import Requirement, require_at_most
from dbanon.domain.assignment import Assignment, EncodedTable

if TYPE_CHECKING:
    from dbanon.kernels.layout import Floats, Int64s


_MOST_PAIRS = 20_000_000


@dataclass(frozen=True, slots=True)
class KMeans:
    """k-means with n / k centers, then repaired to valid sizes.

    Rows are points (``embed``), equal rows one weighted point. Centers start at random points; at
    most ``rounds`` rounds of scikit-learn's k-means follow, in batches if rows times centers exceed
    20 million. ``resize`` bounds the sizes: at least k rows, for l = 1 fewer than 2k unless they
    cost nothing. Single-threaded, so that results are reproducible.
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

    Records, sorted by quasi-identifiers, join the nearest center, which follows them. Clusters of
    more than k then release their farthest records, which in random order join the nearest cluster
    of fewer than k, otherwise the nearest. Groups have k to 2k - 1 rows for l = 1 and are merged
    afterwards for l > 1. A center has the mean of an ordered column without NULLs, and the most
    frequent value of any other, even with a taxonomy. Distances are those of ``NearestNeighbour``.
    Ties: lower row, lower value, earlier cluster.
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


_LEAST_NEIGHBOURS = 250
_SHARE_OF_NEIGHBOURS = 0.0125

TIE = 1e-9  # what lowers a sum of distances by less lowers nothing


@dataclass(frozen=True, slots=True)
class KMedoids:
    """Partitioning around n / k medoids, then repaired.

    Medoids start at random rows. Each row in turn replaces the medoid with the greatest gain, if
    any, until no row does or after ``rounds`` rounds (Schubert, Rousseeuw, 2021, "Fast and eager
    k-medoids clustering"). Sizes as in ``resize``: at least k rows, for l = 1 fewer than 2k unless
    they cost nothing. Ties: lower place, lower row.
    """

    rounds: int = 5
    distance: str = "manhattan"

    MAX_ROWS: ClassVar[int] = 10_000

    def assign(self, table: EncodedTable, requirement: Requirement, *, seed: int) -> Assignment:
        """Group the rows; O(rounds n^2) time, O(n^2) memory."""
        require_at_most(self.MAX_ROWS, table, algorithm="k-medoids")
        apart = pairwise(table, self.distance)
        n_medoids = table.n_rows // max(requirement.k, 1)
        random = np.random.default_rng(seed)
        medoids = random.choice(table.n_rows, n_medoids, replace=False)
        medoids = np.sort(swapped(apart, medoids, rounds=self.rounds))
        return resize(table, apart[:, medoids].argmin(axis=1), requirement)


def swapped(apart: Floats, medoids: Int64s, *, rounds: int) -> Int64s:
    """Return the medoids after swapping, (m,) rows; apart: (n, n). O(rounds n^2)."""
    search = MedoidSearch(apart, medoids)
    for _ in range(rounds):
        swaps = [search.try_swap(row) for row in range(len(apart))]
        if not any(swaps):
            break
    return search.medoids


class MedoidSearch:
    """Medoids, with the two nearest to each row and their distances."""

    def __init__(self, apart: Floats, medoids: Int64s) -> None:
        self._apart, self.medoids = apart, medoids.copy()
        self._places = np.zeros((2, len(apart)), np.int64)
        self._steps = np.full((2, len(apart)), np.inf)
        self._look_up(np.arange(len(apart)))

    def _look_up(self, rows: Int64s) -> None:
        """Find the two nearest medoids of some rows; there may be only one."""
        steps = self._apart[rows[:, None], self.medoids]
        self._steps[1, rows] = np.inf
        for i in range(min(2, len(self.medoids))):
            place = steps.argmin(axis=1)
            self._places[i, rows] = place
            self._steps[i, rows] = steps[np.arange(len(rows)), place]
            steps[np.arange(len(rows)), place] = np.inf

    @property
    def deviation(self) -> float:
        """Sum of the distances of the rows to their nearest medoids."""
        return float(self._steps[0].sum())

    def try_swap(self, row: int) -> bool:
        """Replace the medoid with the greatest gain by a row; return True if there is a gain."""
        if row in self.medoids:
            return False
        steps, (near, far) = self._apart[row], self._steps
        gained = np.maximum(near - steps, 0.0).sum()
        # a row that loses its medoid falls to its second or to the new one
        lost = np.maximum(np.minimum(steps, far) - near, 0.0)
        loss = np.bincount(self._places[0], weights=lost, minlength=len(self.medoids))
        place = int(loss.argmin())
        if gained - loss[place] <= TIE:
            return False
        self.swap(place, row)
        return True

    def gain(self, place: int, row: int) -> float:
        """Return by how much replacing a medoid by a row that is none would lower the sum."""
        steps, (near, far) = self._apart[row], self._steps
        left = np.flatnonzero(self._places[0] == place)
        lost = np.maximum(np.minimum(steps[left], far[left]) - near[left], 0.0).sum()
        return float(np.maximum(near - steps, 0.0).sum() - lost)

    def swap(self, place: int, row: int) -> None:
        """Replace a medoid by a row; O(n), and O(m) for each row that loses a medoid."""
        self.medoids[place] = row
        steps, is_stale = self._apart[row], (self._places == place).any(axis=0)
        nearer = ~is_stale & (steps < self._steps[0])
        second = ~is_stale & ~nearer & (steps < self._steps[1])
        self._places[1, nearer] = self._places[0, nearer]
        self._steps[1, nearer] = self._steps[0, nearer]
        for i, rows in enumerate((nearer, second)):
            self._places[i, rows] = place
            self._steps[i, rows] = steps[rows]
        self._look_up(np.flatnonzero(is_stale))


@dataclass(frozen=True, slots=True)
class Clarans:
    """Partitioning around n / k medoids improved by random swaps, then repaired.

    Medoids start at random rows. A random row replaces a random medoid if that lowers the sum of
    distances, until ``neighbours`` consecutive swaps fail; 0 takes 1.25 % of all swaps, at least
    250 (section 3.4). The best of ``searches`` searches is taken. Sizes as in ``resize``: at least
    k rows, for l = 1 fewer than 2k unless they cost nothing.
    """

    searches: int = 2
    neighbours: int = 0
    distance: str = "manhattan"

    MAX_ROWS: ClassVar[int] = 5_000

    def assign(self, table: EncodedTable, requirement: Requirement, *, seed: int) -> Assignment:
        """Group the rows; O(n) for each attempted swap, O(n^2) memory."""
        require_at_most(self.MAX_ROWS, table, algorithm="clarans")
        apart = pairwise(table, self.distance)
        n_medoids = table.n_rows // max(requirement.k, 1)
        n_swaps = n_medoids * (table.n_rows - n_medoids)
        usual = max(_LEAST_NEIGHBOURS, round(_SHARE_OF_NEIGHBOURS * n_swaps))
        found = [
            wandered(
                apart,
                n_medoids,
                neighbours=self.neighbours or usual,
                random=np.random.default_rng((seed, i)),
            )
            for i in range(max(self.searches, 1))
        ]
        medoids = np.sort(min(found, key=lambda search: search.deviation).medoids)
        return resize(table, apart[:, medoids].argmin(axis=1), requirement)


def wandered(
    apart: Floats, n_medoids: int, *, neighbours: int, random: np.random.Generator
) -> MedoidSearch:
    """Return medoids after ``neighbours`` consecutive failed swaps; ties fail; apart: (n, n)."""
    rows = random.permutation(len(apart))
    search, others = MedoidSearch(apart, rows[:n_medoids]), rows[n_medoids:]
    failed = 0 if len(others) else neighbours
    while failed < neighbours:
        place, i = int(random.integers(n_medoids)), int(random.integers(len(others)))
        row, failed = int(others[i]), failed + 1
        if search.gain(place, row) > TIE:
            others[i], failed = search.medoids[place], 0
            search.swap(place, row)
    return search
