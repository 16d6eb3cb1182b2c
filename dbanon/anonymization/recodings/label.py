"""Nodes of a taxonomy."""

from __future__ import annotations

from collections import Counter
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
    """Return the labels of some nodes and those above them, which disclose no more of the values.

    A label that recurs from a node to its child is one. The node of all that begins with a value is
    left out where it is none of ``nodes`` and has nothing but that value below it here: whether
    there is one depends on values that are not among them. O(nodes x height).
    """
    labels, parent = taxonomy.labels, taxonomy.parent
    place: dict[str, int] = {}
    above: dict[str, str | None] = {}
    for node in nodes.tolist():
        while node >= 0:
            label, upper = labels[node], int(parent[node])
            if upper < 0 or labels[upper] != label:
                place[label] = node
                above[label] = labels[upper] if upper >= 0 else None
            node = upper  # noqa: PLW2901
    published, below = {labels[node] for node in nodes.tolist()}, Counter(above.values())
    if taxonomy.added is not None and taxonomy.added.all():
        kept = published | {labels[0]}
        for label in published:
            begins = f"{label}*"
            if above[label] == begins and below[begins] == 1 and begins not in kept:
                above[label] = above.pop(begins)
    level: dict[str | None, int] = {None: -1}
    found = []
    for label in sorted(above, key=place.__getitem__):
        level[label] = level[above[label]] + 1
        listed, is_value = _listed(taxonomy, place[label])
        found.append(LabelNode(label, above[label], level[label], listed, is_value))
    return tuple(found)


def _listed(taxonomy: Taxonomy, node: int) -> tuple[int, bool]:
    """Return how many values of a stored taxonomy are below a node, and whether it is a value."""
    first, last = int(taxonomy.leaf_lo[node]), int(taxonomy.leaf_hi[node])
    added = 0 if taxonomy.added is None else int(taxonomy.added[first : last + 1].sum())
    is_value = taxonomy.labels[taxonomy.leaves[first]] == taxonomy.labels[node]
    return last - first + 1 - added, is_value


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
