"""The radii of classes, by which clusterings are measured (Aggarwal et al., TALG 2010).

The radius of a class is the distance of its farthest row from its center. The paper takes any row
of the table for a center; here it is a row of the class, so that no rows of two classes are
compared. A radius is at most twice that of the paper.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.loss.costs import height_costs, pack

if TYPE_CHECKING:
    from dbanon.anonymization.loss.costs import BoxCosts
    from dbanon.domain.assignment import EncodedTable
    from dbanon.kernels.arrays import Floats, Int32s, Int64s

MOST_PAIRS = 4_000_000
_ROWS_AT_ONCE = 1 << 16


def class_radii(table: EncodedTable, classes: Int32s, size: Int64s) -> Floats | None:
    """Return the least radius of each class, (n_classes,), by the distance manhattan.

    classes: (n,) the class of each row, -1 for none; size: (n_classes,) its rows. None if they have
    more than ``MOST_PAIRS`` pairs of rows. O(sum of squared sizes).
    """
    if int((size**2).sum()) > MOST_PAIRS:
        return None
    costs = pack([height_costs(column).times(column.rule.weight) for column in table.quasi])
    codes = table.codes
    rows = np.argsort(classes, kind="stable")[len(classes) - int(size.sum()) :]
    begins = np.cumsum(size) - size
    radii = np.zeros(len(size))
    for n_rows in np.unique(size).tolist():
        alike = np.flatnonzero(size == n_rows)
        for some in np.array_split(alike, len(alike) * n_rows // _ROWS_AT_ONCE + 1):
            members = rows[begins[some, None] + np.arange(n_rows)]
            radii[some] = _least_radii(costs, codes[members])
    return radii


def _least_radii(costs: BoxCosts, codes: Int32s) -> Floats:
    """Return the radii of classes of one size; codes: (classes, rows, columns)."""
    from dbanon.kernels.boxes.costs import box_costs

    n_classes, n_rows, n_columns = codes.shape
    farthest = np.zeros((n_classes, n_rows))
    for center in range(n_rows - 1):
        of_center, others = codes[:, center : center + 1], codes[:, center + 1 :]
        lo, hi = np.minimum(others, of_center), np.maximum(others, of_center)
        losses = box_costs(*costs, lo.reshape(-1, n_columns), hi.reshape(-1, n_columns))
        apart = losses.sum(axis=1).reshape(n_classes, -1)
        farthest[:, center] = np.maximum(farthest[:, center], apart.max(axis=1))
        farthest[:, center + 1 :] = np.maximum(farthest[:, center + 1 :], apart)
    least: Floats = farthest.min(axis=1)
    return least
