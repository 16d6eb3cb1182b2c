"""Incognito (LeFevre, DeWitt, Ramakrishnan, SIGMOD 2005)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, compress, groupby
from typing import TYPE_CHECKING

from dbanon.anonymization.algorithms.lattice.full_domain import above, search

if TYPE_CHECKING:
    from dbanon.anonymization.algorithms.lattice.frequencies import Counts
    from dbanon.anonymization.algorithms.lattice.nodes import Condition, Lattice, Node
    from dbanon.anonymization.interfaces import Requirement
    from dbanon.domain.assignment import Assignment, EncodedTable

Columns = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Incognito:
    """The groups of ``full-domain``, found by way of subsets of the columns (section 3).

    The nodes of 1, 2 .. columns that pass are joined to candidates of one column more; a node
    that fails for some of its columns fails for all and is never counted. Guarantees, levels,
    ``t`` and ties are those of ``full-domain``. Departs from the paper in that t-closeness with
    suppression, which is not monotone, is tested for all columns together only.
    """

    t: float = 1.0

    def assign(self, table: EncodedTable, requirement: Requirement, *, seed: int) -> Assignment:
        """Search subset by subset; O(nodes n d log n) at worst, at most 50,000 nodes."""
        return search(table, requirement, t=self.t, nodes=minimal_nodes, algorithm="incognito")


def minimal_nodes(found: Lattice, condition: Condition) -> list[Node]:
    """Return the nodes that meet the condition while none below them does, lowest first."""
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
    found: Lattice, columns: Columns, candidates: list[Node], condition: Condition
) -> list[Node]:
    """Return the candidates that pass while none below them does.

    A candidate with a failed candidate right below it is rolled up from that one, any other from
    the frequency set of the columns' values.
    """
    bottom = found.roll_up(found.base, (0,) * len(columns), columns=columns)
    minimal: list[Node] = []
    below: dict[Node, Counts] = {}
    for _, group in groupby(candidates, key=sum):
        nodes, failed = list(group), {}
        for node in compress(nodes, ~above(nodes, minimal)):
            start = min(
                (below.get(child, bottom) for child in _children(node)),
                key=lambda counts: counts.n_classes,
                default=bottom,
            )
            counts = found.roll_up(start, node, columns=columns)
            if found.holds(counts, node, columns=columns, condition=condition):
                minimal.append(node)
            else:
                failed[node] = counts.or_finer(bottom)
        below = failed
    return minimal


def _children(node: Node) -> list[Node]:
    return [(*node[:i], level - 1, *node[i + 1 :]) for i, level in enumerate(node) if level > 0]
