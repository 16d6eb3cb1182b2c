"""CHAMELEON (Karypis, Han, Kumar, IEEE Computer 1999), with groups of at least k rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from dbanon.anonymization.adjusting.resize import resize
from dbanon.anonymization.algorithms.clustering.pairs import BestPairs
from dbanon.anonymization.distances.rows import pairwise
from dbanon.anonymization.interfaces import require_at_most
from dbanon.domain.errors import PolicyError

if TYPE_CHECKING:
    from dbanon.anonymization.interfaces import Requirement
    from dbanon.domain.assignment import Assignment, EncodedTable
    from dbanon.kernels.arrays import Bools, Floats, Int64s

_TIE = 1e-9


@dataclass(frozen=True, slots=True)
class Chameleon:
    """Merging small parts of the graph of nearest neighbours, each until it has k rows.

    Two rows have an edge if one of them is among the ``neighbours`` nearest of the other; it weighs
    1 / (1 + d / m) for a distance of d, m being the mean. The graph is cut in two again and again,
    down to parts of k / 2 rows, at least 2, and fewer than twice as many. Then those two merge
    whose relative interconnectivity times the power ``closeness`` of their relative closeness is
    greatest (section "Modeling cluster similarity"), as long as they have edges. The paper cuts by
    hMETIS; here a side grows row by row, and then rows swap sides. A cluster of k rows or more
    merges no more, and sizes are those of ``resize``. Ties go to the lower rows.
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
    """Return the weight of the edge of each pair of rows, (n, n), 0 where there is none."""
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
    """Return the rows of parts of at least so many rows, and of fewer than twice as many."""
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
    """Return one of two sides of m rows between which few edges run, as (m,); O(m) for each step.

    Each side has at least a quarter of the rows, and ``least``. After it has grown, the row that
    gains most swaps with the one of the other side that gains most with it, while that gains.
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
    """Return the side that the row of least edges grows to, each time by the row that cuts least.

    Of all sizes that leave so many rows on both sides, the one of the lightest mean cut.
    """
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
    """Return the cluster of each row after merging parts; those of k rows or more do not."""
    clusters = _Clusters(weights, parts, k, closeness)
    pairs = BestPairs(len(parts), clusters.goodness)
    while (pair := pairs.best()) is not None:
        clusters.merge(*pair)
        pairs.merged(*pair)
    found = np.empty(len(weights), np.int64)
    for a, rows in enumerate(clusters.rows):
        found[rows] = a
    return found


class _Clusters:
    """The rows of clusters, the edges between them, and those that cutting each in two would cut.

    Of edges, the sum of their weights and the mean.
    """

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
        """Find what cutting a cluster would cut; one of k rows or more loses its edges."""
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
        """Put the rows of b into a."""
        self.rows[a] = np.sort(np.concatenate([self.rows[a], self.rows[b]]))
        self.rows[b] = self.rows[b][:0]
        self._size[a] += self._size[b]
        for edges in (self._sum, self._edges):
            edges[a] += edges[b]
            edges[:, a] = edges[a]
            edges[b], edges[:, b] = 0.0, 0.0
        self._measure(a)


def _by_parts(pairs: Floats, parts: list[Int64s]) -> Floats:
    """Return the sum of what all pairs of rows of each pair of parts have."""
    order = np.concatenate(parts)
    starts = np.cumsum([0, *map(len, parts[:-1])])
    by_row = np.add.reduceat(pairs[order][:, order], starts, axis=1)
    total: Floats = np.add.reduceat(by_row, starts, axis=0)
    return total
