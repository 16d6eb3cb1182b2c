"""Breadth-first search of the generalization lattice (Samarati, TKDE 2001)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import compress
from typing import TYPE_CHECKING

from dbanon.anonymization.algorithms.lattice.choice import above, search

if TYPE_CHECKING:
    from dbanon.anonymization.algorithms.lattice.frequencies import Counts
    from dbanon.anonymization.algorithms.lattice.nodes import Condition, Lattice, Node
    from dbanon.anonymization.interfaces import Requirement
    from dbanon.domain.assignment import Assignment, EncodedTable


@dataclass(frozen=True, slots=True)
class FullDomain:
    """One level for every column: the minimal node of least loss.

    A group is what a node of the lattice makes equal; ``column_levels`` describes the levels.
    Groups have at least k rows, l distinct values of each sensitive column, and a distribution of
    each that is at most ``t`` from that of all published rows (Li et al., ICDE 2007, all values
    equally far apart). Groups that fail are left out whole as long as the policy allows so many
    rows. A node is minimal when it passes and no node below it does; all minimal nodes are found
    and the cheapest is taken, ties going to the lowest in lexical order. Bounds are published
    tight, at least as exact as the node's own labels, which is also how a node is priced.
    """

    t: float = 1.0

    def assign(self, table: EncodedTable, requirement: Requirement, *, seed: int) -> Assignment:
        """Search the nodes from the values up; O(nodes n d log n), at most 50,000 nodes."""
        return search(table, requirement, t=self.t, nodes=minimal_nodes, algorithm="full-domain")


def minimal_nodes(found: Lattice, condition: Condition) -> list[Node]:
    """Return the nodes that meet the condition while none below them does, lowest first.

    Frequency sets are rolled up from the smallest of a node's children; a node above a minimal one
    is not tested.
    """
    minimal: list[Node] = []
    rank: dict[Node, Counts] = {(0,) * len(found.levels): found.base}
    while rank:
        higher: dict[Node, Counts] = {}
        nodes = sorted(rank)
        for node in compress(nodes, ~above(nodes, minimal)):
            counts = found.roll_up(rank[node], node, columns=found.columns)
            if found.holds(counts, node, columns=found.columns, condition=condition):
                minimal.append(node)
                continue
            start = counts.or_finer(found.base)
            for parent in _parents(node, found.top):
                if parent not in higher or start.n_classes < higher[parent].n_classes:
                    higher[parent] = start
        rank = higher
    return minimal


def _parents(node: Node, top: Node) -> list[Node]:
    """Return the nodes directly above."""
    return [
        (*node[:i], level + 1, *node[i + 1 :]) for i, level in enumerate(node) if level < top[i]
    ]
