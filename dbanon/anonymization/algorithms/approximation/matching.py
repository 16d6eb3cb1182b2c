"""Minimum-weight {1,2}-matching for 2-anonymity (Aggarwal et al., ICDT 2005)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from dbanon.anonymization.adjusting.repair import repair
from dbanon.anonymization.algorithms.approximation.forest import assignment_of
from dbanon.anonymization.distances.rows import pairwise
from dbanon.anonymization.limits import library, require_at_most, require_small_k

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.anonymization.interfaces import Requirement
    from dbanon.domain.assignment import Assignment, EncodedTable

SCALE = 1 << 20  # weights become integers, on which the search is exact


@dataclass(frozen=True, slots=True)
class Matching:
    """Pairs and triples of rows that differ least, for k = 2.

    Every row is an end of one or two chosen edges, and the edges weigh as little as possible; the
    weight of an edge is that of the columns in which its rows differ (section 5.1 of the paper).
    When a group shows the columns in which it is constant and a star in the others, the stars
    weigh at most twice the optimum, and 1.5 times it when columns have two values. Departs from
    the paper in the graph whose matching is sought: it has two nodes for each row and none for
    edges. Of several optima the one that the search meets first is taken, which is always the
    same. Groups that lack distinct sensitive values are merged afterwards.
    """

    MAX_K: ClassVar[int] = 2
    MAX_ROWS: ClassVar[int] = 300

    def assign(self, table: EncodedTable, requirement: Requirement, *, seed: int) -> Assignment:
        """Group the rows; O(n^3)."""
        require_small_k(self.MAX_K, requirement, algorithm="matching")
        require_at_most(self.MAX_ROWS, table, algorithm="matching")
        weights = np.rint(pairwise(table, "hamming") * SCALE).astype(np.int64)
        parts = components(lightest_cover(weights), table.n_rows)
        return repair(table, assignment_of(parts, table.n_rows), requirement)


def lightest_cover(weights: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Return the edges of a minimum-weight {1,2}-matching, sorted, none between two ends of two.

    weights: (n, n), symmetric, at least 0. Each row has a node that must be matched and one that
    may be: what a match is worth beyond its weight makes leaving a first node out too dear. A
    pair that is matched twice would weigh no less than if it were matched once.
    """
    networkx = library("networkx")
    n_rows = len(weights)
    worth = int(weights.sum()) + 1
    graph = networkx.Graph()
    for a in range(n_rows):
        for b in range(n_rows):
            weight = int(weights[a, b])
            if a < b:
                graph.add_edge(a, b, weight=2 * worth - weight)
            if a != b:
                graph.add_edge(a, n_rows + b, weight=worth - weight)
    matched = networkx.max_weight_matching(graph)
    edges = {(min(pair), max(pair)) for a, b in matched for pair in [(a % n_rows, b % n_rows)]}
    degree = np.bincount(np.array(sorted(edges), np.int64).reshape(-1), minlength=n_rows)
    kept = []
    for a, b in sorted(edges):
        if degree[a] > 1 and degree[b] > 1:
            degree[[a, b]] -= 1
        else:
            kept.append((a, b))
    return kept


def components(edges: list[tuple[int, int]], n_rows: int) -> list[list[int]]:
    """Return the connected parts of paths of at most two edges; a row without edge is alone."""
    part = list(range(n_rows))
    for a, b in edges:
        part[:] = [part[a] if at == part[b] else at for at in part]
    return [[row for row in range(n_rows) if part[row] == at] for at in sorted(set(part))]
