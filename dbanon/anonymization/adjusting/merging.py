"""Groups that grow and merge, and what that costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.loss.costs import weighted_costs
from dbanon.domain.assignment import Assignment
from dbanon.kernels.layout import START

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from dbanon.domain.assignment import EncodedTable


class Merging:
    """Groups with their boxes; what joining them costs is the rise of the total (rows * penalty).

    Every group has a row. group: (n,) the group of each row before any was absorbed, -1 for none;
    ``boxes``: of the groups, a group of 0 rows being no more. O(n d) to make.
    """

    def __init__(self, table: EncodedTable, assignment: Assignment) -> None:
        from dbanon.kernels.boxes.costs import box_costs, group_boxes
        from dbanon.kernels.boxes.merges import Boxes

        self._codes, self.group = table.codes, assignment.group.copy()
        self._into = np.arange(assignment.n_groups)
        flat, layout = weighted_costs(table)
        lo, hi, size = group_boxes(self._codes, assignment.group, assignment.n_groups)
        self.boxes = Boxes(lo, hi, size, np.zeros(len(size)), flat, layout)
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
        self._into[self._into == b] = a

    def add(self, a: int, row: int) -> None:
        """Add a row to group a."""
        self._grow(a, self._codes[row], self._codes[row], size=1)
        self.group[row] = a

    def assignment(self) -> Assignment:
        """Return the groups that are left, numbered in their order."""
        return numbered(np.append(self._into, -1)[self.group])

    def _grow(self, a: int, lo: NDArray[np.int32], hi: NDArray[np.int32], *, size: int) -> None:
        from dbanon.kernels.boxes.costs import box_costs

        b = self.boxes
        np.minimum(b.lo[a], lo, out=b.lo[a])
        np.maximum(b.hi[a], hi, out=b.hi[a])
        b.size[a] += size
        b.cost[a] = box_costs(b.flat, b.layout, b.lo[a : a + 1], b.hi[a : a + 1]).sum()


def merge_with_nearest(
    table: EncodedTable,
    assignment: Assignment,
    bad: NDArray[np.bool_],
    *,
    near: Sequence[frozenset[int]] = (),
) -> Assignment:
    """Let every bad group that no other has joined before join the one that costs least.

    bad: (g,), of two groups or more; near: for each group those it rather joins. Ties go to the
    lower group. O(bad g d).
    """
    merging = Merging(table, assignment)
    done = np.zeros(assignment.n_groups, np.bool_)
    for a in np.flatnonzero(bad).tolist():
        if done[a]:
            continue
        rises = merging.rises(a)
        close = [b for b in sorted(near[a]) if np.isfinite(rises[b])] if near else []
        b = close[int(rises[close].argmin())] if close else int(rises.argmin())
        merging.absorb(a, b)
        done[[a, b]] = True
    return merging.assignment()


def numbered(group: NDArray[np.integer]) -> Assignment:
    """Return groups numbered without gaps, in their order; below 0 is left out."""
    numbers, dense = np.unique(group, return_inverse=True)
    n_suppressed = int(np.searchsorted(numbers, 0))
    return Assignment((dense - n_suppressed).astype(np.int32), len(numbers) - n_suppressed)
