"""Making groups l-diverse after the fact."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbanon.anonymize.boxes import row_codes, weighted_costs
from dbanon.domain.assignment import Assignment

if TYPE_CHECKING:
    from dbanon.anonymize.interfaces import Requirement
    from dbanon.domain.assignment import EncodedTable


def repair(table: EncodedTable, assignment: Assignment, requirement: Requirement) -> Assignment:
    """Merge every group with too few distinct sensitive values into the least costly neighbour.

    The cost of a merge is the rise of the total (rows * certainty penalty of the box); a partner
    that makes the group diverse goes before any that does not. The table as a whole must be
    diverse. O(groups^2 d) when every group is merged.
    """
    from dbanon.kernels.repair import merge_groups

    if requirement.l <= 1:
        return assignment
    group, n_groups = merge_groups(
        row_codes(table),
        assignment.group,
        assignment.n_groups,
        *weighted_costs(table),
        requirement.l,
    )
    return Assignment(group, int(n_groups))
