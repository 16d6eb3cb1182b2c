"""The boxes of groups that grow and merge."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.loss.costs import weighted_costs
from dbanon.kernels.layout import START

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.domain.assignment import EncodedTable


class Unions:
    """The boxes of groups, and what joining them costs: the rise of the total (rows * penalty).

    group: (n,) the group of each row, -1 for none; every group has a row. ``boxes`` holds the
    state, a group of 0 rows being no more; O(n d) to make.
    """

    __slots__ = ("_codes", "boxes")

    def __init__(self, table: EncodedTable, group: NDArray[np.int32], n_groups: int) -> None:
        from dbanon.kernels.boxes.costs import box_costs, group_boxes
        from dbanon.kernels.boxes.merges import Boxes

        self._codes = table.codes
        flat, layout = weighted_costs(table)
        lo, hi, size = group_boxes(self._codes, group, n_groups)
        self.boxes = Boxes(lo, hi, size, np.zeros(n_groups), flat, layout)
        self.boxes.cost[:] = box_costs(flat, layout, lo, hi).sum(axis=1)

    def rises(self, a: int) -> NDArray[np.float64]:
        """Return what merging a group with each other group costs, infinite for itself."""
        from dbanon.kernels.boxes.merges import union_rises

        b = self.boxes
        rises: NDArray[np.float64] = union_rises(b.lo[a], b.hi[a], int(b.size[a]), b)
        rises[a] = np.inf
        return rises

    def rises_of_row(self, row: int) -> NDArray[np.float64]:
        """Return what adding a row to each group costs."""
        from dbanon.kernels.boxes.merges import union_rises

        rises: NDArray[np.float64] = union_rises(self._codes[row], self._codes[row], 1, self.boxes)
        return rises

    def loss(self) -> float:
        """Return the total (rows * penalty) over what it is when a box says nothing."""
        b = self.boxes
        everything = float(b.flat[b.layout[:, START]].sum() * b.size.sum())
        return float((b.size * b.cost).sum()) / max(everything, 1e-300)

    def absorb(self, a: int, b: int) -> None:
        """Make group b a part of group a."""
        self._grow(a, self.boxes.lo[b], self.boxes.hi[b], size=int(self.boxes.size[b]))
        self.boxes.size[b] = 0

    def add(self, a: int, row: int) -> None:
        """Add a row to group a."""
        self._grow(a, self._codes[row], self._codes[row], size=1)

    def _grow(self, a: int, lo: NDArray[np.int32], hi: NDArray[np.int32], *, size: int) -> None:
        from dbanon.kernels.boxes.costs import box_costs

        b = self.boxes
        np.minimum(b.lo[a], lo, out=b.lo[a])
        np.maximum(b.hi[a], hi, out=b.hi[a])
        b.size[a] += size
        b.cost[a] = box_costs(b.flat, b.layout, b.lo[a : a + 1], b.hi[a : a + 1]).sum()
