"""How far apart rows are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymize.boxes import height_costs
from dbanon.domain.errors import PolicyError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.domain.assignment import EncodedColumn, EncodedTable


def pairwise(table: EncodedTable, name: str = "manhattan") -> NDArray[np.float64]:
    """Return the distance of every two rows, (n, n): a weighted sum over the columns.

    ``manhattan`` adds the share of the table's range, or the height of the lowest common ancestor
    over that of the tree; ``hamming`` counts the columns that differ. Both are metrics. NULL and
    NULL are 0 apart, NULL and a value 1. Raises PolicyError for any other name. O(n^2 d).
    """
    columns = {"manhattan": _value_distances, "hamming": _differences}
    if name not in columns:
        msg = f"there is no distance {name!r}"
        raise PolicyError(msg, hint=f"choose one of {', '.join(columns)}")
    total = np.zeros((table.n_rows, table.n_rows))
    for column in table.quasi:
        total += column.rule.weight * columns[name](column)
    return total


def _differences(column: EncodedColumn) -> NDArray[np.float64]:
    differs: NDArray[np.float64] = (column.codes[:, None] != column.codes).astype(np.float64)
    return differs


def _value_distances(column: EncodedColumn) -> NDArray[np.float64]:
    missing = column.codes == column.size
    apart: NDArray[np.float64]
    if column.taxonomy is None:
        position = np.append(column.position, 0.0)[column.codes]
        apart = np.abs(position[:, None] - position)
    else:
        leaves, place = np.unique(np.where(missing, 0, column.codes), return_inverse=True)
        apart = _leaf_distances(height_costs(column).steps, leaves)[place[:, None], place]
    apart[missing[:, None] & missing] = 0.0
    apart[missing[:, None] != missing] = 1.0
    return apart


def _leaf_distances(steps: NDArray[np.float64], leaves: NDArray[np.integer]) -> NDArray[np.float64]:
    """Return the greatest step between every two of some sorted leaves."""
    apart = np.zeros((len(leaves), len(leaves)))
    if len(leaves) > 1:
        gaps = np.maximum.reduceat(steps[: leaves[-1]], leaves[:-1])
        for i in range(len(gaps)):
            apart[i, i + 1 :] = apart[i + 1 :, i] = np.maximum.accumulate(gaps[i:])
    return apart
