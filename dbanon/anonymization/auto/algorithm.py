"""The algorithm ``auto``: a start by peeling or in blocks, then local search."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from math import sqrt
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar

import numpy as np

from dbanon.anonymization.auto.block_start import start_quickly
from dbanon.anonymization.auto.clock import Clock
from dbanon.anonymization.auto.distribution_cuts import (
    is_pressed,
    recut,
    shares_of,
    start_by_shares,
)
from dbanon.anonymization.auto.duplicates import freeze
from dbanon.anonymization.auto.outliers import leave_out
from dbanon.anonymization.auto.precompile import rounds_made_ready
from dbanon.anonymization.auto.rounds import (
    ANNEALED,
    LARGE,
    LIGHT,
    MANY_COLUMNS,
    MOVES,
    SELDOM,
    TURNS,
    coordinates,
    improve,
)
from dbanon.anonymization.auto.space import can_be_carved, make_space, total_cost
from dbanon.anonymization.auto.start import BLOCKS, CARVING, CUTS, USUAL, Carving, start
from dbanon.anonymization.threads import GivenUp, aside, given_up
from dbanon.domain.assignment import Assignment
from dbanon.domain.progress import Stages
from dbanon.kernels.layout import WIDE

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
_DENSE = frozenset({BLOCKS, CUTS, CARVING})


class Phase(NamedTuple):
    """Rounds of a search that are alike, and what each does; those that are hot cool down."""

    rounds: int
    each: Effort
    mostly_moves: bool = False

    def effort(self, number: int, *, share: float = 0.0) -> Effort:
        """Return what a round does; share: of the time that is gone, where it is limited."""
        if self.mostly_moves and (number + 1) % SELDOM > 0:
            return MOVES
        done = max(share, min(number / max(self.rounds, 1), 1.0))
        return self.each._replace(heat=self.each.heat * (1 - done) ** 2)


class Plan(NamedTuple):
    """What an effort buys: rounds, as many as ``work`` allows, between fewest and most.

    after_blocks: the fewest after a start in blocks, which leaves more to do than peeling; of
    tables of many rows fewer, with the root of their number. annealing: the work that hot rounds
    may have. carving: what it may cost to carve clusters out.
    """

    fewest: int
    after_blocks: int
    most: int
    work: float
    annealing: float
    carving: Carving

    def phase(self, space: Space, *, begun: str) -> Phase:
        """Return the rounds that lose most in their time; small tables can afford more of them.

        begun: the name of the start.
        """
        n = space.n_rows
        hot, each = self.hot_rounds(space), _hot(space)
        if hot >= _LEAST_HOT and (each != ANNEALED or n <= _SMALL):
            return Phase(hot, each)
        affordable = self.work * (1 + _SMALL / n) / (n * (1 + space.k / _HALF_AT))
        affordable *= min(max(space.k / _USUAL, _PAIRS_GAIN), _LARGE_GAIN)
        fewest = self.fewest
        if begun in _DENSE:
            fewest = max(fewest, int(self.after_blocks * min(1.0, sqrt(_MANY / n))))
        rounds = int(min(self._most(n), max(fewest, affordable)))
        each = TURNS if n < _TURNED else LIGHT
        return Phase(rounds, each, begun in _DENSE and n > _MANY and space.k < _REBUILT)

    def hot_rounds(self, space: Space) -> int:
        """Return how many rounds there may be that are hot at first."""
        n, wide = space.n_rows, space.codes.shape[1] >= WIDE
        affordable = self.annealing * (1 + _SMALL / n) / n / (_WIDE_TAKES if wide else 1)
        return int(min(self._most(n), affordable))

    def _most(self, n: int) -> float:
        return min(self.most * (1 + _MORE * _SMALL / max(n, _SMALL)), _FEW + n / _ROWS_OF_A_ROUND)

    def long_phase(self, space: Space) -> Phase:
        """Return hot rounds for who has the time, unless there are too many rows for that."""
        each = _hot(space)
        if EFFORTS["best"].hot_rounds(space) < _LEAST_HOT:
            each = each._replace(heat=0.0)
        return Phase(max(self.fewest, self.hot_rounds(space)), each)

    def slow(self, n_clusters: int, space: Space) -> Phase:
        """Return the rounds where sensitive values press."""
        rounds = self.phase(space, begun=SHARES).rounds
        affordable = _PAIRS * self.work * n_clusters / space.n_rows**2
        return Phase(min(rounds, max(self.fewest, int(min(rounds / _SLOWER, affordable)))), LIGHT)


EFFORTS = {
    "fast": Plan(0, 0, 2, 5.0e5, 0.0, Carving(1, 1.0e9)),
    "balanced": Plan(3, 11, 100, 3.3e5, 9.0e5, USUAL),
    "best": Plan(12, 18, 400, 1.2e7, 9.0e6, USUAL),
}
# A round rebuilds pools of a few k rows, which is half of its work at this k.
_HALF_AT = 80
# Large clusters go on gaining for longer than pairs do, relative to clusters of this many rows.
_USUAL, _PAIRS_GAIN, _LARGE_GAIN = 5, 0.5, 4.0
_SMALL, _FEW, _ROWS_OF_A_ROUND, _MORE = 10_000, 10, 50, 4
# Fewer rounds than these have no time to cool; one of many columns takes as long as some others.
_LEAST_HOT, _WIDE_TAKES = 10, 6
# Of more rows, changing places gains less in its time than moving.
_TURNED = 100_000
# So many rows have fewer rounds; clusters below this k gain most in the time by moves alone.
_MANY, _REBUILT = 250_000, 10
# Where sensitive values press, a round takes longer, and for each row the more the larger its
# cluster is.
_SLOWER, _PAIRS = 4, 37
_RECUTS, _FIRST = 4, 1_000_000  # passes before the first round, numbered apart from its own
# Rounds end once so many in a row have gained less than this share each, at so many rows.
_IN_VAIN, _FADED, _AT_ROWS = 6, 5e-4, 30_000


class Begun(NamedTuple):
    """The clusters to begin with, (n,); how they were made, None if quickly and for good; shares.

    shares: of the sensitive values, if they press.
    """

    label: NDArray[np.int32]
    name: str | None
    shares: Shares | None


@dataclass(frozen=True, slots=True)
class Auto:
    """Peel or grow, then move, swap, chain, dissolve and rebuild: the least loss known here.

    Equal rows beyond what a search can use are set aside. The clusters to start with are the
    classes of a generalization lattice, peeled off cheapest node first, or those of greedy
    k-member clustering in blocks (Byun et al., DASFAA 2007), or the cheapest boxes around some
    rows, carved out one after the other, whichever lose least on a sample; or Mondrian's cuts
    (LeFevre et al., ICDE 2006) in place of peeling where that gets nowhere; or, where the sensitive
    values of neighbours are too much alike, the parts of cuts of all rows.
    Rounds of local search in blocks with shifting borders then lower the total of rows * penalty.

    ``effort`` (fast, balanced, best) sets the number of rounds; with ``time_limit``, in seconds,
    rounds go on until it is over instead, and what a start has not done by then is made quickly.
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
            clock = Clock(self.time_limit, lambda: compiled.seconds)
            frozen = freeze(make_space(table, requirement, loss=self.loss))
            label = self._search(frozen.space, n_rows=table.n_rows, clock=clock, seed=seed)
            budget = requirement.budget(table.n_rows)
            if budget > 0:
                task = partial(leave_out, frozen.space, label, budget=budget, seed=seed)
                label = self._unless(clock.over, task, otherwise=label)
        _, of_frozen = np.unique(frozen.tuple_of_frozen, return_inverse=True)
        n_active = int(label.max()) + 1
        group = np.empty(table.n_rows, np.int32)
        group[frozen.rows] = label
        group[frozen.frozen] = n_active + of_frozen
        return Assignment(group, n_active + int(of_frozen.max(initial=-1)) + 1)

    def _search(self, space: Space, *, n_rows: int, clock: Clock, seed: int) -> NDArray[np.int32]:
        if space.n_rows < 2 * space.k:
            return np.zeros(space.n_rows, np.int32)
        self.stages.step("start")
        cells = n_rows * sum(column.rule.weight for column in space.columns)
        label, name, shares = self._begin(space, clock, seed=seed)
        if name is None:
            if not self.stages.stopped:
                self.stages.progress(1.0, total_cost(space, label) / max(cells, 1.0))
            return label
        self.stages.step("search")
        begun = Begun(label, name, shares)
        return self._improved(space, begun, clock, seed=seed, cells=max(cells, 1.0))

    def _improved(
        self, space: Space, begun: Begun, clock: Clock, *, seed: int, cells: float
    ) -> NDArray[np.int32]:
        """Return the best labels of all rounds."""
        points, phases = coordinates(space), self._phases(space, begun)
        limited, rounds = self.time_limit is not None, sum(phase.rounds for phase in phases)
        label = best = begun.label
        paid, number, since = [total_cost(space, label)], 0, 0
        while True:
            phase, is_last = phases[0], len(phases) == 1
            is_over = number - since >= phase.rounds or _has_faded(paid[since:], phase, space)
            if is_over and not is_last:
                phases, since, label = phases[1:], number, best
                continue
            done = clock.share if limited else 1.0 if is_over else number / rounds
            self.stages.progress(done, min(paid) / cells)
            if done >= 1.0:
                return best
            nth = 0 if limited and is_last else number - since
            task = partial(
                _round,
                space,
                label,
                points,
                begun.shares,
                effort=phase.effort(nth, share=clock.share),
                seed=seed,
                number=number,
                over=clock.over,
            )
            better = self._unless(clock.overdue, task, otherwise=None)
            if better is None:
                return best
            label, number = better, number + 1
            paid.append(total_cost(space, label))
            best = label if paid[-1] <= min(paid) else best

    def _phases(self, space: Space, begun: Begun) -> list[Phase]:
        """Return what is done one after the other; ``best`` begins with what ``balanced`` does."""
        plan = EFFORTS[self.effort]
        if begun.shares is not None or begun.name is None:
            return [plan.slow(int(begun.label.max()) + 1, space)]
        if self.effort != "best" and self.time_limit is None:
            return [plan.phase(space, begun=begun.name)]
        first = EFFORTS["balanced"].phase(space, begun=begun.name)
        return [first, plan.long_phase(space)]

    def _begin(self, space: Space, clock: Clock, *, seed: int) -> Begun:
        """Return the clusters to begin with."""
        try:
            with rounds_made_ready() as wait:
                shares = aside(partial(_pressing, space), until=self._is_stopped)
                if shares is None:
                    task = partial(
                        start,
                        space,
                        seed=seed,
                        before_rounds=wait,
                        clock=clock,
                        carving=EFFORTS[self.effort].carving,
                    )
                    label, name = aside(task, until=self._is_stopped)
                    self.stages.remark(f"start: {name}{_late(clock)}")
                    return Begun(label, name, None)
                cuts = partial(_start_by_cuts, space, shares, seed=seed, over=clock.over)
                label = aside(cuts, until=lambda: self._is_stopped() or clock.overdue())
                self.stages.remark(f"start: {SHARES}{_late(clock)}")
                return Begun(label, SHARES, shares)
        except GivenUp:
            if given_up():
                raise
            self.stages.remark("start: quick, as time was out")
            return Begun(start_quickly(space), None, None)

    def _is_stopped(self) -> bool:
        return self.stages.stopped

    def _unless(self, over: Callable[[], bool], task: Callable[[], R], *, otherwise: R) -> R:
        """Return a task's result, or something else once time is out or somebody has stopped it."""
        try:
            return aside(task, until=lambda: self.stages.stopped or over())
        except GivenUp:
            if given_up():
                raise
            return otherwise


