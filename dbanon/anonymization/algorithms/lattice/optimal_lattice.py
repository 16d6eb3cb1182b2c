"""Branch and bound over the generalization lattice."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from dbanon.anonymization.algorithms.lattice.nodes import ANYTHING, condition, lattice
from dbanon.domain.errors import Unsatisfiable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dbanon.anonymization.algorithms.lattice.frequencies import Counts
    from dbanon.anonymization.algorithms.lattice.nodes import Classes, Condition, Lattice, Node
    from dbanon.anonymization.interfaces import Requirement
    from dbanon.domain.assignment import Assignment, EncodedTable


@dataclass(frozen=True, slots=True)
class OptimalLattice:
    """One level for every column: the node of least loss among all that pass.

    Guarantees, levels and ``t`` are those of ``full-domain``. With suppression the best node may
    lie above the minimal ones, because it leaves out fewer rows.

    Levels are chosen column by column, most values first. A choice for some columns is dropped
    when it fails even with all others at the top. It bounds the levels of each other column from
    below, again with the rest at the top. The tight boxes at the node of these least levels, and
    the rows that the choice alone already loses, bound the loss of everything above. The choice
    with the least bound is continued first, so that the first complete one that no bound
    undercuts is best; ties: found first.
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
    """A choice is a node whose first levels, in the order of ``columns``, are decided.

    The others are the least that the decided ones allow.
    """

    found: Lattice
    columns: tuple[int, ...]
    top: Node
    condition: Condition

    def best(self, max_steps: int) -> Classes:
        """Return the classes of the best node; raise Unsatisfiable when it takes too long."""
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
        """Yield the choices that decide one column more, so that as many are."""
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
        """Whether a choice can be met when all other columns are at the top."""
        node = tuple(choice[i] for i in places)
        columns = tuple(self.columns[i] for i in places)
        counts = self.found.roll_up(below, node, columns=columns)
        return self.found.holds(counts, node, columns=columns, condition=self.condition.monotone)

    def _bound(self, node: Node, decided: int) -> float:
        """Return what the rows cost at least: those that fail by the decided levels, all.

        The others cost what they do at the node if none is suppressed.
        """
        classes = self.found.classes(node, columns=self.columns, condition=ANYTHING)
        coarser = self.found.classes(
            node[:decided], columns=self.columns[:decided], condition=self.condition.monotone
        )
        kept = np.empty(len(classes.size), np.bool_)
        kept[classes.of] = coarser.kept[coarser.of]
        return self.found.cost(classes._replace(kept=kept))
