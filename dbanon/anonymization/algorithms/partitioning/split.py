"""Splitting groups that have rows for several."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.loss.costs import weighted_costs
from dbanon.domain.assignment import Assignment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from dbanon.anonymization.loss.costs import BoxCosts
    from dbanon.domain.assignment import EncodedTable


def split(table: EncodedTable, group: NDArray[np.integer], *, k: int) -> Assignment:
    """Split every group of m >= 2k rows into m // k of k to 2k - 1, and number all by first row.

    group: (n,) numbers from 0 on, gaps allowed. A group is sorted by its dearest column, the
    values' codes in order and the lower row first where they are equal, and cut so that both
    sides have their share of the groups to come; each side is then treated alike. Ties go to the
    lower column. O(n log n + n d log(n / k)) for one group of all rows.
    """
    codes = table.codes
    costs = weighted_costs(table)
    parts = group.astype(np.int32)
    new = len(group)
    size = np.bincount(group)
    for large in np.flatnonzero(size >= 2 * k):
        for rows in _parts(codes, np.flatnonzero(group == large), costs, k=k):
            parts[rows] = new
            new += 1
    _, first, index = np.unique(parts, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first)).astype(np.int32)
    return Assignment(rank[index], len(first))


def _parts(
    codes: NDArray[np.int32], rows: NDArray[np.int64], costs: BoxCosts, *, k: int
) -> Iterator[NDArray[np.int64]]:
    from dbanon.kernels.boxes.costs import box_costs

    waiting = [rows]
    while waiting:
        rows = waiting.pop()
        count = len(rows) // k
        if count <= 1:
            yield rows
            continue
        members = codes[rows]
        lo, hi = members.min(axis=0, keepdims=True), members.max(axis=0, keepdims=True)
        dearest = int(box_costs(*costs, lo, hi)[0].argmax())
        rows = rows[np.argsort(members[:, dearest], kind="stable")]
        cut = len(rows) * (count // 2) // count
        waiting += [np.sort(rows[cut:]), np.sort(rows[:cut])]
