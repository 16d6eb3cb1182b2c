"""The costs of boxes in the flat arrays that kernels take (see ``dbanon.kernels.boxes.costs``)."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dbanon.domain.taxonomy import height_shares
from dbanon.kernels.layout import HALF, SET, TABLE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dbanon.domain.assignment import EncodedColumn, EncodedTable
    from dbanon.domain.taxonomy import Taxonomy
    from dbanon.kernels.arrays import Floats, Int32s, Int64s


# A taxonomy of at most so many leaves has a table of all pairs, 133 kB at most.
_LARGEST_TABLE = 128


class BoxCosts(NamedTuple):
    """flat: (m,) float64; layout: (d, 3) int64, as ``kernels.boxes.costs`` describes them."""

    flat: Floats
    layout: Int64s


class Shape(StrEnum):
    """What the costs of a column follow from."""

    ORDER = "order"
    TREE = "tree"
    SET = "set"


class ColumnCosts(NamedTuple):
    """The costs of one column before packing.

    size: the number of values; steps: the position of each value, (size,), of an ordered column,
    the cost of each pair of adjacent leaves, (size - 1,), of a tree, or the cost of each number of
    values, (size + 2,), of a column published as sets; everything: the cost of a box that mixes
    NULL and values.
    """

    size: int
    steps: Floats
    shape: Shape
    everything: float = 1.0

    def times(self, weight: float) -> ColumnCosts:
        """Scale every cost."""
        return self._replace(steps=self.steps * weight, everything=self.everything * weight)


def leaf_shares(taxonomy: Taxonomy) -> Floats:
    """Return the normalized certainty penalty of each node: the share of leaves below it."""
    return (taxonomy.leaf_hi - taxonomy.leaf_lo + 1) / taxonomy.n_leaves


def adjacent_costs(
    taxonomy: Taxonomy, node_costs: Floats, *, first: Int32s | None = None
) -> Floats:
    """Return the cost of the lowest common ancestor of each pair of adjacent leaves.

    ``first`` is the first leaf of each node when the children of nodes are put in another order.
    A node that is not its parent's first child begins where the parent's cost applies, and every
    border between two leaves is the beginning of exactly one such node.
    """
    first = taxonomy.leaf_lo if first is None else first
    inner = np.flatnonzero(taxonomy.parent >= 0)
    inner = inner[first[inner] > first[taxonomy.parent[inner]]]
    costs = np.empty(taxonomy.n_leaves - 1)
    costs[first[inner] - 1] = node_costs[taxonomy.parent[inner]]
    return costs


def column_costs(column: EncodedColumn) -> ColumnCosts:
    """Return the normalized certainty penalty (Xu et al., KDD 2006) of sets of codes."""
    if column.taxonomy is None:
        return ColumnCosts(column.size, column.position, Shape.ORDER)
    steps = adjacent_costs(column.taxonomy, leaf_shares(column.taxonomy))
    return ColumnCosts(column.size, steps, Shape.TREE)


def height_costs(column: EncodedColumn) -> ColumnCosts:
    """Return the same with the height of the common ancestor in place of its leaves."""
    if column.taxonomy is None:
        return ColumnCosts(column.size, column.position, Shape.ORDER)
    steps = adjacent_costs(column.taxonomy, height_shares(column.taxonomy))
    return ColumnCosts(column.size, steps, Shape.TREE)


def set_costs(column: EncodedColumn) -> ColumnCosts | None:
    """Return the share of a column's values in a set, as recoding ``set`` loses it.

    None when the column has more values than a set of two 31-bit halves holds.
    """
    if column.size >= 2 * HALF:
        return None
    counts = np.arange(column.size + 2.0)
    counts[1] = 0.0
    n_values = column.size + int((column.codes == column.size).any())
    return ColumnCosts(column.size, counts / max(n_values, 1), Shape.SET)


def leaf_excess(column: EncodedColumn) -> ColumnCosts:
    """Return the values that a set may stand for, but one, over those of the domain, weighted.

    NULL belongs to the domain where it occurs (ILoss of Xiao and Tao, SIGMOD 2006).
    """
    n_values = column.size + int((column.codes == column.size).any())
    unit = column.rule.weight / max(n_values, 1)
    everything = (n_values - 1) * unit
    if column.taxonomy is None:
        steps = np.arange(column.size, dtype=np.float64) * unit
        return ColumnCosts(column.size, steps, Shape.ORDER, everything=everything)
    leaves = (column.taxonomy.leaf_hi - column.taxonomy.leaf_lo).astype(np.float64)
    steps = adjacent_costs(column.taxonomy, leaves * unit)
    return ColumnCosts(column.size, steps, Shape.TREE, everything=everything)


def pack(columns: Sequence[ColumnCosts]) -> BoxCosts:
    """Lay the costs of all columns out in one array; O(sum of size * log size) for large trees."""
    layout = np.zeros((len(columns), 3), np.int64)
    parts: list[Floats] = []
    start = 0
    for i, column in enumerate(columns):
        stride, steps = _laid_out(column)
        part = np.concatenate([[column.everything], steps])
        layout[i] = start, column.size, stride
        parts.append(part)
        start += len(part)
    return BoxCosts(np.concatenate(parts), layout)


def _laid_out(column: ColumnCosts) -> tuple[int, Floats]:
    if column.shape is Shape.ORDER:
        return 0, column.steps
    if column.shape is Shape.SET:
        return SET, column.steps
    if column.size <= _LARGEST_TABLE:
        return TABLE, _table(column)
    return len(column.steps), np.concatenate(_range_maxima(column.steps))


def _table(column: ColumnCosts) -> Floats:
    """Return the cost of each pair of codes, NULL the last, as one row after another."""
    table = np.full((column.size + 1, column.size + 1), column.everything)
    np.fill_diagonal(table, 0.0)
    for lo in range(column.size - 1):
        table[lo, lo + 1 : -1] = np.maximum.accumulate(column.steps[lo:])
    return table.ravel()


def _range_maxima(steps: Floats) -> list[Floats]:
    """Return level by level the greatest of each 2**level steps from each step on."""
    levels, width = [steps], 1
    while 2 * width <= len(steps):
        wider = levels[-1].copy()
        wider[:-width] = np.maximum(wider[:-width], levels[-1][width:])
        levels.append(wider)
        width *= 2
    return levels


def weighted_costs(table: EncodedTable) -> BoxCosts:
    """Return the costs of all quasi-identifiers, each times the weight of its rule."""
    return pack([column_costs(column).times(column.rule.weight) for column in table.quasi])
