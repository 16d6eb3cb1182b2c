"""Making groups diverse after the fact."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.loss.costs import weighted_costs
from dbanon.domain.assignment import Assignment
from dbanon.domain.errors import Unsatisfiable
from dbanon.domain.table import quote_identifier

if TYPE_CHECKING:
    from dbanon.anonymization.interfaces import Requirement
    from dbanon.domain.assignment import EncodedTable


def repair(table: EncodedTable, assignment: Assignment, requirement: Requirement) -> Assignment:
    """Merge every group with too few distinct sensitive values into the least costly neighbour.

    The cost of a merge is the rise of the total (rows * certainty penalty of the box); a partner
    that makes the group diverse goes before any that does not. Suppressed rows stay so. Raises
    Unsatisfiable when the others as a whole are not diverse. O(groups d) for each merge.
    """
    from dbanon.kernels.boxes.repair import merge_groups

    if requirement.l <= 1:
        return assignment
    kept = np.flatnonzero(assignment.group >= 0)
    for name, values in zip(table.sensitive_names, table.sensitive[kept].T, strict=True):
        if len(np.unique(values)) < requirement.l:
            msg = "no partition of these rows meets what is asked of sensitive column"
            hint = "ask for less, or allow more rows to be left out"
            raise Unsatisfiable(f"{msg} {quote_identifier(name)}", hint=hint)
    merged, n_groups = merge_groups(
        table.all_codes[kept],
        assignment.group[kept],
        assignment.n_groups,
        *weighted_costs(table),
        requirement.l,
    )
    group = np.full(table.n_rows, -1, np.int32)
    group[kept] = merged
    return Assignment(group, int(n_groups))
