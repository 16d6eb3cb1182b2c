"""The algorithm ``auto``: a start, local search, and suppression of the costliest rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from math import inf
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar

import numpy as np

from dbanon.anonymization.auto.distribution_cuts import (
    Shares,
    is_pressed,
    recut,
    shares_of,
    start_by_shares,
)
from dbanon.anonymization.auto.plans import EFFORTS, SHARES, SMALL, Phase
from dbanon.anonymization.auto.rounds import LIGHT, Effort, coordinates, improve
from dbanon.anonymization.auto.space import Frozen, Space, freeze, make_space, total_cost
from dbanon.anonymization.auto.start import Carved, Clock, carved_by, start, start_quickly
from dbanon.anonymization.threads import GivenUp, aside, given_up
from dbanon.domain.assignment import Assignment, EncodedTable
from dbanon.domain.outcomes import Stages

if TYPE_CHECKING:
    from collections.abc import Callable

    from dbanon.anonymization.interfaces import Requirement
    from dbanon.kernels.layout import Int32s, Int64s


_STEPS, _ROUNDS = 4, 3


def leave_out(space: Space, label: Int32s, *, budget: int, seed: int) -> Int32s:
    """Return the labels with at most ``budget`` rows at -1, if that lowers the total cost.

    A suppressed row costs the sum of all weights. In each of a few steps, every cluster drops one
    row if that saves more, and the others are searched again. The last step is undone if it does
    not lower the total or breaks a group.
    """
    price = sum(column.rule.weight for column in space.columns)
    rows, kept = np.arange(space.n_rows), label
    best = total_cost(space, label)
    for step in range(_STEPS):
        share = -(-(budget - (space.n_rows - len(rows))) // (1 if step == _STEPS - 1 else 2))
        part = space.take(rows)
        out = _costliest(part, kept, price=price)[:share]
        if len(out) == 0:
            break
        stay = np.setdiff1d(np.arange(len(rows)), out)
        smaller = part.take(stay)
        found = np.unique(kept[stay], return_inverse=True)[1].astype(np.int32)
        points = coordinates(smaller)
        for number in range(_ROUNDS):
            found = improve(
                smaller, found, points, effort=LIGHT, seed=seed, number=(step + 1) * 1000 + number
            )
        total = total_cost(smaller, found) + price * (space.n_rows - len(stay))
        if total >= best or not _holds(smaller, found):
            break
        rows, kept, best = rows[stay], found, total
    result = np.full(space.n_rows, -1, np.int32)
    result[rows] = kept
    return result


def _costliest(space: Space, label: Int32s, *, price: float) -> Int64s:
    """Return one row of each cluster whose suppression saves more than the price, best first."""
    from dbanon.kernels.auto.clusters import leaving_gains

    gains = leaving_gains(space.codes, *space.costs, label.copy(), int(label.max()) + 1)
    order = np.argsort(-gains, kind="stable")
    order = order[gains[order] > price + space.surplus]
    _, first = np.unique(label[order], return_index=True)
    return order[np.sort(first)]


def _holds(space: Space, label: Int32s) -> bool:
    from dbanon.kernels.auto.diversity import labels_hold, make_rules

    rules = make_rules(*space.rules, space.sensitive)
    sizes = np.bincount(label)
    return bool(sizes.min() >= space.k and labels_hold(rules, label, len(sizes)))


R = TypeVar("R")

QUICK = "quick"
_FIRST = 1_000_000  # the number of the pass before the first round, apart from its own


class Begun(NamedTuple):
    """Initial clusters, (n,), the name of the start (QUICK: final), and shares, if needed."""

    label: Int32s
    name: str
    shares: Shares | None


class Course(NamedTuple):
    """Rounds and their initial clusters, None for the best so far."""

    phase: Phase
    begun: Begun | None = None

    def begins(self, other: Course) -> bool:
        """Return True if these are the first rounds of another course."""
        alike = self.phase._replace(rounds=other.phase.rounds) == other.phase
        cold, fewer = self.phase.each.heat == 0.0, self.phase.rounds <= other.phase.rounds
        return self.begun is other.begun and alike and cold and fewer


@dataclass(frozen=True, slots=True)
class Auto:
    """Peel or grow, then move, swap, chain, dissolve and rebuild: the least loss known here.

    Surplus equal rows are set aside. The initial clusters are lattice classes, peeled off cheapest
    node first, or greedy k-member clusters in blocks (Byun et al., DASFAA 2007), or the cheapest
    boxes around some rows, carved out one by one, or Mondrian's cuts (LeFevre et al., ICDE 2006),
    whichever lose least on a sample. If neighbours have similar sensitive values, they are the
    parts of cuts of all rows. Then rounds of local search in blocks with shifting borders lower the
    total of rows * penalty.

    ``effort`` (fast, balanced, best) sets the number of rounds; each effort extends the previous
    one and keeps the best clusters. With ``time_limit``, in seconds, rounds continue until it
    expires, and an unfinished start is completed quickly. ``loss``: ncp (leaves below the common
    ancestor, or the share of values of a column published as sets) or il (height of the common
    ancestor). Rows are suppressed within the budget if that lowers the total. Without a time limit,
    the result is deterministic for any order of the rows, up to equal rows. Groups have at least k
    rows.
    """

    effort: Literal["fast", "balanced", "best"] = "balanced"
    time_limit: float | None = None
    loss: Literal["ncp", "il"] = "ncp"
    stages: Stages = field(default_factory=Stages, compare=False)

    def assign(self, table: EncodedTable, requirement: Requirement, *, seed: int) -> Assignment:
        """Group the rows; a round is O(n * clusters in a block * d)."""
        return self.proposals(table, requirement, seed=seed)[0]

    def proposals(
        self, table: EncodedTable, requirement: Requirement, *, seed: int
    ) -> list[Assignment]:
        """Return the result of ``assign``, and groups that may lose less once published.

        The latter are those before suppression and, for few rows, those of lower efforts.
        """
        from dbanon.kernels.compilation import on_compile

        with on_compile(partial(self.stages.step, "compile, once on a machine")) as compiled:
            clock = Clock(self.time_limit, lambda: compiled.seconds)
            frozen = freeze(make_space(table, requirement, loss=self.loss))
            ends = self._search(frozen.space, n_rows=table.n_rows, clock=clock, seed=seed)
            budget, labels = requirement.budget(table.n_rows), []
            for label in ends[::-1] if table.n_rows <= SMALL else ends[-1:]:
                if budget > 0:
                    task = partial(leave_out, frozen.space, label, budget=budget, seed=seed)
                    left = self._unless(clock.over, task, otherwise=label)
                    labels += [left] if (left < 0).any() else []
                labels.append(label)
        return [_thawed(frozen, label) for label in labels]

    def _search(self, space: Space, *, n_rows: int, clock: Clock, seed: int) -> list[Int32s]:
        """Return the result of each effort, this one last."""
        if space.n_rows < 2 * space.k:
            return [np.zeros(space.n_rows, np.int32)]
        self.stages.step("start")
        cells = max(n_rows * sum(column.rule.weight for column in space.columns), 1.0)
        begun = self._begin(space, clock, seed=seed)
        if begun[-1].name == QUICK:
            if not self.stages.stopped:
                self.stages.progress(1.0, total_cost(space, begun[-1].label) / cells)
            return [begun[-1].label]
        self.stages.step("search")
        return self._improved(space, self._courses(space, begun), clock, seed=seed, cells=cells)

    def _improved(
        self, space: Space, courses: list[Course], clock: Clock, *, seed: int, cells: float
    ) -> list[Int32s]:
        """Return the best labels at the end of each course."""
        search = _Search(space, seed)
        ends: list[Int32s] = []
        limited = self.time_limit is not None
        rounds = sum(course.phase.rounds for course in courses)
        for course in courses:
            search.enter(course)
            endless = limited and course is courses[-1]
            while endless or not search.is_over():
                done = clock.share if limited else search.n_rounds / rounds
                self.stages.progress(done, search.least / cells)
                if done >= 1.0:
                    return [*ends, search.best]
                nth = 0 if endless else search.nth
                effort = course.phase.effort(nth, share=clock.share)
                task = partial(search.round, effort, clock.over)
                label = self._unless(clock.overdue, task, otherwise=None)
                if label is None:
                    return [*ends, search.best]
                search.take(label)
            ends.append(search.best)
        if not limited:
            self.stages.progress(1.0, search.least / cells)
        return ends

    @property
    def _efforts(self) -> list[str]:
        """The efforts up to this one; each extends the previous one, of few rows its start too."""
        if self.time_limit is not None:
            return [self.effort]
        names = [*EFFORTS]
        return names[: names.index(self.effort) + 1]

    def _courses(self, space: Space, begun: list[Begun]) -> list[Course]:
        """Return the courses in order; with a time limit, the last one continues."""
        limited, last = self.time_limit is not None, begun[-1]
        if last.shares is not None:
            plans = [EFFORTS[name] for name in self._efforts]
            courses = [Course(plan.slow(space), last) for plan in plans]
        else:
            plans = [EFFORTS[name] for name in (["balanced"] if limited else self._efforts[:2])]
            pairs = zip(plans, begun, strict=False)
            courses = [Course(plan.phase(space, begun=one.name), one) for plan, one in pairs]
            if limited or self.effort == "best":
                courses.append(Course(EFFORTS[self.effort].long_phase(space)))
        if space.n_rows <= SMALL:
            return courses
        own = [one for one, following in pairwise(courses) if not one.begins(following)]
        return [*own, courses[-1]]

    def _begin(self, space: Space, clock: Clock, *, seed: int) -> list[Begun]:
        """Return the initial clusters of each effort, this one last."""
        try:
            stopped = self._is_stopped
            pressed = aside(partial(is_pressed, space), until=stopped)
            shares = aside(partial(shares_of, space), until=stopped) if pressed else None
            if shares is not None:
                cuts = partial(_start_by_cuts, space, shares, seed=seed, over=clock.over)
                label = aside(cuts, until=lambda: self._is_stopped() or clock.overdue())
                self.stages.remark(f"start: {SHARES}{_late(clock)}")
                return [Begun(label, SHARES, shares)]
            begun: dict[Carved | None, Begun] = {}
            begin = partial(start, space, seed=seed, clock=clock)
            efforts = self._efforts if space.n_rows <= SMALL else self._efforts[-1:]
            carvings = [EFFORTS[name].carving for name in efforts]
            ways = [carved_by(space, carving, clock) for carving in carvings]
            for way, carving in zip(ways, carvings, strict=True):
                if way not in begun:
                    found = aside(partial(begin, carving=carving), until=self._is_stopped)
                    begun[way] = Begun(*found, None)
            self.stages.remark(f"start: {begun[ways[-1]].name}{_late(clock)}")
            return [begun[way] for way in ways] * (len(self._efforts) // len(ways))
        except GivenUp:
            if given_up():
                raise
            self.stages.remark("start: quick, as time was out")
            return [Begun(start_quickly(space), QUICK, None)]

    def _is_stopped(self) -> bool:
        return self.stages.stopped

    def _unless(self, over: Callable[[], bool], task: Callable[[], R], *, otherwise: R) -> R:
        """Return a task's result, or ``otherwise`` after the time limit or a stop."""
        try:
            return aside(task, until=lambda: self.stages.stopped or over())
        except GivenUp:
            if given_up():
                raise
            return otherwise


