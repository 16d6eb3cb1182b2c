"""Hierarchical clustering with groups of at least k rows.

Agglomerative (AGNES) and divisive (DIANA; Kaufman, Rousseeuw, 1990), BIRCH (Zhang, Ramakrishnan,
Livny, SIGMOD 1996), ROCK (Guha, Rastogi, Shim, ICDE 1999) and CHAMELEON (Karypis, Han, Kumar, IEEE
Computer 1999).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from dbanon.anonymization.adjusting.repair import repair
from dbanon.anonymization.adjusting.resize import resize
from dbanon.anonymization.distances.rows import embed, pairwise
from dbanon.anonymization.interfaces import Requirement, require_at_most
from dbanon.domain.assignment import Assignment, EncodedTable
from dbanon.domain.errors import PolicyError

if TYPE_CHECKING:
    from collections.abc import Callable

    from dbanon.kernels.layout import Bools, Floats, Int64s


class BestPairs:
    """The best partner of each of n clusters; ties go to the lower clusters.

    goodness: returns the symmetric goodness of each partner of one, (n,), 0 without a merge. A
    merge may change the goodness of its own pairs only.
    """

    def __init__(self, n_clusters: int, goodness: Callable[[int], Floats]) -> None:
        self._goodness = goodness
        self._best, self._partner = np.zeros(n_clusters), np.zeros(n_clusters, np.int64)
        for a in range(n_clusters):
            self._look_up(a)

    def _look_up(self, a: int) -> None:
        good = self._goodness(a)
        self._partner[a] = good.argmax()
        self._best[a] = good[self._partner[a]]

    def best(self) -> tuple[int, int] | None:
        """Return the best pair, the lower cluster first; None if no two can merge."""
        if not self._best.any():
            return None
        a = int(self._best.argmax())
        return a, int(self._partner[a])

    def merged(self, a: int, b: int) -> None:
        """Record that b became part of a; O(n) for each cluster that lost its partner."""
        stale = (self._partner == a) | (self._partner == b)
        for c in np.flatnonzero(stale & (self._best > 0.0)).tolist():
            self._look_up(c)
        good = self._goodness(a)
        is_better = good > self._best
        is_better |= (good > 0.0) & (good == self._best) & (a < self._partner)
        self._best[is_better], self._partner[is_better] = good[is_better], a


_MOST_SIMILAR = 0.99  # at 1 all links are expected, whatever the sizes
_CLOSE = 1e-9  # a similarity that is less by no more is what rounding made of the same

LINKAGES = ("single", "complete", "average", "centroid")


@dataclass(frozen=True, slots=True)
class Agglomerative:
    """Merging the two closest clusters until each has k rows.

    A cluster is a union of at least k rows of two parts of fewer than k. A part that would join
    such a cluster is dissolved instead (``resize``). Distances are Manhattan; the linkage
    ``centroid`` uses the Euclidean distance of means of points (``embed``). For l = 1, a cluster
    has k to 2k - 2 rows and those dissolved into it; from 2k rows it is cut.
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
        """Return the distance of each pair once."""
        from scipy.spatial import distance

        if self.linkage == "centroid":
            condensed: Floats = distance.pdist(embed(table))
        else:
            condensed = distance.squareform(pairwise(table), checks=False)
        return condensed


def smallest_unions(merges: Floats, k: int) -> Int64s:
    """Return the cluster of each row, -1 for rows that would join one of k rows or more.

    merges: (n - 1, 4) of scipy: the two parts (n + i is the union of merge i), distance, rows.
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

    The row with the greatest mean distance leaves first; then, one at a time, the row that is
    nearer to the splinter than to the rest by most. The paper stops when no row is nearer. Here
    both sides have at least k rows, so groups have at most 2k - 1. Ties go to the lower row. Groups
    are merged afterwards for l > 1.
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
    """Return rest and splinter, each with the sum of distances of each row to its own side.

    apart: (n, n); rows: (m,) ascending; totals: (m,) sums of distances. O(m) for each splinter row.
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
    """The entries of a tree of clustering features, filled row by row.

    Rows are points (``embed``), equal rows one point. A point descends to the nearest entry and
    joins it if its points then have a root mean square distance of at most ``radius`` from their
    mean; a node has at most ``branching`` entries (section 4). ``radius`` 0 takes the median
    distance to the k-th nearest row, counting the row itself. ``resize``, instead of a second
    clustering, makes groups of the entries: at least k rows, for l = 1 fewer than 2k unless they
    cost nothing.
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
    """Return the median distance of a point to its k-th nearest."""
    from sklearn.neighbors import NearestNeighbors

    neighbours = NearestNeighbors(n_neighbors=k)
    return float(np.median(neighbours.fit(rows).kneighbors(rows)[0][:, -1]))


def entries(points: Floats, radius: float, *, branching: int) -> Int64s:
    """Return the nearest entry of the tree for each point, (m,)."""
    from sklearn import cluster

    tree = cluster.Birch(threshold=radius, branching_factor=branching, n_clusters=None)
    labels: Int64s = tree.fit_predict(points).astype(np.int64)
    return labels


@dataclass(frozen=True, slots=True)
class Rock:
    """Merging the clusters with the most common neighbours until each has k rows.

    Rows are neighbours if the weight of their equal columns is at least ``similarity`` times the
    weight of all their values, equal ones once (Jaccard, section 3.1): with four columns, 0.5
    requires three equal ones. For categories; numbers count as categories, NULL is a value. The
    links of two clusters are the common neighbours of their pairs of rows; those with the most
    links for their sizes merge (goodness, section 3.3). A cluster of k rows or more merges no
    further; rows in none are noise. Sizes as in ``dbscan``. Ties go to the lower rows.
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
    """Return the number of common neighbours of each pair of rows, (n, n), 0 on the diagonal."""
    ones = neighbours.astype(np.float32)  # which counts exactly as far as n goes
    common = (ones @ ones).astype(np.float64)
    np.fill_diagonal(common, 0.0)
    return common


