"""Merging groups until every one meets the privacy models that are asked of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from dbanon.anonymize.models.demands import achieved, wholes
from dbanon.anonymize.models.tally import tally_of_counts
from dbanon.anonymize.unions import Unions
from dbanon.domain.assignment import Assignment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from dbanon.anonymize.interfaces import Demand, Requirement
    from dbanon.anonymize.models.tally import Whole
    from dbanon.domain.assignment import EncodedTable

_NEAR = 4096  # partners that are looked at where all can be counted at once
_FEW = 64  # and where not
_CELLS = 1 << 25  # of a table of counts
_WIDEST = 1e3  # a gap counts no more than this


def enforce(table: EncodedTable, assignment: Assignment, requirement: Requirement) -> Assignment:
    """Merge every group that does not meet a demand with the neighbour that helps at least cost.

    The cost of a merge is the rise of the total (rows * certainty penalty of the box). Of the
    nearest groups, the cheapest that makes a group meet everything is taken, or else the one that
    closes most of the gap for its cost. All rows as one group must meet the demands
    (``dbanon.anonymize.feasible``); if those that were left out are missing for that, they come
    back. The union of two groups that meet a demand must meet it, too: other demands are left
    alone. Sensitive values decide, so that who knows the
    method learns from a merge that it was needed. O(groups d) for each merge.
    """
    demands = [demand for demand in requirement.demands if is_monotone(demand)]
    if not demands:
        return assignment
    if assignment.n_suppressed and not _all_hold(table, assignment.group >= 0, demands):
        assignment = _restored(assignment)
    rows = np.flatnonzero(assignment.group >= 0)
    group = assignment.group[rows]
    bad = np.bincount(group, minlength=assignment.n_groups) < requirement.k
    compared = wholes(table, demands, rows)
    for demand, whole in zip(demands, compared, strict=True):
        level = achieved(table, demand, rows, group, whole=whole)
        bad |= ~demand.model.bound.holds(level, demand.model.required)
    if not bad.any():
        return assignment
    merging = _Merging(table, assignment, requirement.k, demands=demands, compared=compared)
    return merging.merged(np.flatnonzero(bad))


def rows_hold(table: EncodedTable, rows: NDArray[np.int64], demand: Demand) -> bool:
    """Whether some rows, taken as the whole relation and its one class, meet a demand."""
    (whole,) = wholes(table, [demand], rows)
    level = achieved(table, demand, rows, np.zeros(len(rows), np.int32), whole=whole)
    return bool(demand.model.bound.holds(level, demand.model.required).all())


def _all_hold(table: EncodedTable, kept: NDArray[np.bool_], demands: Sequence[Demand]) -> bool:
    rows = np.flatnonzero(kept)
    return len(rows) > 0 and all(rows_hold(table, rows, demand) for demand in demands)


def _restored(assignment: Assignment) -> Assignment:
    """Return the groups with one more, of the rows that were left out."""
    group = np.where(assignment.group < 0, assignment.n_groups, assignment.group)
    return Assignment(group.astype(np.int32), assignment.n_groups + 1)


def is_monotone(demand: Demand) -> bool:
    """Whether the union of two groups that meet a demand does, too."""
    return demand.spec.name != "m-uniqueness"


class _Merging:
    """Groups on their way to meeting the demands."""

    def __init__(
        self,
        table: EncodedTable,
        assignment: Assignment,
        k: int,
        *,
        demands: Sequence[Demand],
        compared: Sequence[Whole],
    ) -> None:
        self._group, self._k = assignment.group, k
        self._into = np.arange(assignment.n_groups)
        self._unions = Unions(table, assignment.group, assignment.n_groups)
        self._judges = [
            _judge(table, assignment, demand, whole)
            for demand, whole in zip(demands, compared, strict=True)
        ]
        by_rows = any(isinstance(judge, _ByRows) for judge in self._judges)
        self._near = _FEW if by_rows else _NEAR

    def merged(self, bad: NDArray[np.int64]) -> Assignment:
        """Merge the groups that fail, and return what comes of it, numbered in their order."""
        size = self._unions.boxes.size
        for a in bad.tolist():
            while size[a] and (gap := self._gaps(np.array([a]), None)[0]) > 0:
                b = self._partner(a, gap)
                self._unions.absorb(a, b)
                for judge in self._judges:
                    judge.absorb(a, b)
                self._into[self._into == b] = a
        kept = self._group >= 0
        group = np.full(len(self._group), -1, np.int32)
        alive, number = np.unique(self._into, return_inverse=True)
        group[kept] = number[self._group[kept]]
        return Assignment(group, len(alive))

    def _gaps(self, groups: NDArray[np.int64], joined: int | None) -> NDArray[np.float64]:
        size = self._unions.boxes.size
        rows = size[groups] + (0 if joined is None else size[joined])
        total: NDArray[np.float64] = np.maximum(self._k - rows, 0) / self._k
        for judge in self._judges:
            total += np.minimum(judge.gaps(groups, joined), _WIDEST)
        return total

    def _partner(self, a: int, gap: float) -> int:
        rises = self._unions.rises(a)
        there = np.flatnonzero(np.isfinite(rises))
        if len(there) > self._near:
            bound = np.partition(rises[there], self._near)[self._near]
            there = there[rises[there] <= bound]
        near = there[np.argsort(rises[there], kind="stable")][: self._near]
        gaps = self._gaps(near, a)
        if (gaps == 0).any():
            return int(near[(gaps == 0).argmax()])
        if (gaps >= gap).all():
            return int(near[0])
        closed = np.maximum(gap - gaps, 0.0) / np.maximum(rises[near], 1e-12)
        return int(near[closed.argmax()])


class _Judge(Protocol):
    """Keeps the values of the groups for one demand."""

    def gaps(self, groups: NDArray[np.int64], joined: int | None) -> NDArray[np.float64]:
        """Return how far each group, joined with another, is from the demand; 0 if it meets it."""
        ...

    def absorb(self, a: int, b: int) -> None:
        """Make group b a part of group a."""
        ...


def _judge(table: EncodedTable, assignment: Assignment, demand: Demand, whole: Whole) -> _Judge:
    if demand.among or demand.jointly or assignment.n_groups * len(whole.share) > _CELLS:
        return _ByRows(table, assignment, demand, whole)
    return _ByCounts(table, assignment, demand, whole)


class _ByCounts:
    """Keeps how often each value occurs in each group."""

    def __init__(
        self, table: EncodedTable, assignment: Assignment, demand: Demand, whole: Whole
    ) -> None:
        self._model, self._whole = demand.model, whole
        width, kept = len(whole.share), assignment.group >= 0
        keys = assignment.group[kept].astype(np.int64) * width
        keys += table.sensitive[kept, demand.column or 0]
        counts = np.bincount(keys, minlength=assignment.n_groups * width)
        self._counts = counts.reshape(-1, width)

    def gaps(self, groups: NDArray[np.int64], joined: int | None) -> NDArray[np.float64]:
        counts = self._counts[groups]
        if joined is not None:
            counts = counts + self._counts[joined]
        level = self._model.achieved(tally_of_counts(counts), self._whole)
        return self._model.bound.gap(level, self._model.required)

    def absorb(self, a: int, b: int) -> None:
        self._counts[a] += self._counts[b]


class _ByRows:
    """Keeps the rows of each group, for values too many to count or judged among others."""

    def __init__(
        self, table: EncodedTable, assignment: Assignment, demand: Demand, whole: Whole
    ) -> None:
        self._table, self._demand, self._whole = table, demand, whole
        order = np.argsort(assignment.group, kind="stable")[assignment.n_suppressed :]
        sizes = np.bincount(assignment.group[order], minlength=assignment.n_groups)
        self._members = np.split(order, np.cumsum(sizes)[:-1])

    def gaps(self, groups: NDArray[np.int64], joined: int | None) -> NDArray[np.float64]:
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
