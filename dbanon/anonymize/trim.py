"""Spending a budget of suppressed rows where it saves most."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbanon.anonymize.boxes import row_codes, weighted_costs
from dbanon.domain.assignment import Assignment

if TYPE_CHECKING:
    from dbanon.anonymize.interfaces import Requirement
    from dbanon.domain.assignment import EncodedTable


def trim(
    table: EncodedTable, assignment: Assignment, requirement: Requirement, *, budget: int
) -> Assignment:
    """Leave out at most ``budget`` rows, each only if that lowers the total cost.

    A suppressed row costs the sum of all weights. Groups keep k rows and l distinct sensitive
    values; no group disappears.
    """
    from dbanon.kernels.trim import trim as trim_rows

    if budget == 0:
        return assignment
    group = trim_rows(
        row_codes(table),
        assignment.group,
        assignment.n_groups,
        *weighted_costs(table),
        requirement.k,
        requirement.l,
        budget,
    )
    return Assignment(group, assignment.n_groups)
