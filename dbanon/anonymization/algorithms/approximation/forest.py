"""Forest, matching and 2-factor: groups as components of a graph (Aggarwal et al., ICDT 2005)."""

from __future__ import annotations

import heapq
import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from dbanon.anonymization.adjusting.repair import repair
from dbanon.anonymization.distances.rows import pairwise
from dbanon.anonymization.interfaces import Requirement, require_at_most, require_small_k
from dbanon.domain.assignment import Assignment, EncodedTable
from dbanon.domain.errors import Unsatisfiable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from dbanon.kernels.layout import Floats, Int32s, Int64s


SCALE = 1 << 20  # weights become integers, on which the search is exact
_LARGEST_PART = 5  # rows of a cycle that is not cut
MAX_NODES = 10_000  # of branch and bound

FREE = -1
BLOCK = 1 << 23  # distances looked at together


@dataclass(frozen=True, slots=True)
class Forest:
    """A forest of nearest neighbours, cut into parts of k to max(2k - 1, 3k - 5) rows.

    The distance of two rows is the weight of the columns in which they differ; NULL is a value
    (section 4). With a star for each differing column, the stars weigh at most max(2k - 1, 3k - 5)
    times the optimum. Unlike the paper, parts of that size are also cut if possible, which adds no
    star. The smallest component links first; ties go to the lower row. Groups are merged afterwards
    for l > 1, so sizes and bound hold for l = 1 only.
    """

    MAX_ROWS: ClassVar[int] = 20_000

    def assign(self, table: EncodedTable, requirement: Requirement, *, seed: int) -> Assignment:
        """Group the rows; O(n^2 d)."""
        require_at_most(self.MAX_ROWS, table, algorithm="forest")
        codes = table.codes
        weights = np.array([column.rule.weight for column in table.quasi])
        nearest = nearest_rows(codes, weights, count=requirement.k - 1)
        parts = divide(grow(nearest, requirement.k), requirement.k)
        return repair(table, assignment_of(parts, table.n_rows), requirement)


def assignment_of(parts: Iterable[Sequence[int]], n_rows: int) -> Assignment:
    """Return parts that cover all rows as groups, numbered by their lowest row."""
    ordered = sorted(parts, key=min)
    group = np.empty(n_rows, np.int32)
    for number, rows in enumerate(ordered):
        group[rows] = number
    return Assignment(group, len(ordered))


