"""Turn clusters of any size into groups that meet a requirement."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.adjusting.merging import Merging, numbered
from dbanon.anonymization.adjusting.repair import repair
from dbanon.anonymization.loss.costs import renumber_for_cuts
from dbanon.domain.assignment import Assignment, EncodedTable

if TYPE_CHECKING:
    from dbanon.anonymization.interfaces import Requirement
    from dbanon.kernels.layout import Int64s


def resize(table: EncodedTable, clusters: Int64s, requirement: Requirement) -> Assignment:
    """Return groups of at least k rows; for l = 1 fewer than 2k, unless they cost nothing.

    clusters: (n,) any numbers, below 0 for noise. Noise joins the cluster of least cost, or is
    suppressed, costliest first, if that is cheaper and within the budget. Clusters of fewer than k
    rows are dissolved, smallest first, row by row; undiverse groups are merged (``repair``); 2k
    rows or more are cut as in relaxed Mondrian. Ties: lowest cluster. O(moved rows * clusters * d +
    n d log n).
    """
    group = np.full(table.n_rows, -1, np.int32)
    shown = clusters >= 0
    if not shown.any():
        shown = np.ones(table.n_rows, np.bool_)
        clusters = np.zeros(table.n_rows, np.int64)
    group[shown] = np.unique(clusters[shown], return_inverse=True)[1]
    clustering = _Clustering(table, Assignment(group, int(group.max()) + 1))
    clustering.take_noise(_too_far(table, clustering, requirement))
    clustering.dissolve(requirement.k)
    return _cut(table, repair(table, clustering.assignment(), requirement), requirement)


def _too_far(table: EncodedTable, clusters: Merging, requirement: Requirement) -> set[int]:
    """Return the noise rows to suppress; none if too few rows would remain."""
    everything = sum(column.rule.weight for column in table.quasi)
    budget = requirement.budget(table.n_rows)
    noise = np.flatnonzero(clusters.group < 0) if budget > 0 else np.empty(0, np.int64)
    rises = np.array([clusters.rises_of_row(row).min() for row in noise.tolist()])
    order = np.argsort(-rises, kind="stable")
    gone = noise[order[rises[order] > everything]][:budget]
    kept = np.delete(table.sensitive, gone, axis=0)
    distinct = [len(np.unique(values)) for values in kept.T]
    is_enough = len(kept) >= requirement.k and min(distinct, default=requirement.l) >= requirement.l
    return set(gone.tolist()) if is_enough else set()


class _Clustering(Merging):
    """Clusters that exchange rows."""

    def __init__(self, table: EncodedTable, assignment: Assignment) -> None:
        super().__init__(table, assignment)
        self._members: list[list[int]] = [[] for _ in range(assignment.n_groups)]
        for row in np.flatnonzero(self.group >= 0).tolist():
            self._members[self.group[row]].append(row)

    def take_noise(self, gone: set[int]) -> None:
        """Put all rows without a cluster, except ``gone``, into the nearest cluster."""
        for row in np.flatnonzero(self.group < 0).tolist():
            if row not in gone:
                self._move(row)

    def dissolve(self, k: int) -> None:
        """Dissolve clusters until each has k rows or one is left; smallest first, then lowest."""
        heap = [(len(rows), a) for a, rows in enumerate(self._members) if len(rows) < k]
        heapq.heapify(heap)
        n_clusters = len(self._members)
        while heap and n_clusters > 1:
            size, a = heapq.heappop(heap)
            rows = self._members[a]
            if size < len(rows) < k:
                heapq.heappush(heap, (len(rows), a))
            elif size == len(rows):
                n_clusters -= 1
                self.boxes.size[a] = 0
                self._members[a] = []
                for row in rows:
                    self._move(row)

    def _move(self, row: int) -> None:
        a = int(self.rises_of_row(row).argmin())
        self.add(a, row)
        self._members[a].append(row)


def _cut(table: EncodedTable, before: Assignment, requirement: Requirement) -> Assignment:
    """Cut every group of 2k rows or more if possible."""
    group, n_groups = before.group.copy(), before.n_groups
    for rows in before.members:
        if len(rows) >= 2 * requirement.k:
            parts = cut(table.take(rows), requirement, relaxed=True)
            group[rows] = n_groups + parts.group
            n_groups += parts.n_groups
    return numbered(group)


def cut(table: EncodedTable, requirement: Requirement, *, relaxed: bool) -> Assignment:
    """Cut a table as Mondrian does, strictly or relaxed; O(n d^2 log(n / k)) for balanced cuts."""
    from dbanon.kernels.boxes.mondrian import mondrian

    numbers = np.arange(table.n_rows, dtype=np.int32)
    rows = np.column_stack([table.all_codes, numbers])
    costs = renumber_for_cuts(table.quasi, rows)
    cardinality = int(table.sensitive.max(initial=0)) + 1
    group, n_groups = mondrian(rows, *costs, requirement.k, requirement.l, cardinality, relaxed)
    return Assignment(group, int(n_groups))
