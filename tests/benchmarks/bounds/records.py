"""What no publication of tight labels can undercut, record by record.

A row's class is a box of at least k rows that holds it, so the row loses at least what the
cheapest such box costs. The mean over rows bounds every publication without suppression; here it
is estimated on a sample. Branch and bound: a column with a taxonomy takes an ancestor of the
row's value, cheapest first; the one ordered column then takes its narrowest sufficient window.
"""

from __future__ import annotations

import numpy as np

from .boxes import Tuples

SEED = 4_004


class BoxSearch:
    """The distinct tuples of a table, and what ancestors of each value cost.

    ``steps[j][code]`` are the boxes above a code of the j-th taxonomy, (cost, first leaf, last
    leaf), in rising cost.
    """

    def __init__(self, table):
        found = Tuples(table)
        # many levels last: what is decided first is filtered once for all that follows
        order = sorted(range(len(found.trees)), key=lambda j: found.trees[j].height)
        self.tuples = found.codes[:, [0, *(j + 1 for j in order)]]
        self.tuple_of, self.count = found.of_row, found.count
        self.position = found.position
        self.steps = [_ancestors(found.trees[j]) for j in order]

    def least(self, number: int, k: int) -> float:
        """Return the least sum of losses of a box that holds this tuple and k rows."""
        self._best = float(len(self.steps) + 1)
        self._descend(self.tuples[number], k, 0, np.arange(len(self.tuples)), 0.0)
        return self._best

    def _descend(self, own, k, depth, inside, cost):
        if depth == len(self.steps):
            width = self._narrowest(own[0], k, inside)
            self._best = min(self._best, cost + width)
            return
        codes = self.tuples[inside, depth + 1]
        for more, lo, hi in self.steps[depth][own[depth + 1]]:
            if cost + more >= self._best:
                return
            kept = inside[(codes >= lo) & (codes <= hi)]
            if self.count[kept].sum() >= k:
                self._descend(own, k, depth + 1, kept, cost + more)

    def _narrowest(self, own, k, inside):
        """Return the width of the narrowest window that holds a code and k rows."""
        rows = np.bincount(self.tuples[inside, 0], self.count[inside], len(self.position))
        until = np.cumsum(rows)
        before = (until - rows)[: own + 1]
        last = np.maximum(np.searchsorted(until, before + k), own)
        enough = last < len(until)
        first = np.flatnonzero(enough)
        return (self.position[last[enough]] - self.position[first]).min()


def _ancestors(taxonomy):
    """Return for each leaf the nodes above it and itself, cheapest first."""
    boxes = []
    for leaf in taxonomy.leaves.tolist():
        node, above = leaf, {}
        while node >= 0:
            lo, hi = int(taxonomy.leaf_lo[node]), int(taxonomy.leaf_hi[node])
            above.setdefault((lo, hi), (hi - lo + 1) / taxonomy.n_leaves if hi > lo else 0.0)
            node = int(taxonomy.parent[node])
        boxes.append([(cost, lo, hi) for (lo, hi), cost in above.items()])
    return boxes


def sample_bounds(table, *, k, rows):
    """Return sampled rows and the least mean loss of each; O(boxes) a distinct tuple."""
    search = BoxSearch(table)
    picked = np.random.default_rng(SEED).choice(table.n_rows, size=rows, replace=False)
    numbers, place = np.unique(search.tuple_of[picked], return_inverse=True)
    least = np.array([search.least(int(number), k) for number in numbers])
    return picked, least[place] / len(table.quasi)
