"""One grid of a column for all groups: single-dimensional global recoding."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.encoding.tree_cells import ancestors_by_height
from dbanon.anonymization.loss.costs import box_losses, column_costs
from dbanon.anonymization.recodings.groups import column_boxes, value_column
from dbanon.anonymization.recodings.interval import Interval, IntervalText
from dbanon.anonymization.recodings.label import Label, common_ancestors, with_all_above
from dbanon.domain.assignment import Assignment
from dbanon.domain.policy import FULL_DOMAIN, GLOBAL
from dbanon.domain.table import Structure, quote_identifier

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from dbanon.anonymization.interfaces import Recoding
    from dbanon.domain.assignment import EncodedColumn, ValueColumn
    from dbanon.domain.taxonomy import Taxonomy

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


@dataclass(frozen=True, slots=True)
class FullDomain:
    """The ancestor at the lowest level at which every group is below one node.

    All values of the column are published at that level, the ancestors of height at most 1, 2 ..
    as lattice algorithms have them (Samarati, TKDE 2001). A group of NULLs publishes NULL; one that
    mixes NULL and values leaves only the root.
    """

    accepts = frozenset({Structure.TREE})

    def publish(self, column: EncodedColumn, assignment: Assignment) -> ValueColumn:
        """Return a label for every group; O(n + leaves x height)."""
        taxonomy = column.taxonomy
        if taxonomy is None:
            msg = f"column {quote_identifier(column.name)} has no taxonomy"
            raise ValueError(msg)
        boxes = column_boxes(column, assignment)
        known = np.flatnonzero(boxes.lo < column.size)
        node = np.zeros(len(boxes.lo), np.int64)
        node[known] = _level(column, taxonomy, boxes.lo[known], boxes.hi[known])
        lo, hi = boxes.lo.copy(), boxes.hi.copy()
        apart = known[hi[known] < column.size]  # of NULL and values the box says it already
        lo[apart], hi[apart] = taxonomy.leaf_lo[node[apart]], taxonomy.leaf_hi[node[apart]]
        loss = box_losses([column_costs(column)], lo[:, None], hi[:, None])[:, 0]
        distinct, place = np.unique(np.where(boxes.lo < column.size, node, -1), return_inverse=True)
        labels = [None if at < 0 else taxonomy.labels[at] for at in distinct.tolist()]
        published = value_column(
            column, FULL_DOMAIN, labels=labels, place=place, loss=loss, size=boxes.size
        )
        return replace(published, nodes=with_all_above(taxonomy, distinct[distinct >= 0]))


def _level(
    column: EncodedColumn, taxonomy: Taxonomy, lo: NDArray[np.int32], hi: NDArray[np.int32]
) -> NDArray[np.int64]:
    """Return the node of each group, of those with values, at the lowest level that will do."""
    least = taxonomy.leaves if column.cells is None else column.cells
    for nodes in (taxonomy.leaves.astype(np.int64), *ancestors_by_height(taxonomy)):
        is_coarse = (taxonomy.leaf_hi[nodes] >= taxonomy.leaf_hi[least]).all()
        reached = np.append(nodes, -1)
        if is_coarse and (reached[lo] == reached[hi]).all():
            return nodes[lo]
    return np.zeros(len(lo), np.int64)


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
