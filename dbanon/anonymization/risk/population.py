"""How many of a population may be in each class."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.released.covering import covers
from dbanon.models.tally import joint_codes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.anonymization.released.cells import Released

_AT_ONCE = 2_000


def tells(released: Released) -> bool:
    """Whether each column rules out somebody: classes that stand for anybody are not counted."""
    return bool(released.columns) and not any(column.is_point for column in released.columns)


def persons(released: Released) -> NDArray[np.int64]:
    """Return how many rows of the table each class covers; by distinct tuples, block by block."""
    covered = _covered(released, np.ones((1, released.table.n_rows)))[0]
    return np.asarray(covered, np.int64)


def represented(
    released: Released, weights: NDArray[np.float64], heads: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return how many persons of a population those of each class stand for, (n_classes,).

    weights: (table.n_rows,) of the rows of the table; heads: (n_classes,) the persons of each
    class. Each counts with the mean weight of the rows that the class covers, at least with 1.
    """
    total, rows = _covered(released, np.array([weights, np.ones_like(weights)]))
    mean = total / np.maximum(rows, 1.0)
    return np.asarray(heads * np.maximum(mean, 1.0))


def _covered(released: Released, amounts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the sums of amounts, (t, table.n_rows), of the rows each class covers, (t, g)."""
    _, rows, place = np.unique(
        joint_codes(released.table.codes), return_index=True, return_inverse=True
    )
    of_tuples = [np.bincount(place, amount, len(rows)) for amount in amounts]
    covered = np.zeros((len(amounts), released.n_classes))
    for begin in range(0, len(rows), _AT_ONCE):
        found = covers(released, rows[begin : begin + _AT_ONCE])
        for i, amount in enumerate(of_tuples):
            each = np.repeat(amount[begin : begin + _AT_ONCE], np.diff(found.start))
            covered[i] += np.bincount(found.classes, each, released.n_classes)
    return covered


def members(released: Released) -> NDArray[np.int64]:
    """Return how many rows of the table have each distinct tuple of quasi-identifiers."""
    return np.bincount(joint_codes(released.table.codes))