def _hot(space: Space) -> Effort:
    """Return what a hot round does."""
    if space.codes.shape[1] >= WIDE:
        return MANY_COLUMNS
    return LARGE if can_be_carved(space) else ANNEALED


def _pressing(space: Space) -> Shares | None:
    """Return the shares of sensitive values if they press."""
    return shares_of(space) if is_pressed(space) else None


def _has_faded(paid: list[float], phase: Phase, space: Space) -> bool:
    """Whether rounds that only save have lately saved too little for the rows they look at.

    paid: the total before the first of them and after each.
    """
    if phase.each.heat > 0.0 or phase.mostly_moves or len(paid) <= _IN_VAIN:
        return False
    least = _IN_VAIN * _FADED * space.n_rows / _AT_ROWS
    return paid[-1 - _IN_VAIN] - paid[-1] <= least * paid[-1]


def _late(clock: Clock) -> str:
    """Return what to say of a start that did not have the time it needs."""
    return ", quick where time was out" if clock.over() else ""


def _start_by_cuts(
    space: Space, shares: Shares, *, seed: int, over: Callable[[], bool]
) -> NDArray[np.int32]:
    """Return the clusters of cuts; where time is out, those that there are, or quick ones."""
    label = start_by_shares(space, shares, over=over)
    for number in range(_RECUTS):
        if over():
            return min(label, start_quickly(space), key=partial(total_cost, space))
        label = recut(space, label, shares, seed=seed, number=_FIRST + number)
    return label


def _round(
    space: Space,
    label: NDArray[np.int32],
    points: NDArray[np.float32],
    shares: Shares | None,
    *,
    effort: Effort,
    seed: int,
    number: int,
    over: Callable[[], bool],
) -> NDArray[np.int32]:
    label = improve(space, label, points, effort=effort, seed=seed, number=number, over=over)
    if shares is None or over():
        return label
    return recut(space, label, shares, seed=seed, number=number)
