"""Nodes of a taxonomy, sets of values, and suppression."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from dbanon.anonymization.encoding.bands import value_texts
from dbanon.anonymization.recodings.groups import column_boxes, distinct_pairs, value_column
from dbanon.domain.assignment import Assignment, EncodedColumn, LabelNode, Taxonomy, ValueColumn
from dbanon.domain.table import Structure, quote_identifier

if TYPE_CHECKING:
    from numpy.typing import NDArray


_PLAIN = re.compile(r"(?!(?i:null)\Z)[A-Za-z0-9_.:+-]+\Z")


@dataclass(frozen=True, slots=True)
class Label:
    """The label of the lowest common ancestor of the group's values.

    With a floor, a value is published as its cell. A group of NULLs publishes NULL; one that mixes
    NULL and values publishes the root. ``prefix`` uses the tree of the first characters of the
    values.
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
        published = value_column(column, boxes, recoding=self.recoding, labels=labels, place=place)
        return replace(published, nodes=with_all_above(taxonomy, nodes[lo < column.size]))


def with_all_above(taxonomy: Taxonomy, nodes: NDArray[np.int64]) -> tuple[LabelNode, ...]:
    """Return the labels of some nodes and their ancestors, which disclose nothing further.

    A label that recurs from a node to its child is one. A prefix node that is none of ``nodes`` and
    has only one value below it is omitted, because its existence depends on other values. O(nodes x
    height).
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
    """Return how many stored values are below a node, and True if the node is a value."""
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


@dataclass(frozen=True, slots=True)
class Suppress:
    """A star for every group."""

    accepts = frozenset(Structure)

    def publish(self, column: EncodedColumn, assignment: Assignment) -> ValueColumn:
        """Return one label of full loss."""
        return ValueColumn(
            name=column.name,
            recoding="suppress",
            kind=column.kind,
            index=np.zeros(assignment.n_groups, np.int32),
            labels=("*",),
            loss=np.ones(1),
        )


@dataclass(frozen=True, slots=True)
class CellSuppression:
    """The value if all rows of the group share it, otherwise NULL; the type stays.

    As in Aggarwal et al. (ICDT 2005) and Meyerson and Williams (PODS 2004).
    """

    accepts = frozenset(Structure)

    def publish(self, column: EncodedColumn, assignment: Assignment) -> ValueColumn:
        """Return a value or NULL for every group; O(n) and one text for each distinct value."""
        boxes = column_boxes(column, assignment)
        shown = np.where(boxes.lo == boxes.hi, boxes.lo, column.size)
        codes, place = np.unique(shown, return_inverse=True)
        known = codes[codes < column.size]
        labels = [
            *value_texts(column.kind, column.values[known]),
            *[None] * (len(codes) > len(known)),
        ]
        loss = np.where(boxes.lo == boxes.hi, 0.0, 1.0)
        return value_column(
            column, boxes, recoding="cell-suppression", labels=labels, place=place, loss=loss
        )


@dataclass(frozen=True, slots=True)
class ValueSet:
    """The distinct values of the group, as a PostgreSQL array literal; NULL is an element.

    Loss: the share of the column's values (including NULL) in the set, 0 for one value.
    """

    accepts = frozenset(Structure)

    def publish(self, column: EncodedColumn, assignment: Assignment) -> ValueColumn:
        """Return an array for every group; O(n log n) and one text for each distinct set."""
        published = assignment.group >= 0
        base = np.int64(column.size + 1)
        keys = np.unique(assignment.group[published] * base + column.codes[published])
        counts = np.bincount(keys // base, minlength=assignment.n_groups)
        codes = (keys % base).astype(np.int32)
        stops = np.cumsum(counts)
        place_of: dict[bytes, int] = {}
        place = np.empty(assignment.n_groups, np.int64)
        for g, stop in enumerate(stops.tolist()):
            members = codes[stop - counts[g] : stop].tobytes()
            place[g] = place_of.setdefault(members, len(place_of))
        elements = _elements(column, np.unique(codes))
        sets = [np.frombuffer(key, np.int32).tolist() for key in place_of]
        labels = ["{" + ",".join([elements[code] for code in members]) + "}" for members in sets]
        n_values = column.size + int((column.codes == column.size).any())
        loss = np.where(counts > 1, counts / n_values, 0.0)
        boxes = column_boxes(column, assignment)
        return value_column(column, boxes, recoding="set", labels=labels, place=place, loss=loss)


def _elements(column: EncodedColumn, codes: NDArray[np.int32]) -> dict[int, str]:
    values = codes[codes < column.size]
    texts = value_texts(column.kind, column.values[values])
    if column.values.dtype.kind not in "if":
        texts = [array_element(text) for text in texts]
    return dict(zip(values.tolist(), texts, strict=True)) | {column.size: "NULL"}


def array_element(text: str) -> str:
    """Quote a value for an array literal if PostgreSQL requires it."""
    if _PLAIN.match(text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