def linked_clusters(common: Floats, k: int, *, exponent: float) -> Int64s:
    """Return the lowest row of each row's cluster, -1 if it has fewer than k rows.

    common: (n, n) links of each pair, overwritten; exponent: above 1, growth of the expected links
    within a cluster with its size. O(n) for each merge and each cluster whose best partner has
    merged.
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
        """Return the links with each cluster, divided by the expected links, (n,)."""
        size = np.minimum(self.size, self._k)  # a cluster that is as large has no links
        expected = self._within[size + size[a]] - (self._within[size] + self._within[size[a]])
        good: Floats = self._common[a] / expected
        return good

    def merge(self, a: int, b: int) -> None:
        """Move the rows of b to a; a loses its links once it has k rows."""
        self.size[a] += self.size[b]
        self.of_row[self.of_row == b] = a
        together = self._common[a] + self._common[b]
        together[[a, b]] = 0.0
        if self.size[a] >= self._k:
            together[:] = 0.0
        self._common[a], self._common[:, a] = together, together
        self._common[b], self._common[:, b] = 0.0, 0.0


_TIE = 1e-9


@dataclass(frozen=True, slots=True)
class Chameleon:
    """Merging small parts of the nearest-neighbour graph until each has k rows.

    Two rows have an edge if one is among the ``neighbours`` nearest of the other, of weight 1 / (1
    + d / m) for distance d and mean distance m. The graph is bisected down to parts of k / 2 rows,
    at least 2. Then the two parts merge with the greatest relative interconnectivity times relative
    closeness to the power ``closeness`` (section "Modeling cluster similarity"), as long as they
    have edges. The paper cuts by hMETIS; here a side grows row by row, then rows swap sides. A
    cluster of k rows or more merges no further. Sizes as in ``resize``. Ties go to the lower rows.
    """

    neighbours: int = 10
    closeness: float = 2.0
    distance: str = "manhattan"

    MAX_ROWS: ClassVar[int] = 5_000

    def assign(self, table: EncodedTable, requirement: Requirement, *, seed: int) -> Assignment:
        """Group the rows; O(n^2 log n) time, O(n^2) memory."""
        if self.neighbours < 1:
            msg = f"a graph of {self.neighbours} neighbours has no edges"
            raise PolicyError(msg, hint="10 is a usual choice")
        require_at_most(self.MAX_ROWS, table, algorithm="chameleon")
        weights = nearest_graph(pairwise(table, self.distance), self.neighbours)
        parts = divided(weights, least=max(requirement.k // 2, 2))
        found = merged(weights, parts, requirement.k, closeness=self.closeness)
        return resize(table, found, requirement)


def nearest_graph(apart: Floats, neighbours: int) -> Floats:
    """Return the edge weight of each pair of rows, (n, n), 0 without edge."""
    away = apart.copy()
    np.fill_diagonal(away, np.inf)
    nearest = np.argsort(away, axis=1, kind="stable")[:, : min(neighbours, len(apart) - 1)]
    edges = np.zeros(apart.shape, np.bool_)
    np.put_along_axis(edges, nearest, values=True, axis=1)
    edges |= edges.T
    mean = apart[edges].mean() if edges.any() else 0.0
    weights: Floats = edges / (1.0 + apart / (mean or 1.0))
    return weights


def divided(weights: Floats, *, least: int) -> list[Int64s]:
    """Return the rows of parts of ``least`` to 2 * least - 1 rows."""
    pending, parts = [np.arange(len(weights))], []
    while pending:
        rows = pending.pop()
        if len(rows) < 2 * least:
            parts.append(rows)
        else:
            side = bisected(weights[np.ix_(rows, rows)], least=least)
            pending += [rows[side], rows[~side]]
    return sorted(parts, key=lambda rows: int(rows[0]))


def bisected(weights: Floats, *, least: int = 1) -> Bools:
    """Return one of two sides of m rows with few edges between them, (m,); O(m) for each step.

    Each side has at least a quarter of the rows, and ``least``. It grows, then rows are swapped.
    """
    side, total = _grown(weights, max(least, len(weights) // 4)), weights.sum(axis=1)
    inside = weights[side].sum(axis=0)
    while True:
        gain = np.where(side, total - 2.0 * inside, 2.0 * inside - total)
        out = int(np.where(side, gain, -np.inf).argmax())
        both = gain + gain[out] - 2.0 * weights[out]
        into = int(np.where(side, -np.inf, both).argmax())
        if both[into] <= _TIE:
            return side
        side[out], side[into] = False, True
        inside += weights[into] - weights[out]


def _grown(weights: Floats, least: int) -> Bools:
    """Return the side grown from the row of least edges, at the size of lightest mean cut."""
    n_rows, total = len(weights), weights.sum(axis=1)
    taken, inside = np.zeros(n_rows, np.bool_), np.zeros(n_rows)
    side, cut, lightest, row = taken.copy(), 0.0, np.inf, int(total.argmin())
    for size in range(1, n_rows - least + 1):
        cut += total[row] - 2.0 * inside[row]
        taken[row] = True
        inside += weights[row]
        if size >= least and cut / (size * (n_rows - size)) < lightest - _TIE:
            side, lightest = taken.copy(), cut / (size * (n_rows - size))
        row = int(np.where(taken, -np.inf, 2.0 * inside - total).argmax())
    return side


def merged(weights: Floats, parts: list[Int64s], k: int, *, closeness: float) -> Int64s:
    """Return the cluster of each row after merging parts of fewer than k rows."""
    clusters = _Parts(weights, parts, k, closeness)
    pairs = BestPairs(len(parts), clusters.goodness)
    while (pair := pairs.best()) is not None:
        clusters.merge(*pair)
        pairs.merged(*pair)
    found = np.empty(len(weights), np.int64)
    for a, rows in enumerate(clusters.rows):
        found[rows] = a
    return found


class _Parts:
    """Clusters of rows, the edges between them, and the edges that bisecting each would cut."""

    def __init__(self, weights: Floats, parts: list[Int64s], k: int, closeness: float) -> None:
        self._weights, self._k, self._power = weights, k, closeness
        self.rows = parts
        self._sum = _by_parts(weights, parts)
        self._edges = _by_parts((weights > 0.0).astype(np.float64), parts)
        self._size = np.array([float(len(rows)) for rows in parts])
        self._cut, self._cut_mean = np.zeros(len(parts)), np.zeros(len(parts))
        for a in range(len(parts)):
            self._measure(a)

    def _measure(self, a: int) -> None:
        """Find the edges cut by bisecting a cluster; one of k rows or more loses its edges."""
        rows = self.rows[a]
        if len(rows) >= self._k:
            self._sum[a], self._sum[:, a] = 0.0, 0.0
        else:
            self._sum[a, a] = 0.0
            within = self._weights[np.ix_(rows, rows)]
            side = bisected(within)
            cut = within[side][:, ~side]
            self._cut[a] = cut.sum()
            self._cut_mean[a] = self._cut[a] / max(np.count_nonzero(cut), 1)

    def goodness(self, a: int) -> Floats:
        """Return the interconnectivity with each cluster times the power of the closeness."""
        good = np.zeros(len(self.rows))
        others = np.flatnonzero(self._sum[a] > 0.0)
        between, size = self._sum[a, others], self._size[others]
        mean = between / self._edges[a, others]
        cut = (self._cut[a] + self._cut[others]) / 2.0
        within = self._size[a] * self._cut_mean[a] + size * self._cut_mean[others]
        within /= self._size[a] + size
        whole = np.where(cut > 0.0, cut, 1.0) * np.where(cut > 0.0, within, 1.0) ** self._power
        # two clusters that both fall apart by themselves are held together by any edge
        good[others] = np.where(cut > 0.0, between * mean**self._power / whole, np.inf)
        return good

    def merge(self, a: int, b: int) -> None:
        """Move the rows of b to a."""
        self.rows[a] = np.sort(np.concatenate([self.rows[a], self.rows[b]]))
        self.rows[b] = self.rows[b][:0]
        self._size[a] += self._size[b]
        for edges in (self._sum, self._edges):
            edges[a] += edges[b]
            edges[:, a] = edges[a]
            edges[b], edges[:, b] = 0.0, 0.0
        self._measure(a)


def _by_parts(pairs: Floats, parts: list[Int64s]) -> Floats:
    """Return the sum over all pairs of rows of each pair of parts."""
    order = np.concatenate(parts)
    starts = np.cumsum([0, *map(len, parts[:-1])])
    by_row = np.add.reduceat(pairs[order][:, order], starts, axis=1)
    total: Floats = np.add.reduceat(by_row, starts, axis=0)
    return total
