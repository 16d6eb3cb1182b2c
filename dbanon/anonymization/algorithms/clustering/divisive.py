"""Divisive clustering (DIANA; Kaufman, Rousseeuw, 1990) with groups of k to 2k - 1 rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from dbanon.anonymization.adjusting.repair import repair
from dbanon.anonymization.distances.rows import pairwise
from dbanon.anonymization.limits import require_at_most
from dbanon.domain.assignment import Assignment

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.anonymization.interfaces import Requirement
    from dbanon.domain.assignment import EncodedTable


@dataclass(frozen=True, slots=True)
class Divisive:
    """Splitting every cluster of 2k rows or more into splinter and rest.

    The row farthest on average from the others leaves first; then, one at a time, the row that is
    nearer to the splinter than to the rest by most. The paper stops when no row is nearer. Here
    the splinter takes at least k rows and leaves at least k, which bounds all groups by 2k - 1.
    Groups that lack distinct sensitive values are merged afterwards. Ties go to the lower row.
    """

    distance: str = "manhattan"

    MAX_ROWS: ClassVar[int] = 10_000

    def assign(self, table: EncodedTable, requirement: Requirement, *, seed: int) -> Assignment:
        """Group the rows; O(n^2) for each level of the tree, O(n^2) memory."""
        require_at_most(self.MAX_ROWS, table, algorithm="divisive")
        apart = pairwise(table, self.distance)
        group = np.empty(table.n_rows, np.int32)
        pending = [(np.arange(table.n_rows), apart.sum(axis=1))]
        n_groups = 0
        while pending:
            rows, totals = pending.pop()
            if len(rows) < 2 * requirement.k or len(rows) < 2:  # noqa: PLR2004 - to split
                group[rows] = n_groups
                n_groups += 1
            else:
                pending.extend(split(apart, rows, totals, k=requirement.k))
        return repair(table, Assignment(group, n_groups), requirement)


def split(
    apart: NDArray[np.float64], rows: NDArray[np.int64], totals: NDArray[np.float64], *, k: int
) -> list[tuple[NDArray[np.int64], NDArray[np.float64]]]:
    """Return rest and splinter, each with the sum of the distances of each row to its own.

    apart: (n, n); rows: (m,) in rising order; totals: (m,) sums of the distances to these rows.
    O(m) for each row that leaves.
    """
    to_splinter = np.zeros(len(rows))
    left = np.zeros(len(rows), np.bool_)
    for size in range(len(rows) - k):
        n_rest = len(rows) - size
        nearer = (totals - to_splinter) / (n_rest - 1)
        if size > 0:
            nearer -= to_splinter / size
        nearer[left] = -np.inf
        row = int(nearer.argmax())
        if size >= k and nearer[row] <= 0.0:
            break
        left[row] = True
        to_splinter += apart[rows[row], rows]
    rest, splinter = rows[~left], rows[left]
    return [(rest, (totals - to_splinter)[~left]), (splinter, to_splinter[left])]
