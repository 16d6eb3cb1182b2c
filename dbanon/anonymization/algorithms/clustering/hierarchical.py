"""Hierarchical clustering with groups of at least k rows.

Agglomerative (AGNES) and divisive (DIANA; Kaufman, Rousseeuw, 1990), BIRCH (Zhang, Ramakrishnan,
Livny, SIGMOD 1996), and by links (ROCK; Guha, Rastogi, Shim, ICDE 1999).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from dbanon.anonymization.adjusting.repair import repair
from dbanon.anonymization.adjusting.resize import resize
from dbanon.anonymization.algorithms.clustering.pairs import BestPairs
from dbanon.anonymization.distances.embedding import embed
from dbanon.anonymization.distances.rows import pairwise
from dbanon.anonymization.interfaces import require_at_most
from dbanon.domain.assignment import Assignment
from dbanon.domain.errors import PolicyError

if TYPE_CHECKING:
    from dbanon.anonymization.interfaces import Requirement
    from dbanon.domain.assignment import EncodedTable
    from dbanon.kernels.arrays import Bools, Floats, Int64s


_MOST_SIMILAR = 0.99  # at 1 all links are expected, whatever the sizes
_CLOSE = 1e-9  # a similarity that is less by no more is what rounding made of the same

LINKAGES = ("single", "complete", "average", "centroid")


@dataclass(frozen=True, slots=True)
class Agglomerative:
    """Merging the two closest clusters, each until it has k rows.

    Scipy merges all rows into one tree; a cluster is a union of two parts of fewer than k rows
    that has k or more. A part that was to join a cluster that large is dissolved instead (see
    ``resize``). Distances of rows are Manhattan; the linkage ``centroid`` takes the Euclidean
    distance of the means of points (see ``embed``). Without a diversity requirement a cluster
    has k to 2k - 2 rows and those that dissolve into it; from 2k rows on it is cut.
    """

    linkage: str = "average"

    MAX_ROWS: ClassVar[int] = 10_000

    def assign(self, table: EncodedTable, requirement: Requirement, *, seed: int) -> Assignment:
        """Group the rows; O(n^2) time and memory."""
        from scipy.cluster import hierarchy

        if self.linkage not in LINKAGES:
            msg = f"there is no linkage {self.linkage!r}"
            raise PolicyError(msg, hint=f"choose one of {', '.join(LINKAGES)}")
        require_at_most(self.MAX_ROWS, table, algorithm="agglomerative")
        merges = np.empty((0, 4))
        if table.n_rows > 1:
            merges = hierarchy.linkage(self._condensed(table), method=self.linkage)
        return resize(table, smallest_unions(merges, requirement.k), requirement)

    def _condensed(self, table: EncodedTable) -> Floats:
        """Return the distances of all pairs, each once."""
        from scipy.spatial import distance

        if self.linkage == "centroid":
            condensed: Floats = distance.pdist(embed(table))
        else:
            condensed = distance.squareform(pairwise(table), checks=False)
        return condensed


def smallest_unions(merges: Floats, k: int) -> Int64s:
    """Return the cluster of each row, -1 for those that join a cluster of k rows or more.

    merges: (n - 1, 4) of scipy, the two parts (n + i being the union made by merge i), their
    distance and their rows. A cluster of k rows or more has parts of fewer.
    """
    n_rows = len(merges) + 1
    sizes = np.append(np.ones(n_rows, np.int64), merges[:, 3].astype(np.int64))
    cluster = np.full(2 * n_rows - 1, -1)
    for i in range(2 * n_rows - 2, n_rows - 1, -1):
        parts = merges[i - n_rows, :2].astype(np.int64)
        if cluster[i] < 0 and sizes[i] >= k and (sizes[parts] < k).all():
            cluster[i] = i
        cluster[parts] = cluster[i]
    alone = (cluster[:n_rows] < 0) & (k <= 1)
    cluster[:n_rows][alone] = np.flatnonzero(alone)
    return cluster[:n_rows]


@dataclass(frozen=True, slots=True)
class Divisive:
    """Splitting every cluster of 2k rows or more into splinter and rest.

    The row farthest on average from the others leaves first; then, one at a time, the row that is
    nearer to the splinter than to the rest by most. The paper stops when no row is nearer. Here
    the splinter takes at least k rows and leaves at least k, which bounds all groups by 2k - 1.
    Groups that lack distinct sensitive values are merged afterwards. Ties go to the lower row.
    """

    distance: str = "manhattan"

    MAX_ROWS: ClassVar[int] = 10_000

    def assign(self, table: EncodedTable, requirement: Requirement, *, seed: int) -> Assignment:
        """Group the rows; O(n^2) for each level of the tree, O(n^2) memory."""
        require_at_most(self.MAX_ROWS, table, algorithm="divisive")
        apart = pairwise(table, self.distance)
        group = np.empty(table.n_rows, np.int32)
        pending = [(np.arange(table.n_rows), apart.sum(axis=1))]
        n_groups = 0
        while pending:
            rows, totals = pending.pop()
            if len(rows) < 2 * requirement.k or len(rows) < 2:  # noqa: PLR2004 - to split
                group[rows] = n_groups
                n_groups += 1
            else:
                pending.extend(split(apart, rows, totals, k=requirement.k))
        return repair(table, Assignment(group, n_groups), requirement)


def split(apart: Floats, rows: Int64s, totals: Floats, *, k: int) -> list[tuple[Int64s, Floats]]:
    """Return rest and splinter, each with the sum of the distances of each row to its own.

    apart: (n, n); rows: (m,) in rising order; totals: (m,) sums of the distances to these rows.
    O(m) for each row that leaves.
    """
    to_splinter = np.zeros(len(rows))
    left = np.zeros(len(rows), np.bool_)
    for size in range(len(rows) - k):
        n_rest = len(rows) - size
        nearer = (totals - to_splinter) / (n_rest - 1)
        if size > 0:
            nearer -= to_splinter / size
        nearer[left] = -np.inf
        row = int(nearer.argmax())
        if size >= k and nearer[row] <= 0.0:
            break
        left[row] = True
        to_splinter += apart[rows[row], rows]
    rest, splinter = rows[~left], rows[left]
    return [(rest, (totals - to_splinter)[~left]), (splinter, to_splinter[left])]


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


@dataclass(frozen=True, slots=True)
class Rock:
    """Merging the clusters with the most neighbours in common, each until it has k rows.

    Rows are neighbours when the columns in which they are equal weigh at least ``similarity``
    times as much as all their values, equal ones once (Jaccard coefficient, section 3.1): of four
    columns, 0.5 takes three that are equal. The method is for categories, and numbers count as
    such; NULL is a value. Two clusters have as many links as pairs of their rows have neighbours in
    common, and those merge that have the most for their sizes (goodness, section 3.3). A cluster
    of k rows or more merges no more; rows that are in none are noise, and sizes are dealt with as
    in ``dbscan``. Ties go to the lower rows.
    """

    similarity: float = 0.5

    MAX_ROWS: ClassVar[int] = 5_000

    def assign(self, table: EncodedTable, requirement: Requirement, *, seed: int) -> Assignment:
        """Group the rows; O(n^3) time for the links, O(n^2) memory."""
        if not 0.0 < self.similarity <= _MOST_SIMILAR:
            msg = f"a similarity of {self.similarity:g} is not between 0 and {_MOST_SIMILAR:g}"
            raise PolicyError(msg, hint="0.5 takes rows that have two thirds of their values alike")
        require_at_most(self.MAX_ROWS, table, algorithm="rock")
        differing = pairwise(table, "hamming")
        whole = math.fsum(column.rule.weight for column in table.quasi)
        neighbours = whole - differing + _CLOSE >= self.similarity * (whole + differing)
        np.fill_diagonal(neighbours, val=False)
        exponent = 1.0 + 2.0 * (1.0 - self.similarity) / (1.0 + self.similarity)
        found = linked_clusters(links(neighbours), requirement.k, exponent=exponent)
        return resize(table, found, requirement)


def links(neighbours: Bools) -> Floats:
    """Return how many neighbours each pair of rows has in common, (n, n), 0 on the diagonal."""
    ones = neighbours.astype(np.float32)  # which counts exactly as far as n goes
    common = (ones @ ones).astype(np.float64)
    np.fill_diagonal(common, 0.0)
    return common


def linked_clusters(common: Floats, k: int, *, exponent: float) -> Int64s:
    """Return the lowest row of the cluster of each row, -1 where it has fewer than k rows.

    common: (n, n), the links of each pair of rows, overwritten; exponent: by which the links that
    are expected within a cluster grow with its size, above 1. O(n) for each merge, and for each
    cluster whose best partner has merged.
    """
    clusters = _Clusters(common, k, exponent)
    pairs = BestPairs(len(common) if k > 1 else 0, clusters.goodness)
    while (pair := pairs.best()) is not None:
        clusters.merge(*pair)
        pairs.merged(*pair)
    return np.where(clusters.size[clusters.of_row] >= k, clusters.of_row, -1)


class _Clusters:
    """Clusters, numbered by their lowest rows, and their links."""

    def __init__(self, common: Floats, k: int, exponent: float) -> None:
        self._common, self._k = common, k
        self._within = np.arange(2 * k + 1) ** exponent
        self.size, self.of_row = np.ones(len(common), np.int64), np.arange(len(common))

    def goodness(self, a: int) -> Floats:
        """Return the links with each cluster over those that are expected, (n,)."""
        size = np.minimum(self.size, self._k)  # a cluster that is as large has no links
        expected = self._within[size + size[a]] - (self._within[size] + self._within[size[a]])
        good: Floats = self._common[a] / expected
        return good

    def merge(self, a: int, b: int) -> None:
        """Put the rows of b into a, which has no more links once it has k rows."""
        self.size[a] += self.size[b]
        self.of_row[self.of_row == b] = a
        together = self._common[a] + self._common[b]
        together[[a, b]] = 0.0
        if self.size[a] >= self._k:
            together[:] = 0.0
        self._common[a], self._common[:, a] = together, together
        self._common[b], self._common[:, b] = 0.0, 0.0
