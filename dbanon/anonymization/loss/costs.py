"""Costs of boxes, in the flat arrays that kernels take (``dbanon.kernels.boxes.costs``)."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dbanon.domain.assignment import EncodedColumn, EncodedTable, Taxonomy, height_shares
from dbanon.kernels.layout import HALF, NONE, NOTHING, SET, TABLE, Floats, Int32s, Int64s

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


# A taxonomy of at most this many leaves has a table of all pairs, 133 kB at most.
_LARGEST_TABLE = 128


class BoxCosts(NamedTuple):
    """flat: (m,) float64; layout: (d, 5) int64, as ``kernels.boxes.costs`` describes them."""

    flat: Floats
    layout: Int64s


class Shape(StrEnum):
    """Structure from which the costs of a column follow."""

    ORDER = "order"
    TREE = "tree"
    SET = "set"


class ColumnCosts(NamedTuple):
    """The costs of one column before packing.

    size: the number of values; steps: the position of each value (size,) for ORDER, the cost of
    each pair of adjacent leaves (size - 1,) for TREE, the cost of each number of values (size + 2,)
    for SET; everything: the cost of a box that mixes NULL and values; alone: the cost of each value
    published as a cell (size,), None if values are published exactly. Searches ignore it: it is the
    same in any grouping; empty: the bounds of a box of no rows.
    """

    size: int
    steps: Floats
    shape: Shape
    everything: float = 1.0
    alone: Floats | None = None
    empty: tuple[int, int] = (NOTHING, NONE)

    def times(self, weight: float) -> ColumnCosts:
        """Scale every cost."""
        return self._replace(
            steps=self.steps * weight,
            everything=self.everything * weight,
            alone=None if self.alone is None else self.alone * weight,
        )


def leaf_shares(taxonomy: Taxonomy) -> Floats:
    """Return the normalized certainty penalty of each node: the share of leaves below it."""
    return (taxonomy.leaf_hi - taxonomy.leaf_lo + 1) / taxonomy.n_leaves


def adjacent_costs(
    taxonomy: Taxonomy, node_costs: Floats, *, first: Int32s | None = None
) -> Floats:
    """Return the cost of the lowest common ancestor of each pair of adjacent leaves.

    first: the first leaf of each node if children are in another order. Every border between two
    leaves is the start of exactly one node that is not its parent's first child; the parent's cost
    applies.
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
        return _line_costs(column)
    return _tree_costs(column, column.taxonomy, leaf_shares(column.taxonomy))


def height_costs(column: EncodedColumn) -> ColumnCosts:
    """Return the same with the height of the common ancestor instead of its leaves."""
    if column.taxonomy is None:
        return _line_costs(column)
    return _tree_costs(column, column.taxonomy, height_shares(column.taxonomy))


def _line_costs(column: EncodedColumn) -> ColumnCosts:
    alone = None if column.bands is None else column.bands.width
    return ColumnCosts(column.size, column.position, Shape.ORDER, alone=alone)


def _tree_costs(column: EncodedColumn, taxonomy: Taxonomy, node_costs: Floats) -> ColumnCosts:
    """Return the costs of common ancestors, given that of each node; a leaf costs nothing."""
    steps = adjacent_costs(taxonomy, node_costs)
    alone = None
    if column.cells is not None:
        alone = np.where(column.cells == taxonomy.leaves, 0.0, node_costs[column.cells])
    return ColumnCosts(column.size, steps, Shape.TREE, alone=alone)


def set_costs(column: EncodedColumn) -> ColumnCosts | None:
    """Return the loss of recoding ``set``, the share of values; None beyond two 31-bit halves."""
    if column.size >= 2 * HALF:
        return None
    counts = np.arange(column.size + 2.0)
    counts[1] = 0.0
    n_values = column.size + int((column.codes == column.size).any())
    return ColumnCosts(column.size, counts / max(n_values, 1), Shape.SET, empty=(0, 0))


