"""Making groups l-diverse after the fact."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymize.boxes import row_codes, weighted_costs
from dbanon.domain.assignment import Assignment

if TYPE_CHECKING:
    from dbanon.anonymize.interfaces import Requirement
    from dbanon.domain.assignment import EncodedTable


def repair(table: EncodedTable, assignment: Assignment, requirement: Requirement) -> Assignment:
    """Merge every group with too few distinct sensitive values into the least costly neighbour.

    The cost of a merge is the rise of the total (rows * certainty penalty of the box); a partner
    that makes the group diverse goes before any that does not. The rows in groups must be diverse
    as a whole; rows left out stay so. O(groups^2 d) when every group is merged.
    """
    from dbanon.kernels.repair import merge_groups

    if requirement.l <= 1:
        return assignment
    shown = np.flatnonzero(assignment.group >= 0)
    group = assignment.group.copy()
    group[shown], n_groups = merge_groups(
        row_codes(table)[shown],
        assignment.group[shown],
        assignment.n_groups,
        *weighted_costs(table),
        requirement.l,
    )
    return Assignment(group, int(n_groups))
