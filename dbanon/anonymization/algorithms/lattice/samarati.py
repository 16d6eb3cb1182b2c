"""Binary search on the height of the generalization lattice (Samarati, TKDE 2001)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dbanon.anonymization.algorithms.lattice.choice import search

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dbanon.anonymization.algorithms.lattice.nodes import Condition, Lattice, Node
    from dbanon.anonymization.interfaces import Requirement
    from dbanon.domain.assignment import Assignment, EncodedTable


@dataclass(frozen=True, slots=True)
class Samarati:
    """One level for every column: a node of least height (section 5).

    The height of a node is the sum of its levels. Where a node passes, one passes at every greater
    height, so that the least is found by halving. The paper takes any node of that height; here
    the cheapest is taken. Guarantees, levels, ``t`` and ties are those of ``full-domain``; the
    node is one of its minimal ones. t-closeness with suppression is not monotone: the least
    height is then searched upward from where the other conditions first hold.
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