def end_costs(column: EncodedColumn) -> ColumnCosts | None:
    """Return the cost of one end of intervals, None if it depends on the other end.

    A group of persons publishes an interval from their least to their greatest value, so that a
    person whose interval lies within it costs nothing. Each end costs its distance from the nearest
    that any group can have, so that both together cost the width and a constant.
    """
    if column.end is None:
        return None
    line, steps = _line_costs(column), 2.0 * column.position  # each end has half of the weight
    if column.end == "least":
        limit = int(column.codes.max())
        return line._replace(steps=steps, everything=float(steps[limit]), empty=(NOTHING, limit))
    limit = int(column.codes.min())
    return line._replace(
        steps=steps, everything=float(steps[-1] - steps[limit]), empty=(limit, NONE)
    )


def leaf_excess(column: EncodedColumn) -> ColumnCosts:
    """Return the weighted share of values represented beyond one (Xiao, Tao, SIGMOD 2006)."""
    bands = column.bands
    members = np.ones(column.size) if bands is None else bands.members.astype(np.float64)
    n_values = int(members.sum()) + int((column.codes == column.size).any())
    unit = column.rule.weight / max(n_values, 1)
    everything = (n_values - 1) * unit
    if column.taxonomy is None:
        steps: Floats = (np.cumsum(members) - members) * unit
        alone = None if bands is None else (members - 1) * unit
        return ColumnCosts(column.size, steps, Shape.ORDER, everything=everything, alone=alone)
    leaves = (column.taxonomy.leaf_hi - column.taxonomy.leaf_lo).astype(np.float64) * unit
    return _tree_costs(column, column.taxonomy, leaves)._replace(everything=everything)


def box_losses(columns: Sequence[ColumnCosts], lo: Int32s, hi: Int32s) -> Floats:
    """Return the loss of published boxes by column, (g, d), cells included; lo, hi: (g, d)."""
    from dbanon.kernels.boxes.costs import box_costs

    empty = np.array([column.empty for column in columns], np.int32)
    lo, hi = np.minimum(lo, empty[:, 0]), np.maximum(hi, empty[:, 1])
    costs: Floats = box_costs(*pack(columns), lo, hi)
    for i, column in enumerate(columns):
        if column.alone is not None:
            last = np.append(column.alone, 0.0)[hi[:, i]]
            is_missing = (lo[:, i] == hi[:, i]) | (column.shape is Shape.ORDER)
            costs[:, i] += np.where(is_missing, last, 0.0)
    return costs


def pack(columns: Sequence[ColumnCosts]) -> BoxCosts:
    """Lay out the costs of all columns in one array; O(sum of size * log size) for large trees."""
    layout = np.zeros((len(columns), 5), np.int64)
    parts: list[Floats] = []
    start = 0
    for i, column in enumerate(columns):
        stride, steps = _laid_out(column)
        part = np.concatenate([[column.everything], steps])
        layout[i] = start, column.size, stride, *column.empty
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
    """Return the cost of each pair of codes, NULL last, row by row."""
    table = np.full((column.size + 1, column.size + 1), column.everything)
    np.fill_diagonal(table, 0.0)
    for lo in range(column.size - 1):
        table[lo, lo + 1 : -1] = np.maximum.accumulate(column.steps[lo:])
    return table.ravel()


def _range_maxima(steps: Floats) -> list[Floats]:
    """Return for each level the maximum of 2**level steps from each step."""
    levels, width = [steps], 1
    while 2 * width <= len(steps):
        wider = levels[-1].copy()
        wider[:-width] = np.maximum(wider[:-width], levels[-1][width:])
        levels.append(wider)
        width *= 2
    return levels


def weighted_costs(table: EncodedTable) -> BoxCosts:
    """Return the weighted costs of all quasi-identifiers."""
    return pack([column_costs(column).times(column.rule.weight) for column in table.quasi])


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


def renumber_for_cuts(columns: Sequence[EncodedColumn], codes: Int32s) -> BoxCosts:
    """Renumber codes, (n, d) and more, in place ``by_frequency``; return the weighted costs."""
    costs = []
    for i, column in enumerate(columns):
        cost, rank = by_frequency(column)
        costs.append(cost.times(column.rule.weight))
        if rank is not None:
            codes[:, i] = rank[codes[:, i]]
    return pack(costs)


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
