"""The engine: a start by peeling or in blocks, then local search."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from dbanon.anonymize.engine.outliers import leave_out
from dbanon.anonymize.engine.rounds import HEAVY, LIGHT, OFTEN_REBUILT, coordinates, improve
from dbanon.anonymize.engine.space import make_space, total_cost
from dbanon.anonymize.engine.start import BLOCKS, start
from dbanon.anonymize.engine.tuples import freeze
from dbanon.domain.assignment import Assignment
from dbanon.domain.stages import Stages

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.anonymize.engine.rounds import Effort
    from dbanon.anonymize.engine.space import Space
    from dbanon.anonymize.interfaces import Requirement
    from dbanon.domain.assignment import EncodedTable


class Plan(NamedTuple):
    """What an effort buys: rounds, as many as ``work`` allows, between fewest and most.

    after_blocks: the fewest after a start in blocks, which leaves more to do than peeling.
    """

    fewest: int
    after_blocks: int
    most: int
    work: float
    each: Effort

    def rounds(self, space: Space, *, begun: str) -> int:
        """Return how many rounds to run; small tables can afford more, tiny ones need few.

        begun: the name of the start.
        """
        n = space.n_rows
        affordable = self.work * (1 + _SMALL / n) / (n * (1 + space.k / _HALF_AT))
        if space.k < OFTEN_REBUILT:
            affordable /= 2
        if space.has_rules:
            affordable *= _HARDER
        fewest = self.after_blocks if begun == BLOCKS else self.fewest
        most = min(self.most, _FEW + n / _ROWS_OF_A_ROUND)
        return int(min(most, max(fewest, affordable)))


EFFORTS = {
    "fast": Plan(0, 0, 2, 5.0e5, LIGHT),
    "balanced": Plan(3, 9, 100, 3.6e5, LIGHT),
    "best": Plan(12, 18, 400, 1.2e7, HEAVY),
}
# A round rebuilds pools of a few k rows, which is half of its work at this k.
_HALF_AT = 40
_SMALL, _FEW, _ROWS_OF_A_ROUND = 10_000, 10, 50
# Rules forbid many moves, so that what is left needs more of them.
_HARDER = 1.3


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
    common ancestor). Rows may be left out, up to what the policy allows, where that lowers the
    total. The same table in any order, parameters and seed give the same partition up
    to equal rows, without a time limit. Groups have at least k rows.
    """

    effort: Literal["fast", "balanced", "best"] = "balanced"
    time_limit: float | None = None
    loss: Literal["ncp", "il"] = "ncp"
    stages: Stages = field(default_factory=Stages, compare=False)

    def assign(self, table: EncodedTable, requirement: Requirement, *, seed: int) -> Assignment:
        """Group the rows; a round is O(n * clusters in a block * d)."""
        deadline = None if self.time_limit is None else monotonic() + self.time_limit
        frozen = freeze(make_space(table, requirement, loss=self.loss))
        label = self._search(frozen.space, n_rows=table.n_rows, deadline=deadline, seed=seed)
        budget = requirement.budget(table.n_rows)
        if budget > 0:
            label = leave_out(frozen.space, label, budget=budget, seed=seed)
        _, of_frozen = np.unique(frozen.tuple_of_frozen, return_inverse=True)
        n_active = int(label.max()) + 1
        group = np.empty(table.n_rows, np.int32)
        group[frozen.rows] = label
        group[frozen.frozen] = n_active + of_frozen
        return Assignment(group, n_active + int(of_frozen.max(initial=-1)) + 1)

    def _search(
        self, space: Space, *, n_rows: int, deadline: float | None, seed: int
    ) -> NDArray[np.int32]:
        if space.n_rows < 2 * space.k:
            return np.zeros(space.n_rows, np.int32)
        label, name = start(space, seed=seed)
        self.stages.remark(f"start: {name}")
        points, plan = coordinates(space), EFFORTS[self.effort]
        rounds = plan.rounds(space, begun=name)
        cells = n_rows * sum(column.rule.weight for column in space.columns)
        number = 0
        while not self.stages.stopped:
            done = number / rounds if rounds > 0 else 1.0
            if deadline is not None and self.time_limit is not None:
                left = deadline - monotonic()
                done = 1.0 - left / self.time_limit if left > 0.0 else 1.0
            self.stages.progress(min(done, 1.0), total_cost(space, label) / max(cells, 1.0))
            if done >= 1.0:
                break
            label = improve(space, label, points, effort=plan.each, seed=seed, number=number)
            number += 1
        return label
