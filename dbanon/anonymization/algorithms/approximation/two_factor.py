"""Minimum-weight 2-factor for 3-anonymity (Aggarwal et al., ICDT 2005)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from dbanon.anonymization.adjusting.repair import repair
from dbanon.anonymization.algorithms.approximation.forest import assignment_of
from dbanon.anonymization.distances import rows as distances
from dbanon.anonymization.limits import library, require_at_most, require_small_k
from dbanon.domain.errors import Unsatisfiable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from dbanon.anonymization.interfaces import Requirement
    from dbanon.domain.assignment import Assignment, EncodedTable

LARGEST_PART = 5
MAX_NODES = 10_000


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
            cycles = lightest_cycles(distances.pairwise(table, "hamming"))
        parts = [part for cycle in cycles for part in cut(cycle, stars)]
        return repair(table, assignment_of(parts, table.n_rows), requirement)


def lightest_cycles(weights: NDArray[np.float64]) -> list[list[int]]:
    """Return the cycles of a minimum-weight 2-factor, each from its lowest row to the lower side.

    weights: (n, n), symmetric, n >= 3. Raises Unsatisfiable when the search takes too long.
    """
    optimize, sparse = library("scipy.optimize"), library("scipy.sparse")
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
        parts = [turned[a:b] for a, b in pairwise(bounds)]
        total = sum(map(cost, parts))
        if total < least:
            best, least = parts, total
    return best
