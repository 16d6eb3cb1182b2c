"""Cells of a taxonomy: nodes below which nothing is published."""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING

import numpy as np

from dbanon.domain.errors import PolicyError
from dbanon.domain.table import quote_identifier
from dbanon.domain.taxonomy import ROOT_LABEL, Taxonomy, height_shares

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from numpy.typing import NDArray

    from dbanon.domain.policy import ColumnRule


def cells_of_level(taxonomy: Taxonomy, rule: ColumnRule) -> NDArray[np.int32]:
    """Return the cell of each leaf, ``at_least`` levels above the deepest leaves.

    Shallower branches keep their leaves. Raises PolicyError if only the root is left.
    """
    level = level_of(taxonomy, rule)
    nodes = taxonomy.leaves.copy()
    while (deep := taxonomy.depth[nodes] > taxonomy.height - level).any():
        nodes = np.where(deep, taxonomy.parent[nodes], nodes)
    return nodes


def ancestors_by_height(taxonomy: Taxonomy) -> Iterator[NDArray[np.int64]]:
    """Yield the highest ancestor of each leaf among those of height at most 1, 2 ..."""
    height = np.rint(height_shares(taxonomy) * taxonomy.height).astype(np.int64)
    node = taxonomy.leaves.astype(np.int64)
    for limit in range(1, taxonomy.height + 1):
        # heights rise on the way to the root, so that one step at a time misses none
        above = np.maximum(taxonomy.parent[node], 0)
        while (rising := (height[above] <= limit) & (node > 0)).any():
            node = np.where(rising, above, node)
            above = np.maximum(taxonomy.parent[node], 0)
        yield node


def level_of(taxonomy: Taxonomy, rule: ColumnRule) -> int:
    """Return ``at_least`` in levels of a taxonomy; raises PolicyError if only the root is left."""
    level = rule.at_least
    if not isinstance(level, int) or level >= taxonomy.height:
        msg = (
            f"column {quote_identifier(rule.column)}: at_least must be a number of levels from 1 to"
            f" {taxonomy.height - 1} above the leaves of taxonomy {taxonomy.name!r}"
        )
        raise PolicyError(msg, hint='to publish nothing of the column: recoding = "suppress"')
    return level


def prefix_tree(
    name: str,
    texts: Sequence[str],
    *,
    length: int,
    pooled: Collection[str] = (),
    joined: bool = False,
) -> tuple[Taxonomy, NDArray[np.int32]]:
    """Return a tree of the first 1, 2 .. ``length`` characters of some texts, and its cells.

    A text of at most ``length`` characters is its own cell; all that begin with one of ``pooled``
    are one cell below the root, labelled with zeros. A label has one star, so that no text affects
    the labels of others. joined: a text and its continuations share a node, which would disclose
    the length of a cell's text. O(m log m + m * length).
    """
    begun: set[str] = set()
    if joined:
        begun.update(text[:n] for text in texts for n in range(1, min(len(text), length + 1)))

    def above(text: str) -> tuple[str, ...]:
        """Return the labels of the nodes from below the root to above a text."""
        if text[:length] in pooled:
            return (f"{'0' * length}*",)
        deepest = min(length, len(text) - (text not in begun))  # 1301 and 13012 are below 1301*
        return tuple(f"{text[:n]}*" for n in range(1, deepest + 1))

    labels, parent, depth = [ROOT_LABEL], [-1], [0]
    leaves: list[int] = []
    path: list[int] = [0]  # the nodes above the last leaf
    before: tuple[str, ...] = ()
    for upper, text in sorted((above(text), text) for text in texts):
        pairs = zip(before, upper, strict=False)
        shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        del path[shared + 1 :]
        for label in (*upper[shared:], text):
            labels.append(label)
            parent.append(path[-1])
            depth.append(len(path))
            path.append(len(labels) - 1)
        leaves.append(path.pop())
        before = upper
    taxonomy = numbered(name, labels, parent=parent, depth=depth, leaves=leaves)
    taxonomy = replace(taxonomy, added=np.ones(len(leaves), np.bool_))
    alone = [len(labels[leaf]) <= length and labels[leaf] not in pooled for leaf in leaves]
    nodes = taxonomy.leaves
    return taxonomy, np.where(np.array(alone, bool), nodes, taxonomy.parent[nodes])


def numbered(
    name: str, labels: list[str], *, parent: list[int], depth: list[int], leaves: list[int]
) -> Taxonomy:
    """Return a taxonomy of nodes in depth-first order."""
    lo, hi = np.full(len(labels), len(leaves), np.int32), np.full(len(labels), -1, np.int32)
    lo[leaves] = hi[leaves] = np.arange(len(leaves), dtype=np.int32)
    for node in range(len(labels) - 1, 0, -1):
        above = parent[node]
        lo[above], hi[above] = min(lo[above], lo[node]), max(hi[above], hi[node])
    return Taxonomy(
        name=name,
        labels=tuple(labels),
        parent=np.array(parent, np.int32),
        depth=np.array(depth, np.int32),
        leaf_lo=lo,
        leaf_hi=hi,
        leaves=np.array(leaves, np.int32),
    )
