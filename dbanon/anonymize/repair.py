"""Making groups diverse, or close to the table, after the fact."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dbanon.anonymize.boxes import row_codes, weighted_costs
from dbanon.anonymize.emd import emd_equal, emd_ordered
from dbanon.anonymize.unions import Unions
from dbanon.domain.assignment import Assignment
from dbanon.domain.errors import Unsatisfiable
from dbanon.domain.table import quote_identifier

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dbanon.anonymize.interfaces import Requirement
    from dbanon.domain.assignment import EncodedTable

TOLERANCE = 1e-9
_CELLS = 1 << 20  # of the histograms that are looked at a time
_NEAR = 64  # partners that are looked at before all others are sorted

Histograms = NDArray[np.int64]
Holds = Callable[[Histograms], NDArray[np.bool_]]
"""Tells which classes meet a model, (g,), from how often each value occurs in each, (g, m)."""

_EMDS: Mapping[str, Callable[[Histograms, Histograms], NDArray[np.float64]]] = {
    "equal": emd_equal,
    "ordered": emd_ordered,
}


def repair(table: EncodedTable, assignment: Assignment, requirement: Requirement) -> Assignment:
    """Merge every group with too few distinct sensitive values into the least costly neighbour.

    The cost of a merge is the rise of the total (rows * certainty penalty of the box); a partner
    that makes the group diverse goes before any that does not. Suppressed rows stay so. Raises
    Unsatisfiable when the others as a whole are not diverse. O(groups d) for each merge.
    """
    from dbanon.kernels.repair import merge_groups

    if requirement.l <= 1:
        return assignment
    for i, counts in enumerate(_histograms(table, assignment.group >= 0)):
        if (counts > 0).sum() < requirement.l:
            raise _unsatisfiable(table, i)
    kept = np.flatnonzero(assignment.group >= 0)
    merged, n_groups = merge_groups(
        row_codes(table)[kept],
        assignment.group[kept],
        assignment.n_groups,
        *weighted_costs(table),
        requirement.l,
    )
    group = np.full(table.n_rows, -1, np.int32)
    group[kept] = merged
    return Assignment(group, int(n_groups))


def repair_closeness(
    table: EncodedTable,
    assignment: Assignment,
    requirement: Requirement,
    *,
    t: float,
    ground: str = "ordered",
) -> Assignment:
    """Merge groups until the distribution of each sensitive column is t-close to the table's.

    ground: how far apart two values are, ``equal`` or ``ordered`` (Li et al., ICDE 2007). The
    table is the rows that are not suppressed, so one group of all of them is close for any t.
    """
    holds = [
        partial(_is_close, whole=whole, t=t, emd=_EMDS[ground])
        for whole in _histograms(table, assignment.group >= 0)
    ]
    return repair_histograms(table, assignment, requirement, holds=holds)


def _is_close(
    counts: Histograms,
    *,
    whole: Histograms,
    t: float,
    emd: Callable[[Histograms, Histograms], NDArray[np.float64]],
) -> NDArray[np.bool_]:
    return emd(counts, whole) <= t + TOLERANCE


def repair_histograms(
    table: EncodedTable,
    assignment: Assignment,
    requirement: Requirement,
    *,
    holds: Sequence[Holds],
) -> Assignment:
    """Merge groups until each meets the model of each sensitive column, k rows and l values.

    holds: what to meet, one for each sensitive column, given counts of all values of the whole
    table. It must be monotone: the union of two classes that meet it does, too. As in ``repair``,
    the partner that costs least among those that make the group meet everything is taken, or else
    the one that costs least. If not even all rows as one group meet it, no partition does, and
    the lowest rows of the most frequent value are left out, within the budget, until they do.
    Raises Unsatisfiable when that is not enough. O(groups d + tried partners * values) for each
    merge.
    """
    models = [partial(_is_diverse_and, l=requirement.l, holds=model) for model in holds]
    if table.n_rows - assignment.n_suppressed < max(requirement.k, 1):
        raise _unsatisfiable(table, None)
    group = _thinned(table, assignment.group, requirement, models=models)
    kept = group >= 0
    group[kept] = np.unique(group[kept], return_inverse=True)[1]
    merging = _Merging(table, group, requirement.k, models=models)
    return Assignment(*merging.merged())


def _histograms(table: EncodedTable, kept: NDArray[np.bool_]) -> list[Histograms]:
    """Return for each sensitive column how often each value of the table occurs in some rows."""
    return [
        np.bincount(values[kept], minlength=int(values.max()) + 1) for values in table.sensitive.T
    ]


def _is_diverse_and(counts: Histograms, *, l: int, holds: Holds) -> NDArray[np.bool_]:
    meets: NDArray[np.bool_] = holds(counts) & ((counts > 0).sum(axis=1) >= l)
    return meets


def _unsatisfiable(table: EncodedTable, column: int | None) -> Unsatisfiable:
    msg = "no partition of these rows meets what is asked of groups"
    if column is not None:
        name = quote_identifier(table.sensitive_names[column])
        msg = f"no partition of these rows meets what is asked of sensitive column {name}"
    return Unsatisfiable(msg, hint="ask for less, or allow more rows to be left out")


def _thinned(
    table: EncodedTable,
    before: NDArray[np.int32],
    requirement: Requirement,
    *,
    models: Sequence[Holds],
) -> NDArray[np.int32]:
    """Return the groups without the rows that keep the table as a whole from meeting the models."""
    group = before.copy()
    n_gone = int((group < 0).sum())
    budget = min(requirement.budget(table.n_rows), table.n_rows - requirement.k) - n_gone
    counts = _histograms(table, group >= 0)
    rows: dict[tuple[int, int], Iterator[int]] = {}
    while True:
        violated = [i for i, model in enumerate(models) if not model(counts[i][None])[0]]
        if not violated:
            return group
        if budget <= 0:
            raise _unsatisfiable(table, violated[0])
        i, value = violated[0], int(counts[violated[0]].argmax())
        if (i, value) not in rows:
            rows[i, value] = iter(np.flatnonzero(table.sensitive[:, i] == value).tolist())
        row = next(row for row in rows[i, value] if group[row] >= 0)
        group[row] = -1
        budget -= 1
        for column, code in zip(counts, table.sensitive[row], strict=True):
            column[code] -= 1


class _Merging:
    """Groups on their way to meeting the models."""

    def __init__(
        self, table: EncodedTable, group: NDArray[np.int32], k: int, *, models: Sequence[Holds]
    ) -> None:
        order = np.argsort(group, kind="stable")
        order = order[np.searchsorted(group[order], 0) :]
        sizes = np.bincount(group[order])
        self._members = np.split(order, np.cumsum(sizes)[:-1])
        self._unions = Unions(table, group, len(sizes))
        self._table, self._k, self._models = table, k, models
        self._n_values = [int(values.max()) + 1 for values in table.sensitive.T]
        self._at_a_time = max(_CELLS // max(self._n_values, default=1), 1)

    def merged(self) -> tuple[NDArray[np.int32], int]:
        """Return the groups after all merges, numbered in their order, and how many there are."""
        every = np.arange(len(self._members))
        bad = [chunk[~self._meets(chunk)] for chunk in _chunks(every, self._at_a_time)]
        for a in np.concatenate(bad).tolist():
            while self._members[a].size and not self._meets(np.array([a]))[0]:
                self._absorb(a, self._partner(a))
        group = np.full(self._table.n_rows, -1, np.int32)
        alive = [rows for rows in self._members if rows.size]
        for number, rows in enumerate(alive):
            group[rows] = number
        return group, len(alive)

    def _meets(self, groups: NDArray[np.int64], *, joined: int | None = None) -> NDArray[np.bool_]:
        """Return which groups, each joined with another, meet everything."""
        size = self._unions.boxes.size
        meets: NDArray[np.bool_] = size[groups] + (0 if joined is None else size[joined]) >= self._k
        for i, model in enumerate(self._models):
            counts = self._counts(groups, i)
            if joined is not None:
                counts += self._counts(np.array([joined]), i)
            meets &= model(counts)
        return meets

    def _counts(self, groups: NDArray[np.int64], column: int) -> Histograms:
        members = [self._members[a] for a in groups.tolist()]
        which = np.repeat(np.arange(len(members)), [len(rows) for rows in members])
        n_values = self._n_values[column]
        values = which * n_values + self._table.sensitive[np.concatenate(members), column]
        return np.bincount(values, minlength=len(members) * n_values).reshape(-1, n_values)

    def _partner(self, a: int) -> int:
        rises = self._unions.rises(a)
        for some in _by_rise(rises):
            for near in _chunks(some, self._at_a_time):
                meets = self._meets(near, joined=a)
                if meets.any():
                    return int(near[meets.argmax()])
        return int(rises.argmin())

    def _absorb(self, a: int, b: int) -> None:
        self._unions.absorb(a, b)
        self._members[a] = np.concatenate([self._members[a], self._members[b]])
        self._members[b] = self._members[b][:0]


def _by_rise(rises: NDArray[np.float64]) -> Iterator[NDArray[np.int64]]:
    """Yield the groups by rising cost, ties by number: a few first, as they mostly suffice."""
    there = np.flatnonzero(np.isfinite(rises))
    if len(there) > _NEAR:
        bound = np.partition(rises, _NEAR)[_NEAR]
        near = there[rises[there] <= bound]
        yield near[np.argsort(rises[near], kind="stable")]
        there = there[rises[there] > bound]
    yield there[np.argsort(rises[there], kind="stable")]


def _chunks(groups: NDArray[np.int64], length: int) -> Iterator[NDArray[np.int64]]:
    for start in range(0, len(groups), length):
        yield groups[start : start + length]
