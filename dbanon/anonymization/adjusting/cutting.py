"""Cut a table into boxes, as Mondrian does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.loss.costs import pack
from dbanon.anonymization.loss.frequency import by_frequency
from dbanon.domain.assignment import Assignment

if TYPE_CHECKING:
    from dbanon.anonymization.interfaces import Requirement
    from dbanon.domain.assignment import EncodedTable


def cut(table: EncodedTable, requirement: Requirement, *, relaxed: bool) -> Assignment:
    """Cut a table as Mondrian does, strictly or relaxed; O(n d^2 log(n / k)) for balanced cuts."""
    from dbanon.kernels.boxes.mondrian import mondrian

    numbers = np.arange(table.n_rows, dtype=np.int32)
    rows = np.column_stack([table.all_codes, numbers])
    costs = []
    for i, column in enumerate(table.quasi):
        column_cost, rank = by_frequency(column)
        costs.append(column_cost.times(column.rule.weight))
        if rank is not None:
            rows[:, i] = rank[column.codes]
    cardinality = int(table.sensitive.max(initial=0)) + 1
    group, n_groups = mondrian(
        rows, *pack(costs), requirement.k, requirement.l, cardinality, relaxed
    )
    return Assignment(group, int(n_groups))
