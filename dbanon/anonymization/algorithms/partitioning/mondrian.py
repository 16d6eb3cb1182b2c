"""Mondrian (LeFevre, DeWitt, Ramakrishnan, ICDE 2006)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dbanon.anonymization.adjusting.cutting import cut

if TYPE_CHECKING:
    from dbanon.anonymization.interfaces import Requirement
    from dbanon.domain.assignment import Assignment, EncodedTable


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
