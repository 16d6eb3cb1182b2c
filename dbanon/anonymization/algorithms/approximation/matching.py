"""Minimum-weight {1,2}-matching for k = 2 and 2-factor for k = 3 (Aggarwal et al., ICDT 2005)."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from dbanon.anonymization.adjusting.repair import repair
from dbanon.anonymization.algorithms.approximation.forest import assignment_of
from dbanon.anonymization.distances.rows import pairwise
from dbanon.anonymization.limits import require_at_most, require_small_k
from dbanon.domain.errors import Unsatisfiable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dbanon.anonymization.interfaces import Requirement
    from dbanon.domain.assignment import Assignment, EncodedTable
    from dbanon.kernels.arrays import Floats, Int64s

SCALE = 1 << 20  # weights become integers, on which the search is exact
LARGEST_PART = 5  # rows of a cycle that is not cut
MAX_NODES = 10_000  # of branch and bound


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

    NEEDS: ClassVar[str] = "networkx"
    MAX_K: ClassVar[int] = 2
    MAX_ROWS: ClassVar[int] = 300

    def assign(self, table: EncodedTable, requirement: Requirement, *, seed: int) -> Assignment:
        """Group the rows; O(n^3)."""
        require_small_k(self.MAX_K, requirement, algorithm="matching")
        require_at_most(self.MAX_ROWS, table, algorithm="matching")
        weights = np.rint(pairwise(table, "hamming") * SCALE).astype(np.int64)
        parts = components(lightest_cover(weights), table.n_rows)
        return repair(table, assignment_of(parts, table.n_rows), requirement)


@dataclass(frozen=True, slots=True)
class TwoFactor:
    """Cycles of rows that differ little, cut into groups of three to five, for k = 3.

    Every row is an end of two chosen edges, and the edges weigh as little as possible; the weight
    of an edge is that of the columns in which its rows differ (section 5.2 of the paper). A cycle
    of more than five rows is cut into threes and one or two fours, where that stars the least.
    When a group shows the columns in which it is constant and a star in the others, the stars
    weigh at most three times the optimum, and twice it when columns have two values. The edges
    are found by branch and bound over a linear program in place of the paper's matching, whose
    graph has a node for each edge. Ties go to the lower row where cycles are cut. Groups that
    lack distinct sensitive values are merged afterwards.
    """

    MAX_K: ClassVar[int] = 3
    MAX_ROWS: ClassVar[int] = 300

    def assign(self, table: EncodedTable, requirement: Requirement, *, seed: int) -> Assignment:
        """Group the rows; seconds for the limit, exponential at worst."""
        require_small_k(self.MAX_K, requirement, algorithm="two-factor")
        require_at_most(self.MAX_ROWS, table, algorithm="two-factor")
        codes = table.codes
        weights = np.array([column.rule.weight for column in table.quasi])

        def stars(rows: Sequence[int]) -> float:
            return len(rows) * float(weights[(codes[rows] != codes[rows[0]]).any(axis=0)].sum())

        cycles = [list(range(table.n_rows))]
        if table.n_rows > LARGEST_PART:
            cycles = lightest_cycles(pairwise(table, "hamming"))
        parts = [part for cycle in cycles for part in cut(cycle, stars)]
        return repair(table, assignment_of(parts, table.n_rows), requirement)


def lightest_cover(weights: Int64s) -> list[tuple[int, int]]:
    """Return the edges of a minimum-weight {1,2}-matching, sorted, none between two ends of two.

    weights: (n, n), symmetric, at least 0. Each row has a node that must be matched and one that
    may be: what a match is worth beyond its weight makes leaving a first node out too dear. A
    pair that is matched twice would weigh no less than if it were matched once.
    """
    import networkx as nx

    n_rows = len(weights)
    worth = int(weights.sum()) + 1
    graph = nx.Graph()
    for a in range(n_rows):
        for b in range(n_rows):
            weight = int(weights[a, b])
            if a < b:
                graph.add_edge(a, b, weight=2 * worth - weight)
            if a != b:
                graph.add_edge(a, n_rows + b, weight=worth - weight)
    matched = nx.max_weight_matching(graph)
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


def lightest_cycles(weights: Floats) -> list[list[int]]:
    """Return the cycles of a minimum-weight 2-factor, each from its lowest row to the lower side.

    weights: (n, n), symmetric, n >= 3. Raises Unsatisfiable when the search takes too long.
    """
    from scipy import optimize, sparse

    n_rows = len(weights)
    ends = np.triu_indices(n_rows, 1)
    n_edges = len(ends[0])
    incident = sparse.csc_array(
        (np.ones(2 * n_edges), (np.concatenate(ends), np.tile(np.arange(n_edges), 2))),
        shape=(n_rows, n_edges),
    )
    found = optimize.milp(
        weights[ends],
        integrality=np.ones(n_edges),
        bounds=optimize.Bounds(0, 1),
        constraints=optimize.LinearConstraint(incident, 2, 2),
        options={"mip_rel_gap": 0, "node_limit": MAX_NODES},
    )
    if found.status != 0:
        msg = f"two-factor found no optimum within {MAX_NODES:,} steps"
        raise Unsatisfiable(msg, hint="--algorithm forest")
    chosen = np.flatnonzero(found.x > 0.5)  # noqa: PLR2004 - 0 or 1 within rounding
    neighbours: list[list[int]] = [[] for _ in range(n_rows)]
    for a, b in zip(ends[0][chosen].tolist(), ends[1][chosen].tolist(), strict=True):
        neighbours[a].append(b)
        neighbours[b].append(a)
    return _walk(neighbours)


def _walk(neighbours: list[list[int]]) -> list[list[int]]:
    """Return the cycles of a graph in which every row has two neighbours."""
    cycles = []
    seen: set[int] = set()
    for start in range(len(neighbours)):
        if start in seen:
            continue
        cycle, row = [], start
        while row not in seen:
            seen.add(row)
            cycle.append(row)
            ahead = [other for other in sorted(neighbours[row]) if other not in seen]
            row = ahead[0] if ahead else start
        cycles.append(cycle)
    return cycles


def cut(cycle: Sequence[int], cost: Callable[[Sequence[int]], float]) -> list[list[int]]:
    """Cut a cycle into consecutive parts of three and at most two fours, at the least cost.

    Up to five rows stay together. Ties go to the earliest cut. O(rows) calls of ``cost``, times
    the number of rotations.
    """
    if len(cycle) <= LARGEST_PART:
        return [list(cycle)]
    threes, fours = len(cycle) // 3 - len(cycle) % 3, len(cycle) % 3
    bounds = np.cumsum([0, *[3] * threes, *[4] * fours]).tolist()
    best, least = [], np.inf
    for turn in range(len(cycle)):
        turned = [*cycle[turn:], *cycle[:turn]]
        parts = [turned[a:b] for a, b in itertools.pairwise(bounds)]
        total = sum(map(cost, parts))
        if total < least:
            best, least = parts, total
    return best
