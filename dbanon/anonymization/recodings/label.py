"""Nodes of a taxonomy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from dbanon.anonymization.recodings.groups import column_boxes, distinct_pairs, value_column
from dbanon.domain.assignment import LabelNode
from dbanon.domain.table import Structure, quote_identifier

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.domain.assignment import Assignment, EncodedColumn, ValueColumn
    from dbanon.domain.taxonomy import Taxonomy


@dataclass(frozen=True, slots=True)
class Label:
    """The label of the lowest common ancestor of the group's values.

    A value of a column that has a floor is published as its cell. A group of NULLs publishes NULL;
    one that mixes NULL and values publishes the root. ``prefix`` is the same, in the tree of the
    first characters of the values.
    """

    recoding: str = "label"
    accepts: ClassVar[frozenset[Structure]] = frozenset({Structure.TREE})

    def publish(self, column: EncodedColumn, assignment: Assignment) -> ValueColumn:
        """Return a label for every group; O(n), and O(height) for all distinct sets at once."""
        taxonomy = column.taxonomy
        if taxonomy is None:
            msg = f"column {quote_identifier(column.name)} has no taxonomy"
            raise ValueError(msg)
        boxes = column_boxes(column, assignment)
        lo, hi, place = distinct_pairs(boxes, column.size)
        nodes = np.zeros(len(lo), np.int64)
        known = np.flatnonzero(hi < column.size)
        nodes[known] = common_ancestors(taxonomy, lo[known], hi[known])
        if column.cells is not None:
            alone = known[lo[known] == hi[known]]
            nodes[alone] = column.cells[lo[alone]]
        labels = [
            None if low == column.size else taxonomy.labels[node]
            for low, node in zip(lo.tolist(), nodes.tolist(), strict=True)
        ]
        published = value_column(
            column, self.recoding, labels=labels, place=place, loss=boxes.loss, size=boxes.size
        )
        return replace(published, nodes=with_all_above(taxonomy, nodes[lo < column.size]))


def with_all_above(taxonomy: Taxonomy, nodes: NDArray[np.int64]) -> tuple[LabelNode, ...]:
    """Return some nodes and those above them, which say no more of the values than they do."""
    found = set(nodes.tolist())
    for node in nodes.tolist():
        above = int(taxonomy.parent[node])
        while above >= 0 and above not in found:
            found.add(above)
            above = int(taxonomy.parent[above])
    return tuple(
        LabelNode(
            taxonomy.labels[node],
            taxonomy.labels[above] if (above := int(taxonomy.parent[node])) >= 0 else None,
            int(taxonomy.depth[node]),
            _values_below(taxonomy, node),
        )
        for node in sorted(found)
    )


def _values_below(taxonomy: Taxonomy, node: int) -> int:
    first, last = int(taxonomy.leaf_lo[node]), int(taxonomy.leaf_hi[node])
    return 0 if int(taxonomy.leaves[first]) == node else last - first + 1


def common_ancestors(
    taxonomy: Taxonomy, lo: NDArray[np.int64], hi: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the lowest common ancestor of each pair of leaves lo <= hi; O(height) array steps."""
    nodes = taxonomy.leaves[lo].astype(np.int64)
    climbing = np.flatnonzero(taxonomy.leaf_hi[nodes] < hi)
    while climbing.size:
        nodes[climbing] = taxonomy.parent[nodes[climbing]]
        climbing = climbing[taxonomy.leaf_hi[nodes[climbing]] < hi[climbing]]
    return nodes
