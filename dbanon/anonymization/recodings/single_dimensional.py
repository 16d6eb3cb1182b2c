"""One grid of a column for all groups: single-dimensional global recoding."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.recodings.groups import column_boxes
from dbanon.anonymization.recodings.interval import Interval, IntervalText
from dbanon.anonymization.recodings.label import Label, common_ancestors
from dbanon.domain.assignment import Assignment
from dbanon.domain.policy import GLOBAL
from dbanon.domain.table import Structure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from dbanon.anonymization.interfaces import Recoding
    from dbanon.domain.assignment import EncodedColumn, ValueColumn

_PUBLISHED: Mapping[Structure, Recoding] = {
    Structure.LINE: Interval(),
    Structure.ORDER: IntervalText(),
    Structure.TREE: Label(),
}


@dataclass(frozen=True, slots=True)
class Global:
    """The cell of the finest grid of which every group is within one cell.

    Equal values are published alike, whatever the group (LeFevre et al., SIGMOD 2005,
    single-dimensional recoding): groups that overlap in the column share a range of an order, and
    groups of a tree a node of one cut through it.
    """

    accepts = frozenset(Structure)

    def publish(self, column: EncodedColumn, assignment: Assignment) -> ValueColumn:
        """Return a cell for every group; O(n + g log g)."""
        cell = _cells(*_ranges(column, assignment))
        group = np.append(cell, -1).astype(np.int32)[assignment.group]
        merged = Assignment(group, int(cell.max(initial=-1)) + 1)
        published = _PUBLISHED[column.structure].publish(column, merged)
        return replace(published, recoding=GLOBAL, index=published.index[cell])


def _ranges(
    column: EncodedColumn, assignment: Assignment
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the least and the greatest code of each group, of a tree those below its ancestor."""
    boxes = column_boxes(column, assignment)
    lo, hi = boxes.lo.copy(), boxes.hi.copy()
    if column.structure is Structure.TREE and column.taxonomy is not None:
        known = np.flatnonzero(hi < column.size)
        leaves = (lo[known].astype(np.int64), hi[known].astype(np.int64))
        nodes = common_ancestors(column.taxonomy, *leaves)
        lo[known], hi[known] = column.taxonomy.leaf_lo[nodes], column.taxonomy.leaf_hi[nodes]
        lo[(lo < column.size) & (hi == column.size)] = 0  # published as the root
    return lo, hi


def _cells(lo: NDArray[np.int32], hi: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return the cell of each range, of which those that overlap share one; O(g log g)."""
    order = np.argsort(lo, kind="stable")
    reached = np.maximum.accumulate(hi[order])
    begins = np.ones(len(lo), bool)
    begins[1:] = lo[order][1:] > reached[:-1]
    cell = np.empty(len(lo), np.int64)
    cell[order] = np.cumsum(begins) - 1
    return cell
