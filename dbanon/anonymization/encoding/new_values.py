"""Values that a taxonomy lacks, where the policy says that they are not to stop a publication."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from dbanon.domain.errors import TaxonomyError
from dbanon.domain.policy import OTHER
from dbanon.domain.text import command

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from dbanon.domain.taxonomy import Taxonomy


def with_other(taxonomy: Taxonomy, texts: Sequence[str]) -> tuple[Taxonomy, list[str]]:
    """Let all values that are no leaf be one leaf ``other``, below the root if it is not there.

    Nobody said to which branch they belong, so that they have nothing but the root in common with
    any other value. Raises TaxonomyError when ``other`` stands above others. O(nodes).
    """
    leaves = set(taxonomy.leaf_labels)
    if leaves.issuperset(texts):
        return taxonomy, list(texts)
    if OTHER not in leaves:
        if OTHER in taxonomy.labels:
            raise TaxonomyError(
                f"taxonomy {taxonomy.name!r} has {OTHER!r} above other labels, and new values need"
                " it as a leaf",
                hint=command("dbanon taxonomy export", taxonomy.name) + "; call the node otherwise",
            )
        taxonomy = _grown(taxonomy)
    return taxonomy, [text if text in leaves else OTHER for text in texts]


def _grown(taxonomy: Taxonomy) -> Taxonomy:
    """Return the tree with a branch of the one leaf ``other``, as deep as others of one depth."""
    depths = set(taxonomy.depth[taxonomy.leaves].tolist())
    first, height = len(taxonomy.labels), max(depths.pop(), 1) if len(depths) == 1 else 1
    last_leaf = taxonomy.n_leaves
    leaf_hi = taxonomy.leaf_hi.copy()
    leaf_hi[0] = last_leaf
    return replace(
        taxonomy,
        labels=(*taxonomy.labels, *[OTHER] * height),
        parent=_longer(taxonomy.parent, [0, *range(first, first + height - 1)]),
        depth=_longer(taxonomy.depth, range(1, height + 1)),
        leaf_lo=_longer(taxonomy.leaf_lo, [last_leaf] * height),
        leaf_hi=_longer(leaf_hi, [last_leaf] * height),
        leaves=_longer(taxonomy.leaves, [first + height - 1]),
        added=np.append(np.zeros(last_leaf, np.bool_), True),
    )


def _longer(numbers: NDArray[np.int32], more: Sequence[int]) -> NDArray[np.int32]:
    return np.concatenate([numbers, np.array(more, np.int32)])
