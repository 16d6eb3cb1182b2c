"""Bins of a column that show nothing which the release does not show.

Of categories these are published labels, or nodes above such, at one level of their tree; of
numbers, dates and times a grid of round steps over what is published.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from dbanon.anonymization.utility.readings import Reading
    from dbanon.domain.taxonomy import Taxonomy

    Codes = NDArray[np.int64]

MOST = 24
"""The most bins of a column."""

OTHERS = "other values"
NULL = "NULL"


@dataclass(frozen=True, eq=False, slots=True)
class Bins:
    """Sets of codes. names: of each; of_code: (n_codes,) the bin of each code, -1 for none."""

    names: tuple[str, ...]
    of_code: Codes

    def of_source(self, reading: Reading) -> NDArray[np.float64]:
        """Return how many rows of the source are in each."""
        inside, of_codes = self.of_code >= 0, reading.of_codes
        rows = np.bincount(self.of_code[inside], of_codes[inside], minlength=len(self.names))
        return np.asarray(rows, np.float64)

    def places(self, reading: Reading) -> Codes:
        """Return the bin of each row of the source, -1 for none."""
        return self.of_code[reading.codes]

    def of_release(self, reading: Reading) -> NDArray[np.float64]:
        """Return how many published rows are in each, as readers take them."""
        return self.shares(reading).T @ reading.of_labels

    def shares(self, reading: Reading) -> NDArray[np.float64]:
        """Return how much of each label is in each bin, (n_labels, n_bins)."""
        columns = [reading.covered(self.of_code == place) for place in range(len(self.names))]
        return np.array(columns).reshape(len(self.names), reading.n_labels).T


def categories_of(reading: Reading) -> Bins:
    """Return the bins of values that have no places on a line; the last has all others, if any."""
    used = reading.of_labels > 0.0
    shown = {text for text, seen in zip(reading.texts, used, strict=True) if seen and text}
    if reading.members is not None:  # whose elements are texts of their own
        shown |= {name for name in map(reading.names.__getitem__, reading.members) if name}
    node_of, names, allowed = _nodes(reading, shown)
    kept = _most_frequent(reading, node_of, allowed)
    labels = [names[node] or "" for node in kept.tolist()]
    shows_null = reading.null >= 0 and bool(used[reading.covers_alone(reading.null)].any())
    rest = len(labels) + shows_null
    place = np.full(len(names) + 1, rest, np.int64)
    place[kept] = np.arange(len(kept))
    of_code = np.where(node_of < 0, rest, place[node_of])
    if shows_null:
        of_code[reading.null] = len(labels)
        labels.append(NULL)
    if (of_code == rest).any():
        labels.append(OTHERS)
    return Bins(tuple(labels), of_code)


def _nodes(
    reading: Reading, shown: set[str]
) -> tuple[Codes, Sequence[str | None], NDArray[np.bool_]]:
    """Return the node of each code that may be a bin, -1 for none; their names; which are shown."""
    if reading.tree is None or reading.leaf is None:
        names = reading.names
        seen = _ends_of_ranges(reading) | shown if reading.ordered else shown
        allowed = np.array([name is not None and name in seen for name in names], np.bool_)
        codes = np.arange(reading.n_codes)
        return np.where(codes == reading.null, -1, codes), names, allowed
    tree, leaf = reading.tree, reading.leaf
    allowed = _shown_nodes(tree, shown)
    level = _level(reading, tree, allowed)
    nodes = np.append(nodes_at(tree, level), -1)
    return nodes[leaf], tree.labels, allowed


def _ends_of_ranges(reading: Reading) -> set[str]:
    """Return the values at the ends of ranges of an order, which their labels show."""
    names, found = reading.names, set()
    for text, first, last in zip(reading.texts, reading.first, reading.last, strict=True):
        low, high = names[first], names[last]
        if text is not None and low is not None and high is not None and low in text:
            found |= {low, high} if text == f"[{low}, {high}]" else set()
    return {name for name in found if name is not None}


def _shown_nodes(tree: Taxonomy, shown: set[str]) -> NDArray[np.bool_]:
    """Return which nodes are published or above one that is."""
    allowed = np.array([label in shown for label in tree.labels], np.bool_)
    for depth in range(tree.height, 0, -1):
        nodes = np.flatnonzero(allowed & (tree.depth == depth))
        allowed[tree.parent[nodes]] = True
    return allowed


def nodes_at(tree: Taxonomy, level: int) -> Codes:
    """Return the ancestor of each leaf that is so many steps below the root, or the leaf."""
    nodes = tree.leaves.astype(np.int64)
    while (deep := tree.depth[nodes] > level).any():
        nodes = np.where(deep, tree.parent[nodes], nodes)
    return nodes


def _level(reading: Reading, tree: Taxonomy, allowed: NDArray[np.bool_]) -> int:
    """Return the deepest level with few enough bins, at which most published rows have labels."""
    depth_of = dict(zip(reversed(tree.labels), reversed(tree.depth.tolist()), strict=True))
    leaves = set(tree.leaf_labels)
    if reading.members is not None:  # of leaves
        leaves = {text for text in reading.texts if text is not None}
    depth = [
        tree.height if text in leaves else depth_of.get(text or "", 0) for text in reading.texts
    ]
    rows = reading.of_labels
    for level in range(tree.height, 1, -1):
        fine = rows[np.array(depth) >= level].sum()
        bins = np.unique(nodes_at(tree, level))
        if 2 * fine > rows.sum() and allowed[bins].sum() < MOST:
            return level
    return min(tree.height, 1)


def _most_frequent(reading: Reading, node_of: Codes, allowed: NDArray[np.bool_]) -> Codes:
    """Return the nodes that become bins: of too many that are shown those with the most rows."""
    nodes = np.unique(node_of[node_of >= 0])
    nodes = nodes[allowed[nodes]]
    if len(nodes) < MOST:
        return nodes
    alone = reading.first == reading.last
    of_code = np.zeros(reading.n_codes)
    np.add.at(of_code, reading.first[alone], reading.of_labels[alone])
    known = node_of >= 0
    rows = np.bincount(node_of[known], weights=of_code[known], minlength=len(allowed))
    most = np.argsort(-rows[nodes], kind="stable")[: MOST - 1]
    return np.sort(nodes[most])
