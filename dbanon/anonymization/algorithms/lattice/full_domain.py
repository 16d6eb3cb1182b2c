"""Searches of the generalization lattice.

Breadth first, by subsets of the columns (Incognito; LeFevre, DeWitt, Ramakrishnan, SIGMOD 2005),
binary on the height (Samarati, TKDE 2001), greedily (Datafly; Sweeney, IJUFKS 2002), and by branch
and bound.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from itertools import combinations, compress, groupby
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from dbanon.anonymization.algorithms.lattice.nodes import (
    ANYTHING,
    Classes,
    Condition,
    Counts,
    Lattice,
    Node,
    condition,
    lattice,
)
from dbanon.domain.errors import Unsatisfiable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from dbanon.anonymization.interfaces import Requirement
    from dbanon.domain.assignment import Assignment, EncodedTable
    from dbanon.kernels.layout import Bools


MAX_NODES = 50_000
_MAX_COUNTED = 10**9  # nodes times distinct rows


@dataclass(frozen=True, slots=True)
class FullDomain:
    """One level for every column: the minimal node of least loss.

    A group is an equivalence class of a lattice node; ``column_levels`` describes the levels.
    Groups have at least k rows, l distinct values of each sensitive column, and a distribution of
    each within ``t`` of that of all published rows (Li et al., ICDE 2007, equal ground distances).
    Failing groups are suppressed within the budget. A node is minimal if it passes and no node
    below it does. The cheapest minimal node is taken (ties: lexical order). Bounds are published
    and priced tight, so they may be more exact than the node's labels.
    """

    t: float = 1.0

    def assign(self, table: EncodedTable, requirement: Requirement, *, seed: int) -> Assignment:
        """Search the nodes bottom-up; O(nodes n d log n), at most 50,000 nodes."""
        return search(table, requirement, t=self.t, nodes=minimal_nodes, algorithm="full-domain")


def minimal_nodes(found: Lattice, condition: Condition) -> list[Node]:
    """Return the passing nodes without a passing node below them, lowest first."""
    nodes = (node for height in range(sum(found.top) + 1) for node in _nodes(found.top, height))
    return _minimal(found, found.columns, nodes, condition)


def search(
    table: EncodedTable,
    requirement: Requirement,
    *,
    t: float,
    nodes: Callable[[Lattice, Condition], Iterable[Node]],
    algorithm: str,
) -> Assignment:
    """Return the classes of the cheapest of ``nodes`` (ties: lexical order).

    Raises Unsatisfiable if the lattice has too many nodes to search.
    """
    wanted, found = condition(table, requirement, t=t), lattice(table)
    n_rows = found.base.n_classes
    limit = min(MAX_NODES, _MAX_COUNTED // n_rows)
    if found.n_nodes > limit:
        msg = (
            f"{algorithm} takes at most {limit:,} nodes for {n_rows:,} distinct rows;"
            f" the lattice has {found.n_nodes:,}"
        )
        raise Unsatisfiable(msg, hint="--algorithm optimal-lattice, or --algorithm auto")
    best = np.inf
    for node in sorted(nodes(found, wanted)):
        classes = found.classes(node, columns=found.columns, condition=wanted)
        cost = found.cost(classes)
        if cost < best:
            best, chosen = cost, classes
    return found.assignment(chosen, final=wanted.t < 1)


def above(nodes: Sequence[Node], others: Sequence[Node]) -> Bools:
    """Return a mask of the nodes that are one of the others or above one of them."""
    marked = np.zeros(len(nodes), np.bool_)
    levels = np.array(nodes)
    for other in others:
        marked |= (levels >= other).all(axis=1)
    return marked


@dataclass(frozen=True, slots=True)
class Datafly:
    """One level for every column: always the column of most values becomes coarser.

    Starting from the values, the column with the most distinct ones goes up a level until the rows
    of failing classes fit the suppression budget ("Achieving k-anonymity privacy protection using
    generalization and suppression", section 5; the paper allows up to k rows). Guarantees, levels
    and ``t`` as in ``full-domain``, but the node may not be minimal. Ties go to the first column.
    """

    t: float = 1.0

    def assign(self, table: EncodedTable, requirement: Requirement, *, seed: int) -> Assignment:
        """Climb to a node; O(height n d log n), where the height is the sum of all levels."""
        wanted, found = condition(table, requirement, t=self.t), lattice(table)
        node = reached_node(found, wanted)
        classes = found.classes(node, columns=found.columns, condition=wanted)
        return found.assignment(classes, final=wanted.t < 1)


def reached_node(found: Lattice, condition: Condition) -> Node:
    """Return the first node on the way up that meets the condition."""
    node, counts = (0,) * len(found.levels), found.base
    while not found.holds(counts, node, columns=found.columns, condition=condition):
        last = [levels[level].max() for levels, level in zip(found.levels, node, strict=True)]
        widest = last.index(max(last))
        node = (*node[:widest], node[widest] + 1, *node[widest + 1 :])
        counts = found.roll_up(counts, node, columns=found.columns)
    return node


@dataclass(frozen=True, slots=True)
class Samarati:
    """One level for every column: a node of least height (section 5).

    The height of a node is the sum of its levels. If a node passes, one passes at every greater
    height, so binary search finds the least. The paper takes any node of that height; here the
    cheapest is taken, which is a minimal node. Guarantees, levels, ``t`` and ties as in
    ``full-domain``. t-closeness with suppression is not monotone: the least height is then searched
    upward from the least one that meets the other conditions.
    """

    t: float = 1.0

    def assign(self, table: EncodedTable, requirement: Requirement, *, seed: int) -> Assignment:
        """Search height by height; O(nodes n d log n) at worst, at most 50,000 nodes."""
        return search(table, requirement, t=self.t, nodes=lowest_nodes, algorithm="samarati")


def lowest_nodes(found: Lattice, condition: Condition) -> list[Node]:
    """Return all nodes of least height that meet the condition."""
    low, high = 0, sum(found.top)
    while low < high:
        middle = (low + high) // 2
        if next(_passing(found, middle, condition.monotone), None) is not None:
            high = middle
        else:
            low = middle + 1
    while not (nodes := list(_passing(found, low, condition))):
        low += 1
    return nodes


def _passing(found: Lattice, height: int, condition: Condition) -> Iterator[Node]:
    for node in _nodes(found.top, height):
        counts = found.roll_up(found.base, node, columns=found.columns)
        if found.holds(counts, node, columns=found.columns, condition=condition):
            yield node


def _nodes(top: Node, height: int) -> Iterator[Node]:
    """Yield the nodes of a height in lexical order."""
    if not top:
        yield ()
        return
    rest = sum(top[1:])
    for level in range(max(height - rest, 0), min(top[0], height) + 1):
        for node in _nodes(top[1:], height - level):
            yield (level, *node)


@dataclass(frozen=True, slots=True)
class OptimalLattice:
    """One level for every column: the node of least loss among all that pass.

    Guarantees, levels and ``t`` as in ``full-domain``. With suppression, the best node may lie
    above the minimal ones, because it suppresses fewer rows.

    Best-first branch and bound over the columns, most values first. A choice for some columns is
    dropped if it fails with all others at the top; it also bounds the other levels from below. The
    tight boxes at these least levels, and the rows that already fail, bound the loss. The first
    complete choice without a lower bound elsewhere is best; ties: found first.
    """

    MAX_STEPS: ClassVar[int] = 20_000
    MAX_COUNTED: ClassVar[int] = 5 * 10**8  # steps times distinct rows

    t: float = 1.0

    def assign(self, table: EncodedTable, requirement: Requirement, *, seed: int) -> Assignment:
        """Search the best node; O(steps levels n d^2 log n), at most 20,000 steps."""
        wanted = condition(table, requirement, t=self.t)
        found = lattice(table)
        n_rows = found.base.n_classes
        columns = tuple(sorted(found.columns, key=lambda j: (-len(found.levels[j][0]), j)))
        top = tuple(found.top[j] for j in columns)
        best = _Search(found, columns, top, wanted).best(
            min(self.MAX_STEPS, self.MAX_COUNTED // n_rows)
        )
        return found.assignment(best, final=self.t < 1)


@dataclass(frozen=True, eq=False, slots=True)
class _Search:
    """Best-first search of choices: nodes whose first levels in ``columns`` are decided."""

    found: Lattice
    columns: tuple[int, ...]
    top: Node
    condition: Condition

    def best(self, max_steps: int) -> Classes:
        """Return the classes of the best node; raise Unsatisfiable after too many steps."""
        n_columns = len(self.columns)
        best = self._classes(self.top)  # one class of all rows, which the pipeline has tested
        least = self.found.cost(best)
        heap: list[tuple[float, int, Node]] = [(0.0, n_columns, (0,) * n_columns)]
        for _ in range(max_steps):
            if not heap or heap[0][0] >= least:
                return best
            _, undecided, node = heapq.heappop(heap)
            if undecided:
                decided = n_columns - undecided + 1
                for choice in self._continued(node, decided):
                    heapq.heappush(heap, (self._bound(choice, decided), undecided - 1, choice))
                continue
            classes = self._classes(node)
            cost = self.found.cost(classes)
            if classes.n_lost <= self.condition.budget and cost < least:
                least, best = cost, classes
        msg = f"optimal-lattice proves no node the best in {max_steps:,} steps"
        raise Unsatisfiable(msg, hint="--algorithm auto")

    def _classes(self, node: Node) -> Classes:
        return self.found.classes(node, columns=self.columns, condition=self.condition)

    def _continued(self, node: Node, decided: int) -> Iterator[Node]:
        """Yield the choices that decide one more column."""
        below = self.found.roll_up(self.found.base, node, columns=self.columns)
        last = decided - 1
        for level in range(node[last], self.top[last] + 1):
            choice = [*node[:last], level, *node[decided:]]
            if not self._passes(below, choice, range(decided)):
                continue
            for i in range(decided, len(choice)):
                while not self._passes(below, choice, (*range(decided), i)):
                    choice[i] += 1
            yield tuple(choice)

    def _passes(self, below: Counts, choice: list[int], places: Sequence[int]) -> bool:
        """Return True if a choice passes with all other columns at the top."""
        node = tuple(choice[i] for i in places)
        columns = tuple(self.columns[i] for i in places)
        counts = self.found.roll_up(below, node, columns=columns)
        return self.found.holds(counts, node, columns=columns, condition=self.condition.monotone)

    def _bound(self, node: Node, decided: int) -> float:
        """Return a lower bound of the cost: failing rows in full, the others as at this node."""
        classes = self.found.classes(node, columns=self.columns, condition=ANYTHING)
        coarser = self.found.classes(
            node[:decided], columns=self.columns[:decided], condition=self.condition.monotone
        )
        kept = np.empty(len(classes.size), np.bool_)
        kept[classes.of] = coarser.kept[coarser.of]
        return self.found.cost(classes._replace(kept=kept))


Columns = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Incognito:
    """The groups of ``full-domain``, found by subsets of the columns (section 3).

    Passing nodes of 1, 2 .. columns are joined to candidates of one column more; a node that fails
    for some of its columns fails for all. Guarantees, levels, ``t`` and ties as in ``full-domain``.
    Unlike the paper, t-closeness with suppression, which is not monotone, is tested for all columns
    only.
    """

    t: float = 1.0

    def assign(self, table: EncodedTable, requirement: Requirement, *, seed: int) -> Assignment:
        """Search subset by subset; O(nodes n d log n) at worst, at most 50,000 nodes."""
        return search(
            table, requirement, t=self.t, nodes=minimal_nodes_by_subsets, algorithm="incognito"
        )


def minimal_nodes_by_subsets(found: Lattice, condition: Condition) -> list[Node]:
    """Return the passing nodes without a passing node below them, lowest first."""
    survivors: dict[Columns, set[Node]] = {(): {()}}
    for size in range(1, len(found.levels)):
        survivors = {
            columns: _survivors(found, columns, _join(found, columns, survivors), condition)
            for columns in combinations(found.columns, size)
        }
    candidates = _join(found, found.columns, survivors)
    return _minimal(found, found.columns, candidates, condition)


def _join(found: Lattice, columns: Columns, survivors: dict[Columns, set[Node]]) -> list[Node]:
    """Return the nodes that pass without any one of their columns, lowest first."""
    last = range(len(found.levels[columns[-1]]))
    joined = [(*node, level) for node in survivors[columns[:-1]] for level in last]
    for i in range(len(columns) - 1):
        rest = survivors[columns[:i] + columns[i + 1 :]]
        joined = [node for node in joined if node[:i] + node[i + 1 :] in rest]
    return sorted(joined, key=lambda node: (sum(node), node))


def _survivors(
    found: Lattice, columns: Columns, candidates: list[Node], condition: Condition
) -> set[Node]:
    minimal = _minimal(found, columns, candidates, condition.monotone)
    return set(compress(candidates, above(candidates, minimal)))


def _minimal(
    found: Lattice, columns: Columns, candidates: Iterable[Node], condition: Condition
) -> list[Node]:
    """Return the passing ones of candidates, lowest first, without a passing one below."""
    bottom = found.roll_up(found.base, (0,) * len(columns), columns=columns)
    minimal: list[Node] = []
    below: dict[Node, Counts] = {}
    for _, group in groupby(candidates, key=sum):
        nodes, failed = list(group), {}
        for node in compress(nodes, ~above(nodes, minimal)):
            children = [(*node[:i], m - 1, *node[i + 1 :]) for i, m in enumerate(node) if m > 0]
            at_children = (below.get(child, bottom) for child in children)
            start = min(at_children, key=lambda counts: counts.n_classes, default=bottom)
            counts = found.roll_up(start, node, columns=columns)
            if found.holds(counts, node, columns=columns, condition=condition):
                minimal.append(node)
            else:
                failed[node] = counts.or_finer(bottom)
        below = failed
    return minimal
