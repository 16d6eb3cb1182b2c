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
    _, rows, times = np.unique(
        joint_codes(released.table.codes), return_index=True, return_counts=True
    )
    covered = np.zeros(released.n_classes, np.int64)
    for begin in range(0, len(rows), _AT_ONCE):
        found = covers(released, rows[begin : begin + _AT_ONCE])
        weights = np.repeat(times[begin : begin + _AT_ONCE], np.diff(found.start))
        covered += np.bincount(found.classes, weights, released.n_classes).astype(np.int64)
    return covered


def members(released: Released) -> NDArray[np.int64]:
    """Return how many rows of the table have each distinct tuple of quasi-identifiers."""
    return np.bincount(joint_codes(released.table.codes))
