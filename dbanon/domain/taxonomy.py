"""Taxonomies: trees above the values of a column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ROOT_LABEL = "*"


@dataclass(frozen=True, eq=False, slots=True)
class Taxonomy:
    """A rooted tree whose leaves are the values of a column.

    Nodes are numbered in depth-first preorder (root 0), leaves from left to right. So the leaves
    below a node are the interval ``leaf_lo[node]..leaf_hi[node]``, and the lowest common ancestor
    of a set of leaves is that of its least and greatest.

    labels: (n_nodes,) str; parent: (n_nodes,) int32, -1 for the root; depth: (n_nodes,) int32;
    leaf_lo, leaf_hi: (n_nodes,) int32, inclusive; leaves: (n_leaves,) int32, the node of each leaf;
    added: (n_leaves,) bool, leaves that a source has but not the stored taxonomy, None for none.
    """

    name: str
    labels: tuple[str, ...]
    parent: NDArray[np.int32]
    depth: NDArray[np.int32]
    leaf_lo: NDArray[np.int32]
    leaf_hi: NDArray[np.int32]
    leaves: NDArray[np.int32]
    version: int = 0
    added: NDArray[np.bool_] | None = None

    @property
    def n_leaves(self) -> int:
        """Size of the domain."""
        return len(self.leaves)

    @property
    def leaf_labels(self) -> tuple[str, ...]:
        """Values of the column, by leaf number."""
        return tuple(self.labels[node] for node in self.leaves)

    @property
    def height(self) -> int:
        """Length of the longest path from the root to a leaf."""
        return int(self.depth.max())


def height_shares(taxonomy: Taxonomy) -> NDArray[np.float64]:
    """Return the height of the subtree at each node over the height of the tree."""
    import numpy as np

    deepest = taxonomy.depth.copy()
    for depth in range(taxonomy.height, 0, -1):
        nodes = np.flatnonzero(taxonomy.depth == depth)
        np.maximum.at(deepest, taxonomy.parent[nodes], deepest[nodes])
    return (deepest - taxonomy.depth) / max(taxonomy.height, 1)
