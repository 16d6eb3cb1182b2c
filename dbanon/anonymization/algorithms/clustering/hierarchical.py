"""Agglomerative (AGNES) and divisive clustering (DIANA; Kaufman, Rousseeuw, 1990)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from dbanon.anonymization.adjusting.repair import repair
from dbanon.anonymization.adjusting.resize import resize
from dbanon.anonymization.distances.embedding import embed
from dbanon.anonymization.distances.rows import pairwise
from dbanon.anonymization.limits import require_at_most
from dbanon.domain.assignment import Assignment
from dbanon.domain.errors import PolicyError

if TYPE_CHECKING:
    from dbanon.anonymization.interfaces import Requirement
    from dbanon.domain.assignment import EncodedTable
    from dbanon.kernels.arrays import Floats, Int64s

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
