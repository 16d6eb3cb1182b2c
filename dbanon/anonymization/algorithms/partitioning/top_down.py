"""Utility-based top-down greedy search (Xu et al., KDD 2006)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from dbanon.anonymization.adjusting.repair import repair
from dbanon.anonymization.algorithms.partitioning.split import split
from dbanon.anonymization.limits import require_at_most
from dbanon.anonymization.loss.costs import weighted_costs
from dbanon.domain.errors import PolicyError

if TYPE_CHECKING:
    from dbanon.anonymization.interfaces import Requirement
    from dbanon.domain.assignment import Assignment, EncodedTable


@dataclass(frozen=True, slots=True)
class TopDown:
    """The top-down algorithm (section 4.2): parts are divided at their most distant rows.

    A part has two seeds, found in at most ``rounds`` steps from a random row to the row whose
    union with it has the greatest weighted certainty penalty; each other row joins one of the two
    sides. A side may fall short of k rows as long as the other does not; such groups then borrow
    rows or merge, whichever raises the penalty less. Groups have k to 2k - 1 rows for l = 1; those
    that lack distinct sensitive values are merged afterwards. Departs from the paper in three
    ways: a row joins the side whose total it raises less, not the side of the smaller total, which
    would even the totals out; one shuffle of the rows makes all random choices; merged groups of
    2k rows or more are split at their dearest column, and at the end. Ties go to the lower row,
    the smaller side, the earlier group, and to merging.
    """

    rounds: int = 6

    MAX_ROWS: ClassVar[int] = 100_000

    def __post_init__(self) -> None:
        if self.rounds < 1:
            raise PolicyError("top-down: rounds is at least 1", hint="leave it out to use 6")

    def assign(self, table: EncodedTable, requirement: Requirement, *, seed: int) -> Assignment:
        """Group the rows; O(n d log n) to divide evenly, O(n^2 d / k) to make up for shortfalls."""
        from dbanon.kernels.boxes.top_down import divide
        from dbanon.kernels.boxes.undersized_groups import make_up

        require_at_most(self.MAX_ROWS, table, algorithm="top-down")
        rows, costs = table.all_codes, weighted_costs(table)
        order = np.random.default_rng(seed).permutation(table.n_rows)
        group, n_groups = divide(rows, order, *costs, requirement.k, self.rounds)
        group = make_up(rows, group, n_groups, *costs, requirement.k)
        return repair(table, split(table, group, k=requirement.k), requirement)