def nearest_rows(codes: Int32s, weights: Floats, *, count: int) -> Int64s:
    """Return the ``count`` nearest other rows of each row (ties: lowest), (n, count); O(n^2 d)."""
    n_rows = len(codes)
    nearest = np.empty((n_rows, count), np.int64)
    step = max(1, BLOCK // n_rows)
    for start in range(0, n_rows if count else 0, step):
        block = codes[start : start + step]
        apart = np.zeros((len(block), n_rows))
        for column, weight in enumerate(weights):
            apart += weight * (block[:, column, None] != codes[:, column])
        here = np.arange(len(block))
        apart[here, start + here] = np.inf
        bound = np.partition(apart, count - 1, axis=1)[:, count - 1]
        for i in here:
            inside = np.flatnonzero(apart[i] < bound[i])
            inside = inside[np.argsort(apart[i, inside], kind="stable")]
            border = np.flatnonzero(apart[i] == bound[i])[: count - len(inside)]
            nearest[start + i] = np.concatenate([inside, border])
    return nearest


def grow(nearest: Int64s, k: int) -> list[int]:
    """Link components to the row nearest to their free row until each has k rows; O(n k log n).

    nearest: (n, k - 1), n >= k. Returns the link of each row, -1 for the free row of a component.
    """
    n_rows = len(nearest)
    links = [FREE] * n_rows
    member_of, free, lowest = (list(range(n_rows)) for _ in range(3))
    size = [1] * n_rows

    def component(row: int) -> int:
        while member_of[row] != row:
            member_of[row] = member_of[member_of[row]]
            row = member_of[row]
        return row

    small = [(1, row, row) for row in range(n_rows)] if k > 1 else []
    while small:
        rows, _, a = heapq.heappop(small)
        if member_of[a] != a or size[a] != rows:
            continue
        target = next(row for row in nearest[free[a]].tolist() if component(row) != a)
        b = component(target)
        links[free[a]] = target
        member_of[a] = b
        size[b] += rows
        lowest[b] = min(lowest[a], lowest[b])
        if size[b] < k:
            heapq.heappush(small, (size[b], lowest[b], b))
    return links


def divide(links: Sequence[int], k: int) -> list[list[int]]:
    """Cut every tree into parts of k to max(2k - 1, 3k - 5) rows; O(n log n).

    links: parent of each row, -1 for a root; every tree has at least k rows.
    """
    trees = _Trees(links)
    parts: list[list[int]] = []
    work = [row for row, parent in enumerate(links) if parent == FREE]
    while work:
        root = work.pop()
        if trees.size[root] < 2 * k:
            parts.append(trees.rows([root]))
        elif trees.largest(root) >= k:
            work += trees.cut(root, k)
        else:
            bundles, rest = trees.bundle(root, k)
            parts += bundles
            work += rest
    return parts


class _Trees:
    """Rooted trees that can be cut: size and heap of children (-size, row) of each subtree."""

    def __init__(self, links: Sequence[int]) -> None:
        children: list[list[int]] = [[] for _ in links]
        for row, parent in enumerate(links):
            if parent != FREE:
                children[parent].append(row)
        order = [row for row, parent in enumerate(links) if parent == FREE]
        for row in order:  # grows while it is walked
            order += children[row]
        self.size = [1] * len(links)
        self.below: list[list[tuple[int, int]]] = [[] for _ in links]
        for row in reversed(order):
            self.size[row] += sum(self.size[child] for child in children[row])
            self.below[row] = [(-self.size[child], child) for child in children[row]]
            heapq.heapify(self.below[row])

    def largest(self, root: int) -> int:
        """Return the size of the largest subtree below a root."""
        return -self.below[root][0][0]

    def rows(self, tops: Iterable[int]) -> list[int]:
        """Return all rows of the subtrees below ``tops``."""
        found = list(tops)
        for row in found:  # grows while it is walked
            found += [child for _, child in self.below[row]]
        return found

    def cut(self, root: int, k: int) -> list[int]:
        """Cut off the largest subtree, or make its top the root if too few rows would remain."""
        _, top = heapq.heappop(self.below[root])
        self.size[root] -= self.size[top]
        if self.size[root] >= k:
            return [root, top]
        heapq.heappush(self.below[top], (-self.size[root], root))
        self.size[top] += self.size[root]
        return [top]

    def bundle(self, root: int, k: int) -> tuple[list[list[int]], list[int]]:
        """Split off subtrees smaller than k; return the parts, and the root if it stays.

        If too few rows would remain, all but the last subtree have k - 1 rows, which the root
        joins. Only a tree of at most 3k - 5 rows can have fewer there, and stays whole.
        """
        taken, total = [], 0
        while total < k:
            negative, top = heapq.heappop(self.below[root])
            taken.append(top)
            total -= negative
        if self.size[root] - total >= k:
            self.size[root] -= total
            return [self.rows(taken)], [root]
        last = taken.pop()
        rest = self.rows([last, *(top for _, top in self.below[root])])
        parts = [[root, *self.rows(taken)], rest]
        if total - self.size[last] < k - 1:
            parts = [parts[0] + rest]
        return parts, []


@dataclass(frozen=True, slots=True)
class Matching:
    """Pairs and triples of rows that differ least, for k = 2.

    Every row is an end of one or two chosen edges of least total weight, the weight of the columns
    in which the rows differ (section 5.1). With a star for each differing column, the stars weigh
    at most twice the optimum, 1.5 times if columns have two values. Unlike the paper, the graph has
    two nodes for each row and none for edges. Deterministic. Groups are merged afterwards for l >
    1.
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

    Every row is an end of two chosen edges of least total weight, the weight of the columns in
    which the rows differ (section 5.2). Cycles of more than five rows are cut into threes and one
    or two fours, with the fewest stars. With a star for each differing column, the stars weigh at
    most three times the optimum, twice if columns have two values. Unlike the paper, whose graph
    has a node for each edge, branch and bound over a linear program finds the edges. Ties of cuts
    go to the lower row. Groups are merged afterwards for l > 1.
    """

    MAX_K: ClassVar[int] = 3
    MAX_ROWS: ClassVar[int] = 300

    def assign(self, table: EncodedTable, requirement: Requirement, *, seed: int) -> Assignment:
        """Group the rows; seconds at the row limit, exponential at worst."""
        require_small_k(self.MAX_K, requirement, algorithm="two-factor")
        require_at_most(self.MAX_ROWS, table, algorithm="two-factor")
        codes = table.codes
        weights = np.array([column.rule.weight for column in table.quasi])

        def stars(rows: Sequence[int]) -> float:
            return len(rows) * float(weights[(codes[rows] != codes[rows[0]]).any(axis=0)].sum())

        cycles = [list(range(table.n_rows))]
        if table.n_rows > _LARGEST_PART:
            cycles = lightest_cycles(pairwise(table, "hamming"))
        parts = [part for cycle in cycles for part in cut(cycle, stars)]
        return repair(table, assignment_of(parts, table.n_rows), requirement)


def lightest_cover(weights: Int64s) -> list[tuple[int, int]]:
    """Return the sorted edges of a minimum-weight {1,2}-matching, none between two inner rows.

    weights: (n, n), symmetric, at least 0. Each row has a mandatory and an optional node; the worth
    of a match exceeds all weights, so that every mandatory node is matched.
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
    """Return the components of paths of at most two edges; a row without edge is alone."""
    part = list(range(n_rows))
    for a, b in edges:
        part[:] = [part[a] if at == part[b] else at for at in part]
    return [[row for row in range(n_rows) if part[row] == at] for at in sorted(set(part))]


def lightest_cycles(weights: Floats) -> list[list[int]]:
    """Return the cycles of a minimum-weight 2-factor; weights: (n, n), symmetric, n >= 3.

    Each goes from its lowest row to the lower side. Raises Unsatisfiable if the search takes too
    long.
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
    """Cut a cycle of more than five into parts of three and at most two fours, at least cost."""
    if len(cycle) <= _LARGEST_PART:
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
