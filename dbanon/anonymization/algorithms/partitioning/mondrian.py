"""Cuts of the table: Mondrian (LeFevre, DeWitt, Ramakrishnan, ICDE 2006).

And utility-based local recoding, bottom-up and top-down (Xu et al., KDD 2006).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from dbanon.anonymization.adjusting.cutting import cut
from dbanon.anonymization.adjusting.repair import repair
from dbanon.anonymization.interfaces import require_at_most
from dbanon.anonymization.loss.costs import weighted_costs
from dbanon.domain.assignment import Assignment
from dbanon.domain.errors import PolicyError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from dbanon.anonymization.interfaces import Requirement
    from dbanon.anonymization.loss.costs import BoxCosts
    from dbanon.domain.assignment import EncodedTable
    from dbanon.kernels.arrays import Int32s, Int64s


@dataclass(frozen=True, slots=True)
class Mondrian:
    """Strict multidimensional partitioning: equal rows always share a group.

    Departs from the paper in the choice of the cut. The paper takes the widest column and its
    median; here every allowable cut is scored by the drop of the total cost (rows * certainty
    penalty of the box) over the geometric mean of the sizes of its two sides, and the best is
    taken; ties go to the lowest column, then to the lowest value. A cut is allowable when both
    sides meet the requirement; a column of more than 64 values in a box is cut on a grid of 64
    steps, refined where the grid allows no cut. Taxonomies are cut between children of the lowest
    common ancestor only, the children in falling number of rows; NULL is cut off first.
    """

    def assign(self, table: EncodedTable, requirement: Requirement, *, seed: int) -> Assignment:
        """Cut the table; O(n d^2 log(n / k)) for balanced cuts."""
        return cut(table, requirement, relaxed=False)


@dataclass(frozen=True, slots=True)
class RelaxedMondrian:
    """Relaxed partitioning: where no strict cut is left, equal values may part.

    A box without an allowable cut between values is divided evenly at the median of its costliest
    column, the rows at the median shared out, as long as both halves are diverse. Without a
    diversity requirement every group that costs anything has fewer than 2k rows. The paper halves
    every box like this; cutting between values first keeps more of them exact.
    """

    def assign(self, table: EncodedTable, requirement: Requirement, *, seed: int) -> Assignment:
        """Cut the table; O(n d^2 log(n / k)) for balanced cuts."""
        return cut(table, requirement, relaxed=True)


@dataclass(frozen=True, slots=True)
class BottomUp:
    """The bottom-up algorithm (section 4.1): small groups merge with their nearest ones.

    Every round merges each group of fewer than k rows with the group whose union with it has the
    least weighted certainty penalty, and splits what has 2k rows or more, so that the smallest
    group doubles and ceil(log2 k) rounds do. Groups have k to 2k - 1 rows for l = 1; those that
    lack distinct sensitive values are merged afterwards. The paper leaves the split open; here a
    group is halved at its costliest column until each part has fewer than 2k rows. Groups are in
    the order of their first rows, which is the order of merging, and ties go to the lower.
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

    A part has two seeds, found in at most ``rounds`` steps from a random row to the row whose
    union with it has the greatest weighted certainty penalty; each other row joins one of the two
    sides. A side may fall short of k rows as long as the other does not; such groups then borrow
    rows or merge, whichever raises the penalty less. Groups have k to 2k - 1 rows for l = 1; those
    that lack distinct sensitive values are merged afterwards. Departs from the paper in three
    ways: a row joins the side whose total it raises less, not the side of the smaller total, which
    would even the totals out; one shuffle of the rows makes all random choices; merged groups of
    2k rows or more are split at their costliest column, and at the end. Ties go to the lower row,
    the smaller side, the earlier group, and to merging.
    """

    rounds: int = 6

    MAX_ROWS: ClassVar[int] = 100_000

    def __post_init__(self) -> None:
        if self.rounds < 1:
            raise PolicyError("top-down: rounds is at least 1", hint="leave it out to use 6")

    def assign(self, table: EncodedTable, requirement: Requirement, *, seed: int) -> Assignment:
        """Group the rows; O(n d log n) to divide evenly, O(n^2 d / k) to make up for shortfalls."""
        from dbanon.kernels.boxes.top_down import divide
        from dbanon.kernels.boxes.undersized_groups import make_up

        require_at_most(self.MAX_ROWS, table, algorithm="top-down")
        rows, costs = table.all_codes, weighted_costs(table)
        order = np.random.default_rng(seed).permutation(table.n_rows)
        group, n_groups = divide(rows, order, *costs, requirement.k, self.rounds)
        group = make_up(rows, group, n_groups, *costs, requirement.k)
        return repair(table, split(table, group, k=requirement.k), requirement)


def split(table: EncodedTable, group: NDArray[np.integer], *, k: int) -> Assignment:
    """Split every group of m >= 2k rows into m // k of k to 2k - 1, and number all by first row.

    group: (n,) numbers from 0 on, gaps allowed. A group is sorted by its costliest column, the
    values' codes in order and the lower row first where they are equal, and cut so that both
    sides have their share of the groups to come; each side is then treated alike. Ties go to the
    lower column. O(n log n + n d log(n / k)) for one group of all rows.
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
