"""Leaves of a taxonomy numbered by frequency, for algorithms that cut columns in two."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.loss.costs import (
    ColumnCosts,
    Shape,
    adjacent_costs,
    column_costs,
    leaf_shares,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.domain.assignment import EncodedColumn
    from dbanon.domain.taxonomy import Taxonomy


def by_frequency(column: EncodedColumn) -> tuple[ColumnCosts, NDArray[np.int32] | None]:
    """Renumber the leaves so that siblings are in descending number of rows, best for cuts.

    Returns the costs in the new numbering and the new number of each code, None if unchanged.
    """
    if column.taxonomy is None:
        return column_costs(column), None
    n_rows = np.bincount(column.codes, minlength=column.size + 1)[:-1]
    first = _first_leaves(column.taxonomy, n_rows)
    steps = adjacent_costs(column.taxonomy, leaf_shares(column.taxonomy), first=first)
    rank = np.append(first[column.taxonomy.leaves], np.int32(column.size))
    return ColumnCosts(column.size, steps, Shape.TREE), rank


def _first_leaves(taxonomy: Taxonomy, n_rows: NDArray[np.int64]) -> NDArray[np.int32]:
    """Return the first leaf of each node, siblings sorted by descending rows, then by number."""
    below = np.append(0, np.cumsum(n_rows))
    rows = below[taxonomy.leaf_hi + 1] - below[taxonomy.leaf_lo]
    width = taxonomy.leaf_hi - taxonomy.leaf_lo + 1
    order = np.lexsort((-rows, taxonomy.parent))
    before = np.cumsum(width[order]) - width[order]
    family = np.flatnonzero(np.diff(taxonomy.parent[order], prepend=-2))
    offset = np.empty(len(order), np.int32)
    counts = np.diff(np.append(family, len(order)))
    offset[order] = before - np.repeat(before[family], counts)
    first = np.zeros(len(order), np.int32)
    for depth in range(1, taxonomy.height + 1):
        nodes = np.flatnonzero(taxonomy.depth == depth)
        first[nodes] = first[taxonomy.parent[nodes]] + offset[nodes]
    return first
