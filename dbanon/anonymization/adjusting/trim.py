"""Spending a budget of suppressed rows where it saves most."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.loss.costs import weighted_costs
from dbanon.domain.assignment import Assignment

if TYPE_CHECKING:
    from dbanon.anonymization.interfaces import Requirement
    from dbanon.domain.assignment import EncodedTable


def trim(
    table: EncodedTable, assignment: Assignment, requirement: Requirement, *, budget: int
) -> Assignment:
    """Leave out rows, each only if that lowers the total cost, until ``budget`` rows are out.

    The rows that the algorithm left out count. A suppressed row costs the sum of all weights.
    Groups keep k rows and l distinct sensitive values; no group disappears. A final assignment
    is returned as it is.
    """
    from dbanon.kernels.boxes.trim import trim as trim_rows

    left = budget - assignment.n_suppressed
    if left <= 0 or assignment.final or assignment.n_groups == 0:
        return assignment
    shown = np.flatnonzero(assignment.group >= 0)
    group = assignment.group.copy()
    group[shown] = trim_rows(
        table.all_codes[shown],
        assignment.group[shown],
        float(sum(column.rule.weight for column in table.quasi)),
        *weighted_costs(table),
        requirement.k,
        requirement.l,
        left,
    )
    return Assignment(group, assignment.n_groups)
