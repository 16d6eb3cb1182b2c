"""Cuts of the table: Mondrian (LeFevre, DeWitt, Ramakrishnan, ICDE 2006).

Also utility-based local recoding, bottom-up and top-down (Xu et al., KDD 2006).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from dbanon.anonymization.adjusting.repair import repair
from dbanon.anonymization.adjusting.resize import cut
from dbanon.anonymization.interfaces import Requirement, require_at_most
from dbanon.anonymization.loss.costs import BoxCosts, weighted_costs
from dbanon.domain.assignment import Assignment, EncodedTable
from dbanon.domain.errors import PolicyError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from dbanon.kernels.layout import Int32s, Int64s


@dataclass(frozen=True, slots=True)
class Mondrian:
    """Strict multidimensional partitioning: equal rows always share a group.

    The paper cuts the widest column at its median. Here the best of all allowable cuts is taken, by
    the drop of the total cost (rows * certainty penalty of the box) over the geometric mean of the
    sizes of both sides; ties: lowest column, lowest value. A cut is allowable if both sides meet
    the requirement. A column of more than 64 values in a box is cut on a grid of 64 steps, refined
    if none is allowable. Taxonomies are cut only between children of the lowest common ancestor, in
    descending number of rows; NULL is cut off first.
    """

    def assign(self, table: EncodedTable, requirement: Requirement, *, seed: int) -> Assignment:
        """Cut the table; O(n d^2 log(n / k)) for balanced cuts."""
        return cut(table, requirement, relaxed=False)


@dataclass(frozen=True, slots=True)
class RelaxedMondrian:
    """Relaxed partitioning: without a strict cut, equal values may be separated.

    A box without an allowable cut between values is halved at the median of its costliest column,
    rows at the median divided, if both halves are diverse. For l = 1, every group of nonzero cost
    has fewer than 2k rows. The paper halves every box this way; cutting between values first keeps
    more exact.
    """

    def assign(self, table: EncodedTable, requirement: Requirement, *, seed: int) -> Assignment:
        """Cut the table; O(n d^2 log(n / k)) for balanced cuts."""
        return cut(table, requirement, relaxed=True)


@dataclass(frozen=True, slots=True)
class BottomUp:
    """The bottom-up algorithm (section 4.1): small groups merge with their nearest ones.

    Each round merges every group of fewer than k rows with the group of least weighted certainty
    penalty of the union, and splits groups of 2k rows or more, so ceil(log2 k) rounds suffice.
    Groups have k to 2k - 1 rows for l = 1 and are merged afterwards for l > 1. The paper leaves the
    split open; here a group is halved at its costliest column. Groups are merged in the order of
    their first rows; ties go to the lower.
    """

    MAX_ROWS: ClassVar[int] = 100_000

    def assign(self, table: EncodedTable, requirement: Requirement, *, seed: int) -> Assignment:
        """Group the rows; O(n^2 d log k)."""
        from dbanon.kernels.boxes.merges import merge_small

        require_at_most(self.MAX_ROWS, table, algorithm="bottom-up")
        codes, costs = table.codes, weighted_costs(table)
        found = Assignment(np.arange(table.n_rows, dtype=np.int32), table.n_rows)
        while found.n_groups > 1 and np.bincount(found.group).min() < requirement.k:
            group = merge_small(codes, found.group, found.n_groups, *costs, requirement.k)
            found = split(table, group, k=requirement.k)
        return repair(table, found, requirement)


@dataclass(frozen=True, slots=True)
class TopDown:
    """The top-down algorithm (section 4.2): parts are divided at their most distant rows.

    At most ``rounds`` steps find two seeds, each from a row to the row with the greatest weighted
    certainty penalty of the union; every other row joins one side. If one side falls short of k,
    its group borrows rows or merges, at least penalty. Groups have k to 2k - 1 rows for l = 1 and
    are merged afterwards for l > 1.

    Unlike the paper, a row joins the side whose total it raises less (the smaller total would
    balance them); one shuffle of the rows makes all random choices; groups of 2k rows or more are
    split at their costliest column, and at the end. Ties: lower row, smaller side, earlier group,
    merging.
    """

    rounds: int = 6

    MAX_ROWS: ClassVar[int] = 100_000

    def __post_init__(self) -> None:
        if self.rounds < 1:
            raise PolicyError("top-down: rounds is at least 1", hint="leave it out to use 6")

    def assign(self, table: EncodedTable, requirement: Requirement, *, seed: int) -> Assignment:
        """Group the rows; O(n d log n) to divide evenly, O(n^2 d / k) to fill small groups."""
        from dbanon.kernels.boxes.top_down import divide, make_up

        require_at_most(self.MAX_ROWS, table, algorithm="top-down")
        rows, costs = table.all_codes, weighted_costs(table)
        order = np.random.default_rng(seed).permutation(table.n_rows)
        group, n_groups = divide(rows, order, *costs, requirement.k, self.rounds)
        group = make_up(rows, group, n_groups, *costs, requirement.k)
        return repair(table, split(table, group, k=requirement.k), requirement)


def split(table: EncodedTable, group: NDArray[np.integer], *, k: int) -> Assignment:
    """Split every group of m >= 2k rows into m // k of k to 2k - 1, numbered by first row.

    group: (n,) numbers from 0, gaps allowed. A group is sorted by its costliest column (ties: lower
    column, lower row) and cut in proportion to the groups of each side, recursively. O(n log n + n
    d log(n / k)) for one group of all rows.
    """
    codes = table.codes
    costs = weighted_costs(table)
    parts = group.astype(np.int32)
    new = len(group)
    size = np.bincount(group)
    for large in np.flatnonzero(size >= 2 * k):
        for rows in _parts(codes, np.flatnonzero(group == large), costs, k=k):
            parts[rows] = new
            new += 1
    _, first, index = np.unique(parts, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first)).astype(np.int32)
    return Assignment(rank[index], len(first))


def _parts(codes: Int32s, rows: Int64s, costs: BoxCosts, *, k: int) -> Iterator[Int64s]:
    from dbanon.kernels.boxes.costs import box_costs

    waiting = [rows]
    while waiting:
        rows = waiting.pop()
        count = len(rows) // k
        if count <= 1:
            yield rows
            continue
        members = codes[rows]
        lo, hi = members.min(axis=0, keepdims=True), members.max(axis=0, keepdims=True)
        costliest = int(box_costs(*costs, lo, hi)[0].argmax())
        rows = rows[np.argsort(members[:, costliest], kind="stable")]
        cut = len(rows) * (count // 2) // count
        waiting += [np.sort(rows[cut:]), np.sort(rows[:cut])]
