"""The cells of a taxonomy: nodes below which nothing is published."""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING

import numpy as np

from dbanon.domain.errors import PolicyError
from dbanon.domain.table import quote_identifier
from dbanon.domain.taxonomy import ROOT_LABEL, Taxonomy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from dbanon.domain.policy import ColumnRule


def cells_of_level(taxonomy: Taxonomy, rule: ColumnRule) -> NDArray[np.int32]:
    """Return the cell of each leaf, ``at_least`` levels above the deepest leaves.

    Branches that end higher keep their leaves. Raises PolicyError where only the root is left.
    """
    level = rule.at_least
    if not isinstance(level, int) or level >= taxonomy.height:
        msg = (
            f"column {quote_identifier(rule.column)}: at_least must be a number of levels from 1 to"
            f" {taxonomy.height - 1} above the leaves of taxonomy {taxonomy.name!r}"
        )
        raise PolicyError(msg, hint='to publish nothing of the column: recoding = "suppress"')
    nodes = taxonomy.leaves.copy()
    while (deep := taxonomy.depth[nodes] > taxonomy.height - level).any():
        nodes = np.where(deep, taxonomy.parent[nodes], nodes)
    return nodes


def prefix_tree(
    name: str, texts: Sequence[str], *, length: int
) -> tuple[Taxonomy, NDArray[np.int32]]:
    """Return a tree of the first 1, 2 .. ``length`` characters of some texts, and its cells.

    A text of at most ``length`` characters is a cell of its own. Labels are filled up with stars to
    the length of the texts if all have the same, and have one star otherwise, for how long a text
    is would be known of it. O(m log m + m * length).
    """
    width = len(texts[0]) if len({len(text) for text in texts}) == 1 else 0
    labels, parent, depth = [ROOT_LABEL], [-1], [0]
    leaves: list[int] = []
    path: list[int] = [0]  # the nodes above the last leaf
    before = ""
    for text in sorted(texts):
        n_above = min(length, max(len(text) - 1, 0))
        pairs = zip(before, text, strict=False)
        shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        del path[min(shared, n_above) + 1 :]
        for n in range(len(path), n_above + 1):
            labels.append(text[:n].ljust(max(width, n + 1), "*"))
            parent.append(path[-1])
            depth.append(n)
            path.append(len(labels) - 1)
        labels.append(text)
        parent.append(path[-1])
        depth.append(len(path))
        leaves.append(len(labels) - 1)
        before = text
    taxonomy = _numbered(name, labels, parent=parent, depth=depth, leaves=leaves)
    short = np.array([len(labels[leaf]) <= length for leaf in leaves], bool)
    return taxonomy, np.where(short, taxonomy.leaves, taxonomy.parent[taxonomy.leaves])


def _numbered(
    name: str, labels: list[str], *, parent: list[int], depth: list[int], leaves: list[int]
) -> Taxonomy:
    """Return a taxonomy of nodes that are in depth-first order already."""
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
