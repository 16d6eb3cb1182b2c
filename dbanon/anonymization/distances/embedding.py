"""Rows as points, for methods that need means."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dbanon.domain.taxonomy import height_shares

if TYPE_CHECKING:
    from dbanon.domain.assignment import EncodedColumn, EncodedTable
    from dbanon.domain.taxonomy import Taxonomy
    from dbanon.kernels.arrays import Floats

MOST_NODES = 256  # of a taxonomy that get a coordinate


def embed(table: EncodedTable) -> Floats:
    """Return a point for each row, (n, p); squared distances are weighted.

    An ordered column is one coordinate, scaled to [0, 1]; NULL lies in its middle, 1 away in
    another. A taxonomy has a coordinate for each node, so that the squared distance of two values
    is the height of their lowest common ancestor over that of the tree (0 or 1 without levels);
    NULL is 1 from every value. Beyond 256 nodes, those with the fewest rows have none, which brings
    rare values closer.
    """
    parts = [
        (_line(column) if column.taxonomy is None else _nodes(column, column.taxonomy))
        * column.rule.weight**0.5
        for column in table.quasi
    ]
    return np.ascontiguousarray(np.column_stack(parts))


def _line(column: EncodedColumn) -> Floats:
    points = np.zeros((len(column.codes), 2))
    points[:, 0] = np.append(column.position, 0.5)[column.codes]
    points[:, 1] = column.codes == column.size
    return points if points[:, 1].any() else points[:, :1]


def _nodes(column: EncodedColumn, taxonomy: Taxonomy) -> Floats:
    rows = np.bincount(column.codes, minlength=column.size + 1)
    below = np.append(0, np.cumsum(rows[:-1]))
    n_rows = below[taxonomy.leaf_hi + 1] - below[taxonomy.leaf_lo]
    height = height_shares(taxonomy)
    rise = height[taxonomy.parent] - height
    rise[0] = 0.0
    nodes = np.flatnonzero((n_rows > 0) & (rise > 0.0))
    nodes = nodes[np.argsort(-n_rows[nodes], kind="stable")][:MOST_NODES]
    points = np.zeros((column.size + 1, len(nodes) + 1))
    for i, node in enumerate(nodes.tolist()):
        leaves = slice(taxonomy.leaf_lo[node], taxonomy.leaf_hi[node] + 1)
        points[leaves, i] = np.sqrt(rise[node] / 2)
    points[-1, -1] = np.sqrt(0.5)
    return points[column.codes] if rows[-1] else points[column.codes, :-1]
