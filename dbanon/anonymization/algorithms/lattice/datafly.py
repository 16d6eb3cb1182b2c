"""Greedy full-domain generalization (Datafly; Sweeney, IJUFKS 2002)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dbanon.anonymization.algorithms.lattice.nodes import condition, lattice

if TYPE_CHECKING:
    from dbanon.anonymization.algorithms.lattice.nodes import Condition, Lattice, Node
    from dbanon.anonymization.interfaces import Requirement
    from dbanon.domain.assignment import Assignment, EncodedTable


@dataclass(frozen=True, slots=True)
class Datafly:
    """One level for every column: always the column of most values becomes coarser.

    From the values up, the column that has the most distinct ones left goes up a level, until the
    rows whose class fails are no more than may be left out, which they then are ("Achieving
    k-anonymity privacy protection using generalization and suppression", section 5). The paper
    leaves out up to k rows; here it is what the policy allows. Guarantees, levels and ``t`` are
    those of ``full-domain``, but the node need not be minimal. Ties go to the first column.
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