class _Search:
    """Clusters in the course of rounds; best: the labels of the least total cost so far."""

    def __init__(self, space: Space, seed: int) -> None:
        from dbanon.kernels.auto.clusters import costs_alone

        self._space, self._seed = space, seed
        self._points = coordinates(space)
        self.n_rounds, self.least, self._alone = 0, inf, 0.0
        if space.surplus:  # persons of several rows have a loss of their own
            self._alone = (costs_alone(space.codes, *space.costs) - space.surplus).sum()

    def enter(self, course: Course) -> None:
        """Start with the clusters of a course."""
        self._phase, self.nth = course.phase, 0
        self._paid: list[float] = []
        if course.begun is not None:
            self._label, self._shares, self._number = course.begun.label, course.begun.shares, 0
        else:
            self._label = self.best
        self._weigh()

    def is_over(self) -> bool:
        """Return True if the course has ended or gains too little."""
        has_faded = self._phase.has_faded(self._paid, self._space, alone=self._alone)
        return self.nth >= self._phase.rounds or has_faded

    def round(self, effort: Effort, over: Callable[[], bool]) -> Int32s:
        """Return the labels after another round; over: returns True after the time limit."""
        space, draw = self._space, {"seed": self._seed, "number": self._number}
        label = improve(space, self._label, self._points, effort=effort, over=over, **draw)
        if self._shares is None or over():
            return label
        return recut(space, label, self._shares, **draw)

    def take(self, label: Int32s) -> None:
        """Continue with the labels of a round."""
        self._label = label
        self._number, self.nth, self.n_rounds = self._number + 1, self.nth + 1, self.n_rounds + 1
        self._weigh()

    def _weigh(self) -> None:
        self._paid.append(total_cost(self._space, self._label))
        if self._paid[-1] <= self.least:
            self.best, self.least = self._label, self._paid[-1]


def _thawed(frozen: Frozen, label: Int32s) -> Assignment:
    """Return the groups of all rows, given those of the active rows."""
    _, of_frozen = np.unique(frozen.tuple_of_frozen, return_inverse=True)
    n_active = int(label.max()) + 1
    group = np.empty(len(frozen.rows) + len(frozen.frozen), np.int32)
    group[frozen.rows] = label
    group[frozen.frozen] = n_active + of_frozen
    return Assignment(group, n_active + int(of_frozen.max(initial=-1)) + 1)


def _late(clock: Clock) -> str:
    """Return a remark if the start ran out of time."""
    return ", quick where time was out" if clock.over() else ""


def _start_by_cuts(space: Space, shares: Shares, *, seed: int, over: Callable[[], bool]) -> Int32s:
    """Return the clusters of cuts; after the time limit, unfinished or quick ones."""
    label = start_by_shares(space, shares, over=over)
    if over():
        return min(label, start_quickly(space), key=partial(total_cost, space))
    return recut(space, label, shares, seed=seed, number=_FIRST)
