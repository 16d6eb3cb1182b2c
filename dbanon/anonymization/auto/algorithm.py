"""The algorithm ``auto``: a start by peeling or in blocks, then local search."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar

import numpy as np

from dbanon.anonymization.auto.distribution_cuts import (
    is_pressed,
    recut,
    shares_of,
    start_by_shares,
)
from dbanon.anonymization.auto.duplicates import freeze
from dbanon.anonymization.auto.fallback import start_quickly
from dbanon.anonymization.auto.outliers import leave_out
from dbanon.anonymization.auto.precompile import rounds_made_ready
from dbanon.anonymization.auto.rounds import HEAVY, LIGHT, coordinates, improve
from dbanon.anonymization.auto.space import make_space, total_cost
from dbanon.anonymization.auto.start import BLOCKS, start
from dbanon.anonymization.threads import GivenUp, aside, given_up
from dbanon.domain.assignment import Assignment
from dbanon.domain.progress import Stages

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from dbanon.anonymization.auto.distribution_cuts import Shares
    from dbanon.anonymization.auto.rounds import Effort
    from dbanon.anonymization.auto.space import Space
    from dbanon.anonymization.interfaces import Requirement
    from dbanon.domain.assignment import EncodedTable

R = TypeVar("R")

SHARES = "shares"


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
        affordable *= min(max(space.k / _USUAL, _PAIRS_GAIN), _LARGE_GAIN)
        fewest = self.after_blocks if begun == BLOCKS else self.fewest
        most = min(self.most, _FEW + n / _ROWS_OF_A_ROUND)
        return int(min(most, max(fewest, affordable)))

    def slow_rounds(self, rounds: int, n_clusters: int, space: Space) -> int:
        """Return how many of these rounds to run where sensitive values press."""
        affordable = _PAIRS * self.work * n_clusters / space.n_rows**2
        return min(rounds, max(self.fewest, int(min(rounds / _SLOWER, affordable))))


EFFORTS = {
    "fast": Plan(0, 0, 2, 5.0e5, LIGHT),
    "balanced": Plan(3, 11, 100, 2.2e5, LIGHT),
    "best": Plan(12, 18, 400, 1.2e7, HEAVY),
}
# A round rebuilds pools of a few k rows, which is half of its work at this k.
_HALF_AT = 80
# Large clusters go on gaining for longer than pairs do, relative to clusters of this many rows.
_USUAL, _PAIRS_GAIN, _LARGE_GAIN = 5, 0.5, 2.0
_SMALL, _FEW, _ROWS_OF_A_ROUND = 10_000, 10, 50
# Where sensitive values press, a round takes longer, and for each row the more the larger its
# cluster is.
_SLOWER, _PAIRS = 4, 37
_RECUTS, _FIRST = 4, 1_000_000  # passes before the first round, numbered apart from its own


class _Clock:
    """How much of a time limit has gone by; what is compiled once does not count.

    limit: in seconds, None for none; waited: the seconds that do not count.
    """

    def __init__(self, limit: float | None, waited: Callable[[], float]) -> None:
        self._limit, self._waited = limit, waited
        self._began = monotonic() - waited()

    @property
    def share(self) -> float:
        """The share of the limit that is used up, 1 when time is over; 0 without a limit."""
        if self._limit is None:
            return 0.0
        used = monotonic() - self._began - self._waited()
        return used / self._limit if used < self._limit else 1.0


@dataclass(frozen=True, slots=True)
class Auto:
    """Peel or grow, then move, swap, chain, dissolve and rebuild: the least loss known here.

    Equal rows beyond what a search can use are set aside. The clusters to start with are the
    classes of a generalization lattice, peeled off cheapest node first, or those of greedy
    k-member clustering in blocks (Byun et al., DASFAA 2007), whichever loses less on a sample; or,
    where the sensitive values of neighbours are too much alike, the parts of cuts of all rows.
    Rounds of local search in blocks with shifting borders then lower the total of rows * penalty.

    ``effort`` (fast, balanced, best) sets the number of rounds; with ``time_limit``, in seconds,
    rounds go on until it is over instead, and a start that takes longer gives way to a quick one.
    ``loss`` is what is minimized: ncp (leaves below the common ancestor, or the share of values of
    a column published as sets) or il (height of the common ancestor). Rows may be left out, up to
    what the policy allows, where that lowers the total. The same table in any order, parameters
    and seed give the same partition up to equal rows, without a time limit. Groups have at least
    k rows.
    """

    effort: Literal["fast", "balanced", "best"] = "balanced"
    time_limit: float | None = None
    loss: Literal["ncp", "il"] = "ncp"
    stages: Stages = field(default_factory=Stages, compare=False)

    def assign(self, table: EncodedTable, requirement: Requirement, *, seed: int) -> Assignment:
        """Group the rows; a round is O(n * clusters in a block * d)."""
        from dbanon.kernels.compile import on_compile

        with on_compile(lambda: None) as compiled:
            clock = _Clock(self.time_limit, lambda: compiled.seconds)
            frozen = freeze(make_space(table, requirement, loss=self.loss))
            label = self._search(frozen.space, n_rows=table.n_rows, clock=clock, seed=seed)
            budget = requirement.budget(table.n_rows)
            if budget > 0:
                task = partial(leave_out, frozen.space, label, budget=budget, seed=seed)
                label = self._unless_over(task, clock, otherwise=label)
        _, of_frozen = np.unique(frozen.tuple_of_frozen, return_inverse=True)
        n_active = int(label.max()) + 1
        group = np.empty(table.n_rows, np.int32)
        group[frozen.rows] = label
        group[frozen.frozen] = n_active + of_frozen
        return Assignment(group, n_active + int(of_frozen.max(initial=-1)) + 1)

    def _search(self, space: Space, *, n_rows: int, clock: _Clock, seed: int) -> NDArray[np.int32]:
        if space.n_rows < 2 * space.k:
            return np.zeros(space.n_rows, np.int32)
        self.stages.step("start")
        cells = n_rows * sum(column.rule.weight for column in space.columns)
        begin = partial(self._begin, space, seed=seed)
        begun = self._unless_over(begin, clock, otherwise=None)
        if begun is None:
            self.stages.remark("start: quick, as time was out")
            label = start_quickly(space)
            if not self.stages.stopped:
                self.stages.progress(1.0, total_cost(space, label) / max(cells, 1.0))
            return label
        label, name, shares = begun
        points, plan = coordinates(space), EFFORTS[self.effort]
        rounds = plan.rounds(space, begun=name)
        if shares is not None:
            rounds = plan.slow_rounds(rounds, int(label.max()) + 1, space)
        number = 0
        self.stages.step("search")
        while True:
            done = number / rounds if rounds > 0 else 1.0
            if self.time_limit is not None:
                done = clock.share
            self.stages.progress(min(done, 1.0), total_cost(space, label) / max(cells, 1.0))
            if done >= 1.0:
                return label
            task = partial(
                _round, space, label, points, shares, effort=plan.each, seed=seed, number=number
            )
            better = self._unless_over(task, clock, otherwise=None)
            if better is None:
                return label
            label = better
            number += 1

    def _begin(self, space: Space, *, seed: int) -> tuple[NDArray[np.int32], str, Shares | None]:
        """Return the clusters to begin with, how, and the shares if sensitive values press."""
        with rounds_made_ready() as wait:
            shares = shares_of(space) if is_pressed(space) else None
            if shares is None:
                label, name = start(space, seed=seed, before_rounds=wait)
                self.stages.remark(f"start: {name}")
                return label, name, None
            self.stages.remark(f"start: {SHARES}")
            label = start_by_shares(space, shares)
            for number in range(_RECUTS):
                label = recut(space, label, shares, seed=seed, number=_FIRST + number)
            return label, SHARES, shares

    def _unless_over(self, task: Callable[[], R], clock: _Clock, *, otherwise: R) -> R:
        """Return a task's result, or something else once time is out or somebody has stopped it."""

        def over() -> bool:
            return self.stages.stopped or clock.share >= 1.0

        try:
            return aside(task, until=over)
        except GivenUp:
            if given_up():
                raise
            return otherwise


def _round(
    space: Space,
    label: NDArray[np.int32],
    points: NDArray[np.float32],
    shares: Shares | None,
    *,
    effort: Effort,
    seed: int,
    number: int,
) -> NDArray[np.int32]:
    label = improve(space, label, points, effort=effort, seed=seed, number=number)
    if shares is None:
        return label
    return recut(space, label, shares, seed=seed, number=number)
