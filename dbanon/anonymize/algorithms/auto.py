"""The engine: a start by peeling or in blocks, then local search."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from dbanon.anonymize.engine.blocked import segments, start_in_blocks
from dbanon.anonymize.engine.peel import lattice, start_by_peeling
from dbanon.anonymize.engine.rounds import Effort, coordinates, improve
from dbanon.anonymize.engine.space import make_space, total_cost
from dbanon.anonymize.engine.tuples import freeze
from dbanon.domain.assignment import Assignment
from dbanon.domain.stages import Stages

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from dbanon.anonymize.engine.space import Loss, Space
    from dbanon.anonymize.engine.tuples import Frozen
    from dbanon.anonymize.interfaces import Requirement
    from dbanon.domain.assignment import EncodedTable


class Rounds(NamedTuple):
    """How much search an effort buys: rounds, the row-rounds they may add up to, and each round."""

    rounds: int
    row_rounds: int
    each: Effort


EFFORTS = {
    "fast": Rounds(2, 500_000, Effort(passes=1, tries=1, pool=4)),
    "balanced": Rounds(12, 1_300_000, Effort(passes=1, tries=1, pool=4)),
    "best": Rounds(60, 20_000_000, Effort(passes=1, tries=4, pool=5)),
}
# The starts are compared on so many rows of neighbouring clusters, two rounds each.
_SAMPLE = 4_000
_PARTS = 3


@dataclass(frozen=True, slots=True)
class Auto:
    """Peel or grow, then move, swap, chain, dissolve and rebuild: the least loss known here.

    Equal rows beyond what a search can use are set aside. The clusters to start with are the
    classes of a generalization lattice, peeled off cheapest node first, or those of greedy
    k-member clustering in blocks (Byun et al., DASFAA 2007), whichever loses less on a sample.
    Rounds of local search in blocks with shifting borders then lower the total of rows * penalty.

    ``effort`` (fast, balanced, best) sets the number of rounds; with ``time_limit``, in seconds,
    rounds go on until it is over instead. ``loss`` is what is minimized: ncp (leaves below the
    common ancestor, or the share of values of a column published as sets) or il (height of the
    common ancestor). The same table in any order, parameters and seed give the same partition up
    to equal rows, without a time limit. Groups have at least k rows.
    """

    effort: Literal["fast", "balanced", "best"] = "balanced"
    time_limit: float | None = None
    loss: Loss = "ncp"
    stages: Stages = field(default_factory=Stages, compare=False)

    def assign(self, table: EncodedTable, requirement: Requirement, *, seed: int) -> Assignment:
        """Group the rows; a round is O(n * clusters in a block * d)."""
        started = monotonic()
        space = make_space(table, requirement, loss=self.loss)
        frozen = freeze(space)
        label = self._search(frozen, table, started=started, seed=seed)
        group = np.empty(table.n_rows, np.int32)
        group[frozen.rows] = label
        _, of_frozen = np.unique(frozen.tuple_of_frozen, return_inverse=True)
        n_groups = int(label.max()) + 1
        group[frozen.frozen] = n_groups + of_frozen
        return Assignment(group, n_groups + int(of_frozen.max(initial=-1)) + 1)

    def _search(
        self, frozen: Frozen, table: EncodedTable, *, started: float, seed: int
    ) -> NDArray[np.int32]:
        space, points = frozen.space, coordinates(frozen.space)
        if space.n_rows < 2 * space.k:
            return np.zeros(space.n_rows, np.int32)
        label = self._start(frozen, points, seed=seed)
        plan = EFFORTS[self.effort]
        rounds = max(2, min(plan.rounds, plan.row_rounds // space.n_rows))
        scale = table.n_rows * sum(column.rule.weight for column in table.quasi) or 1.0
        number = 0
        while not self.stages.stopped:
            done = number / rounds
            if self.time_limit is not None:
                done = (monotonic() - started) / self.time_limit
            self.stages.progress(min(done, 1.0), total_cost(space, label) / scale)
            if done >= 1.0:
                break
            label = improve(space, label, points, effort=plan.each, seed=seed, number=number)
            number += 1
        return label

    def _start(
        self, frozen: Frozen, points: NDArray[np.float32], *, seed: int
    ) -> NDArray[np.int32]:
        """Return the better of the two starts, by trying both on a sample."""
        space = frozen.space
        levels = lattice(space)
        starts: dict[str, Callable[[Space, NDArray[np.int64]], NDArray[np.int32]]] = {
            "blocks": lambda part, rows: start_in_blocks(part, points[rows], seed=seed)
        }
        if levels is not None:
            starts = {
                "peeling": lambda part, _: start_by_peeling(part, levels, seed=seed),
                **starts,
            }
        everything = np.arange(space.n_rows)
        if len(starts) == 1:
            chosen = "blocks"
        else:
            order, ends = segments(space, points, most=_SAMPLE)
            picked = np.linspace(0, len(ends) - 2, _PARTS if len(ends) > 2 * _PARTS else 1)
            loss = dict.fromkeys(starts, 0.0)
            for i in np.unique(picked.astype(int)):
                rows = np.sort(order[ends[i] : ends[i + 1]])
                part = space.take(rows)
                for name, start in starts.items():
                    label = start(part, rows)
                    for number in range(2):
                        label = improve(
                            part,
                            label,
                            points[rows],
                            effort=EFFORTS["fast"].each,
                            seed=seed,
                            number=number,
                        )
                    loss[name] += total_cost(part, label)
            chosen = min(loss, key=lambda name: loss[name])
        self.stages.note(f"start: {chosen}")
        return starts[chosen](space, everything)
