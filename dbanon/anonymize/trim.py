"""Spending a budget of suppressed rows where it saves most."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymize.boxes import row_codes, weighted_costs
from dbanon.domain.assignment import Assignment

if TYPE_CHECKING:
    from dbanon.anonymize.interfaces import Requirement
    from dbanon.domain.assignment import EncodedTable


def trim(
    table: EncodedTable, assignment: Assignment, requirement: Requirement, *, budget: int
) -> Assignment:
    """Leave out more rows, ``budget`` at most in all, each only if that lowers the total cost.

    A suppressed row costs the sum of all weights. Groups keep k rows and l distinct sensitive
    values; no group disappears.
    """
    from dbanon.kernels.trim import trim as trim_rows

    left = budget - assignment.n_suppressed
    if left <= 0:
        return assignment
    kept = np.flatnonzero(assignment.group >= 0)
    group = assignment.group.copy()
    group[kept] = trim_rows(
        row_codes(table)[kept],
        assignment.group[kept],
        assignment.n_groups,
        *weighted_costs(table),
        requirement.k,
        requirement.l,
        left,
    )
    return Assignment(group, assignment.n_groups)
