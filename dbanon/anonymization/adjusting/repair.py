"""Make every group meet the requirement by merging, regrouping or suppression."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Protocol, cast

import numpy as np

from dbanon.anonymization.adjusting.merging import Merging, numbered
from dbanon.anonymization.auto.distribution_cuts import recut, shares_of, start_by_shares
from dbanon.anonymization.auto.rounds import MOVES, coordinates, improve
from dbanon.anonymization.auto.space import make_space, total_cost
from dbanon.anonymization.loss.costs import box_losses, column_costs, weighted_costs
from dbanon.anonymization.threads import GivenUp, aside, given_up
from dbanon.domain.assignment import Assignment, EncodedColumn, EncodedTable
from dbanon.domain.errors import Unsatisfiable
from dbanon.domain.outcomes import Stages
from dbanon.domain.table import quote_identifier
from dbanon.models.demands import achieved, explained, meets, rows_meet, wholes
from dbanon.models.tally import Whole, tally_of_counts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dbanon.anonymization.interfaces import Requirement
    from dbanon.kernels.layout import Bools, Floats, Int32s, Int64s
    from dbanon.models.base import Demand


def leave_rare(
    table: EncodedTable, assignment: Assignment, requirement: Requirement, *, budget: int
) -> Assignment:
    """Suppress the rows of greatest loss in columns with a rule for rare values, up to ``budget``.

    Single rows go first if that saves more than any group loses per row; then whole groups above
    average, the costliest first. Previously suppressed rows count. The other groups keep k rows and
    l distinct sensitive values, and one group stays. A final assignment is returned unchanged.
    """
    rare = [column for column in table.quasi if column.rule.rare is not None]
    left = budget - assignment.n_suppressed
    if not rare or left <= 0 or assignment.final or assignment.n_groups == 0:
        return assignment
    costliest = _group_costs(rare, assignment).max()
    of_rare = replace(table, quasi=tuple(rare))
    trimmed = trim(of_rare, assignment, requirement, budget=budget, price=float(costliest))
    return _without_groups(rare, trimmed, budget=budget - trimmed.n_suppressed)


def _without_groups(
    rare: list[EncodedColumn], assignment: Assignment, *, budget: int
) -> Assignment:
    costs = _group_costs(rare, assignment)
    size = np.bincount(assignment.group[assignment.group >= 0], minlength=assignment.n_groups)
    average = float((costs * size).sum() / size.sum())
    out: list[int] = []
    for group in np.argsort(-costs, kind="stable").tolist():
        if costs[group] <= average or len(out) == assignment.n_groups - 1:
            break
        if size[group] <= budget:
            out.append(group)
            budget -= int(size[group])
    return numbered(np.where(np.isin(assignment.group, out), -1, assignment.group))


def _group_costs(rare: list[EncodedColumn], assignment: Assignment) -> Floats:
    """Return the weighted loss per row of each group in these columns, (n_groups,)."""
    from dbanon.kernels.boxes.costs import group_boxes

    codes: Int32s = np.column_stack([column.codes for column in rare])
    lo, hi, _ = group_boxes(codes, assignment.group, assignment.n_groups)
    costs = [column_costs(column).times(column.rule.weight) for column in rare]
    total: Floats = box_losses(costs, lo, hi).sum(axis=1)
    return total


_NEAR = (64, 512)  # partners considered, first and at most, if all can be counted
_FEW = (64,)  # and otherwise
_CELLS = 1 << 25  # of a table of counts
_WIDEST = 1e3  # a gap counts no more than this
_PASSES = 3  # in which regrouped rows are cut again
_MANY = 500  # groups that would take long to merge if most of them fail
_NOW_AND_THEN = 16

REGROUPED = "regrouped by cuts, as most rows failed a model"


def repair(table: EncodedTable, assignment: Assignment, requirement: Requirement) -> Assignment:
    """Merge every group with too few distinct sensitive values with the neighbour of least cost.

    Cost: the rise of the total (rows * certainty penalty of the box); partners that make the group
    diverse are preferred. Suppressed rows stay suppressed. Raises Unsatisfiable if the others as a
    whole are not diverse. O(groups d) for each merge.
    """
    from dbanon.kernels.boxes.repair import merge_groups

    if requirement.l <= 1:
        return assignment
    kept = np.flatnonzero(assignment.group >= 0)
    for name, values in zip(table.sensitive_names, table.sensitive[kept].T, strict=True):
        if len(np.unique(values)) < requirement.l:
            msg = "no partition of these rows meets what is asked of sensitive column"
            hint = "ask for less, or allow more rows to be left out"
            raise Unsatisfiable(f"{msg} {quote_identifier(name)}", hint=hint)
    merged, n_groups = merge_groups(
        table.all_codes[kept],
        assignment.group[kept],
        assignment.n_groups,
        *weighted_costs(table),
        requirement.l,
    )
    group = np.full(table.n_rows, -1, np.int32)
    group[kept] = merged
    return Assignment(group, int(n_groups))


def enforce(
    table: EncodedTable,
    assignment: Assignment,
    requirement: Requirement,
    *,
    stages: Stages | None = None,
    regroup: bool = True,
) -> Assignment:
    """Merge every group that is too small or fails a demand, at least cost.

    Cost: the rise of the total (rows * certainty penalty of the box). Among the nearest groups, the
    cheapest that meets everything is taken, otherwise the one that closes most of the gap for its
    cost. If most rows are in failing groups, cutting the whole table from scratch
    (``dbanon.anonymization.auto.distribution_cuts``) is compared, or taken if there are many
    groups; without ``regroup``, rows of a group stay together.

    All rows as one group must meet the demands (``dbanon.anonymization.adjusting.repair``);
    suppressed rows return if they are needed for that. Demands that merging can break are ignored.
    A merge reveals that it was needed to those who know the method. Once ``stages`` is stopped, all
    failing groups become one. O(groups d) for each merge.
    """
    demands = [demand for demand in requirement.demands if demand.model.is_monotone]
    stages = stages or Stages()
    if assignment.n_suppressed and not _all_hold(table, assignment.group >= 0, demands):
        assignment = _restored(assignment)
    bad = failing(table, assignment, requirement)
    if not bad.any():
        return assignment
    stages.step("enforce")
    size = np.bincount(assignment.group[assignment.group >= 0], minlength=assignment.n_groups)
    regrouped = None
    if regroup and 2 * size[bad].sum() > size.sum() and not stages.stopped:
        regrouped = _regrouped_once(table, assignment, requirement, stages)
    if regrouped is not None and assignment.n_groups > _MANY:
        stages.remark(REGROUPED)
        return regrouped
    merging = _Constrained(table, assignment, requirement.k, demands=demands)
    merged = merging.merged(np.flatnonzero(bad), stages)
    if regrouped is None or Merging(table, merged).loss() <= Merging(table, regrouped).loss():
        return merged
    stages.remark(REGROUPED)
    return regrouped


def failing(table: EncodedTable, assignment: Assignment, requirement: Requirement) -> Bools:
    """Return a mask of the groups that are too small or fail a demand that merging can meet."""
    demands = [demand for demand in requirement.demands if demand.model.is_monotone]
    rows = np.flatnonzero(assignment.group >= 0)
    group = assignment.group[rows]
    bad: Bools = np.bincount(group, minlength=assignment.n_groups) < requirement.k
    for demand, whole in zip(demands, wholes(table, demands, rows), strict=True):
        bad |= ~meets(table, demand, rows, group, whole=whole)
    return bad


def _regrouped_once(
    table: EncodedTable, assignment: Assignment, requirement: Requirement, stages: Stages
) -> Assignment | None:
    """Regroup the same rows, once for all searches of ``stages``; None if a demand still fails."""
    shown = assignment.group >= 0
    digest = hashlib.blake2b(shown.tobytes() + table.all_codes[shown].tobytes()).digest()
    rules = [repr(column.rule) for column in table.quasi]
    asked = [repr((d.spec, d.column, d.among, d.jointly)) for d in requirement.demands]
    key = (digest, requirement.k, requirement.l, *rules, *asked)
    if key not in stages.shared:
        regrouped = _regrouped(table, assignment, requirement, stages)
        if regrouped is not None and failing(table, regrouped, requirement).any():
            regrouped = None
        stages.shared[key] = regrouped
    return cast("Assignment | None", stages.shared[key])


def _regrouped(
    table: EncodedTable, assignment: Assignment, requirement: Requirement, stages: Stages
) -> Assignment | None:
    """Regroup the same rows; None without a rule or if ``stages`` is stopped."""
    rows = np.flatnonzero(assignment.group >= 0)
    space = make_space(table.take(rows), requirement, loss="ncp")
    shares = shares_of(space) if space.has_rules else None
    if shares is None:
        return None
    cells = max(space.n_rows * sum(column.rule.weight for column in space.columns), 1.0)
    points = coordinates(space)
    try:
        label = aside(partial(start_by_shares, space, shares), until=lambda: stages.stopped)
        for number in range(_PASSES):
            stages.progress(number / _PASSES, total_cost(space, label) / cells)
            draw = partial(partial, seed=0, number=number)
            moves = draw(improve, space, points=points, effort=MOVES)
            for task in (moves, draw(recut, space, shares=shares))[number == 0 :]:
                label = aside(partial(task, label=label), until=lambda: stages.stopped)
    except GivenUp:
        if given_up():
            raise
        return None
    group = np.full(table.n_rows, -1, np.int32)
    group[rows] = label
    return Assignment(group, int(label.max()) + 1)


def _all_hold(table: EncodedTable, kept: Bools, demands: Sequence[Demand]) -> bool:
    rows = np.flatnonzero(kept)
    return len(rows) > 0 and all(rows_meet(table, demand, rows) for demand in demands)


def _restored(assignment: Assignment) -> Assignment:
    """Return the groups and one more, of the suppressed rows."""
    group = np.where(assignment.group < 0, assignment.n_groups, assignment.group)
    return Assignment(group.astype(np.int32), assignment.n_groups + 1)


class _Constrained(Merging):
    """Groups that are merged until they meet the demands."""

    def __init__(
        self, table: EncodedTable, assignment: Assignment, k: int, *, demands: Sequence[Demand]
    ) -> None:
        super().__init__(table, assignment)
        self._k = k
        compared = wholes(table, demands, np.flatnonzero(assignment.group >= 0))
        self._judges = [
            _judge(table, assignment, demand, whole)
            for demand, whole in zip(demands, compared, strict=True)
        ]
        by_rows = any(isinstance(judge, _ByRows) for judge in self._judges)
        self._near = _FEW if by_rows else _NEAR

    def merged(self, bad: Int64s, stages: Stages) -> Assignment:
        """Merge the failing groups, and return the result, numbered in order."""
        size = self.boxes.size
        for i, a in enumerate(bad.tolist()):
            if stages.stopped or given_up():
                self._hurry(bad[i:])
                break
            if i % _NOW_AND_THEN == 0:
                stages.progress(i / len(bad), self.loss())
            while size[a] and (gap := self._gaps(np.array([a]), None)[0]) > 0:
                self.absorb(a, self._partner(a, gap))
        return self.assignment()

    def absorb(self, a: int, b: int) -> None:
        """Merge group b into group a."""
        super().absorb(a, b)
        for judge in self._judges:
            judge.absorb(a, b)

    def _hurry(self, bad: Int64s) -> None:
        """Merge all failing groups into one, and add the nearest others until it passes."""
        size = self.boxes.size
        left = bad[size[bad] > 0]
        failing = left[self._gaps(left, None) > 0].tolist() if len(left) else []
        for b in failing[1:]:
            self.absorb(failing[0], b)
        more = 1
        while failing and self._gaps(np.array(failing[:1]), None)[0] > 0:
            rises = self.rises(failing[0])
            near = np.argsort(rises, kind="stable")[:more]
            for b in near[np.isfinite(rises[near])].tolist():
                self.absorb(failing[0], b)
            more *= 2

    def _gaps(self, groups: Int64s, joined: int | None) -> Floats:
        size = self.boxes.size
        rows = size[groups] + (0 if joined is None else size[joined])
        total: Floats = np.maximum(self._k - rows, 0) / self._k
        for judge in self._judges:
            total += np.minimum(judge.gaps(groups, joined), _WIDEST)
        return total

    def _partner(self, a: int, gap: float) -> int:
        rises = self.rises(a)
        there = np.flatnonzero(np.isfinite(rises))
        if len(there) > self._near[-1]:
            bound = np.partition(rises[there], self._near[-1])[self._near[-1]]
            there = there[rises[there] <= bound]
        near = there[np.argsort(rises[there], kind="stable")][: self._near[-1]]
        gaps = np.empty(0)
        for most in self._near:
            gaps = np.append(gaps, self._gaps(near[len(gaps) : most], a))
            if (gaps == 0).any():
                return int(near[(gaps == 0).argmax()])
            if len(gaps) == len(near):
                break
        if (gaps >= gap).all():
            return int(near[0])
        closed = np.maximum(gap - gaps, 0.0) / np.maximum(rises[near], 1e-12)
        return int(near[closed.argmax()])


class _Judge(Protocol):
    """Values of the groups for one demand."""

    def gaps(self, groups: Int64s, joined: int | None) -> Floats:
        """Return how far each group, joined with another, is from the demand; 0 if it meets it."""
        ...

    def absorb(self, a: int, b: int) -> None:
        """Merge group b into group a."""
        ...


def _judge(table: EncodedTable, assignment: Assignment, demand: Demand, whole: Whole) -> _Judge:
    if demand.among or demand.jointly or assignment.n_groups * len(whole.share) > _CELLS:
        return _ByRows(table, assignment, demand, whole)
    return _ByCounts(table, assignment, demand, whole)


class _ByCounts:
    """Frequencies of each value in each group."""

    def __init__(
        self, table: EncodedTable, assignment: Assignment, demand: Demand, whole: Whole
    ) -> None:
        self._model, self._whole = demand.model, whole
        width, kept = len(whole.share), assignment.group >= 0
        keys = assignment.group[kept].astype(np.int64) * width
        keys += table.sensitive[kept, demand.column or 0]
        counts = np.bincount(keys, minlength=assignment.n_groups * width)
        self._counts = counts.reshape(-1, width)

    def gaps(self, groups: Int64s, joined: int | None) -> Floats:
        counts = self._counts[groups]
        if joined is not None:
            counts = counts + self._counts[joined]
        level = self._model.achieved(tally_of_counts(counts), self._whole)
        return self._model.bound.gap(level, self._model.required)

    def absorb(self, a: int, b: int) -> None:
        self._counts[a] += self._counts[b]


class _ByRows:
    """Rows of each group, if values are too many to count or depend on others."""

    def __init__(
        self, table: EncodedTable, assignment: Assignment, demand: Demand, whole: Whole
    ) -> None:
        self._table, self._demand, self._whole = table, demand, whole
        self._members = assignment.members

    def gaps(self, groups: Int64s, joined: int | None) -> Floats:
        more = [] if joined is None else [self._members[joined]]
        parts = [np.concatenate([self._members[g], *more]) for g in groups.tolist()]
        classes = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
        model = self._demand.model
        rows = np.concatenate(parts)
        level = achieved(
            self._table, self._demand, rows, classes.astype(np.int32), whole=self._whole
        )
        return model.bound.gap(level, model.required)

    def absorb(self, a: int, b: int) -> None:
        self._members[a] = np.concatenate([self._members[a], self._members[b]])
        self._members[b] = self._members[b][:0]


def finish(
    table: EncodedTable,
    assignment: Assignment,
    requirement: Requirement,
    *,
    budget: int,
    stages: Stages,
) -> Assignment:
    """Suppress up to ``budget`` rows if that pays, and merge groups that fail a demand."""
    assignment = trim(table, assignment, requirement, budget=budget)
    assignment = leave_rare(table, assignment, requirement, budget=budget)
    if any(demand.model.is_monotone for demand in requirement.demands):  # k is the algorithm's task
        assignment = enforce(table, assignment, requirement, stages=stages)
    return assignment


def trim(
    table: EncodedTable,
    assignment: Assignment,
    requirement: Requirement,
    *,
    budget: int,
    price: float | None = None,
) -> Assignment:
    """Suppress rows that lower the total cost, until ``budget`` rows are suppressed.

    Rows suppressed by the algorithm count. price: of a suppressed row, the sum of all weights by
    default. Groups keep k rows and l distinct sensitive values; no group disappears. A final
    assignment is returned unchanged.
    """
    from dbanon.kernels.boxes.repair import trim as trim_rows

    left = budget - assignment.n_suppressed
    if left <= 0 or assignment.final or assignment.n_groups == 0:
        return assignment
    shown = np.flatnonzero(assignment.group >= 0)
    group = assignment.group.copy()
    group[shown] = trim_rows(
        table.all_codes[shown],
        assignment.group[shown],
        float(sum(column.rule.weight for column in table.quasi) if price is None else price),
        *weighted_costs(table),
        requirement.k,
        requirement.l,
        left,
    )
    return Assignment(group, assignment.n_groups)


_CROWDED = 20  # times k rows in a class are worth a word


def rows_in_reach(table: EncodedTable, requirement: Requirement) -> Int64s:
    """Return all rows if they meet every demand as one group, otherwise the most that do.

    Suppresses the lowest rows of the most frequent value within the budget. Raises Unsatisfiable
    with the failing demand and a possible value.
    """
    left_out = np.zeros(table.n_rows, bool)
    budget = min(requirement.budget(table.n_rows), table.n_rows - requirement.k)
    for demand in requirement.demands:
        if not demand.model.is_monotone:
            _require_eligible(table, demand, requirement)
            continue
        enough = _thin(table, demand, left_out, most=budget)
        if not enough:
            raise _unsatisfiable(table, demand, requirement)
    rows = np.flatnonzero(~left_out)
    for demand in requirement.demands:
        if demand.model.is_monotone and not rows_meet(table, demand, rows):
            raise _unsatisfiable(table, demand, requirement)
    return rows


def _thin(table: EncodedTable, demand: Demand, left_out: Bools, *, most: int) -> bool:
    """Suppress rows until the others meet a demand; return True if they do."""
    column = demand.column or 0
    while not rows_meet(table, demand, np.flatnonzero(~left_out)):
        spare = most - int(left_out.sum())
        if spare <= 0 or demand.among:
            return False
        values = table.sensitive[:, column]
        counts = np.bincount(values[~left_out])
        frequent = int(counts.argmax())
        second = int(np.partition(counts, -2)[-2]) if len(counts) > 1 else 0
        step = max(min((counts[frequent] - second) // 8, spare), 1)
        left_out[np.flatnonzero((values == frequent) & ~left_out)[:step]] = True
    return True


def _require_eligible(table: EncodedTable, demand: Demand, requirement: Requirement) -> None:
    least = max(demand.model.required, requirement.k)
    values = table.sensitive[:, demand.column or 0]
    if np.bincount(values).max() * least > table.n_rows:
        raise _unsatisfiable(table, demand, requirement)


def _unsatisfiable(table: EncodedTable, demand: Demand, requirement: Requirement) -> Unsatisfiable:
    fact, possible = explained(table, demand)
    msg = f"{fact}: {demand.model} is impossible"
    if demand.among:
        msg += " once the other sensitive columns are known"
    elif possible:
        msg += f"; {possible} is possible"
    budget = requirement.budget(table.n_rows)
    left = f"at most {budget:,} of {table.n_rows:,} rows may be left out"
    return Unsatisfiable(msg, hint=f"ask for less, or raise --max-suppressed: {left}")


def outlier_advice(table: EncodedTable, rows: Int64s, requirement: Requirement) -> Iterator[str]:
    """Yield a note for each demand that needs large classes; O(n log n) for each demand."""
    for demand in requirement.demands:
        if demand.column is None or demand.among or not demand.model.is_monotone:
            continue
        size = _least_dealt(table, rows, demand, least=requirement.k)
        if size > _CROWDED * requirement.k:
            name = quote_identifier(table.sensitive_names[demand.column])
            yield (
                f"{demand.model} of {name} is nearly out of reach:"
                f" expect classes of about {size:,} of {len(rows):,} rows"
            )


def _least_dealt(table: EncodedTable, rows: Int64s, demand: Demand, *, least: int) -> int:
    order = rows[np.argsort(table.sensitive[rows, demand.column or 0], kind="stable")]
    (whole,) = wholes(table, [demand], rows)
    n_classes = len(rows) // max(least, 1)
    while n_classes > 1:
        classes = (np.arange(len(rows)) % n_classes).astype(np.int32)
        if meets(table, demand, order, classes, whole=whole).all():
            break
        n_classes //= 2
    return len(rows) // max(n_classes, 1)
