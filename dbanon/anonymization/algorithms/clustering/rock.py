"""ROCK, clustering by links (Guha, Rastogi, Shim, ICDE 1999), of at least k rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from dbanon.anonymization.adjusting.resize import resize
from dbanon.anonymization.algorithms.clustering.pairs import BestPairs
from dbanon.anonymization.distances.rows import pairwise
from dbanon.anonymization.limits import require_at_most
from dbanon.domain.errors import PolicyError

if TYPE_CHECKING:
    from dbanon.anonymization.interfaces import Requirement
    from dbanon.domain.assignment import Assignment, EncodedTable
    from dbanon.kernels.arrays import Bools, Floats, Int64s

_MOST_SIMILAR = 0.99  # at 1 all links are expected, whatever the sizes
_CLOSE = 1e-9  # a similarity that is less by no more is what rounding made of the same


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
