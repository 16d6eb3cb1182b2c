"""Utility-based bottom-up local recoding (Xu et al., KDD 2006)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from dbanon.anonymization.adjusting.repair import repair
from dbanon.anonymization.algorithms.partitioning.split import split
from dbanon.anonymization.limits import require_at_most
from dbanon.anonymization.loss.costs import weighted_costs
from dbanon.domain.assignment import Assignment

if TYPE_CHECKING:
    from dbanon.anonymization.interfaces import Requirement
    from dbanon.domain.assignment import EncodedTable


@dataclass(frozen=True, slots=True)
class BottomUp:
    """The bottom-up algorithm (section 4.1): small groups merge with their nearest ones.

    Every round merges each group of fewer than k rows with the group whose union with it has the
    least weighted certainty penalty, and splits what has 2k rows or more, so that the smallest
    group doubles and ceil(log2 k) rounds do. Groups have k to 2k - 1 rows for l = 1; those that
    lack distinct sensitive values are merged afterwards. The paper leaves the split open; here a
    group is halved at its dearest column until each part has fewer than 2k rows. Groups are in
    the order of their first rows, which is the order of merging, and ties go to the lower.
    """

    MAX_ROWS: ClassVar[int] = 100_000

    def assign(self, table: EncodedTable, requirement: Requirement, *, seed: int) -> Assignment:
        """Group the rows; O(n^2 d log k)."""
        from dbanon.kernels.boxes.merges import merge_small

        require_at_most(self.MAX_ROWS, table, algorithm="bottom-up")
        codes, costs = table.codes, weighted_costs(table)
        found = Assignment(np.arange(table.n_rows, dtype=np.int32), table.n_rows)
        while found.n_groups > 1 and np.bincount(found.group).min() < requirement.k:
            group = merge_small(codes, found.group, found.n_groups, *costs, requirement.k)
            found = split(table, group, k=requirement.k)
        return repair(table, found, requirement)
