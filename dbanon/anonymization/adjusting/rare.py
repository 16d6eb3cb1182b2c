"""Leaving out what is rare rather than coarsening it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.loss.costs import box_losses, column_costs, pack
from dbanon.domain.assignment import Assignment

if TYPE_CHECKING:
    from dbanon.anonymization.interfaces import Requirement
    from dbanon.domain.assignment import EncodedColumn, EncodedTable
    from dbanon.kernels.arrays import Floats, Int32s


def leave_rare(
    table: EncodedTable, assignment: Assignment, requirement: Requirement, *, budget: int
) -> Assignment:
    """Leave out what loses most in the columns whose rare values go, until ``budget`` rows are out.

    Only these columns are looked at. Single rows go first, where that saves more than any group
    loses by the row; then whole groups, the costliest first, if they lose more than the average row
    does. The rows that are out already count. The others keep their groups, of k rows or more and
    l distinct sensitive values each, and one group stays. A final assignment is returned as it is.
    """
    rare = [column for column in table.quasi if column.rule.rare is not None]
    left = budget - assignment.n_suppressed
    if not rare or left <= 0 or assignment.final or assignment.n_groups == 0:
        return assignment
    costliest = _group_costs(rare, assignment).max()
    trimmed = _without_rows(table, rare, assignment, requirement, price=costliest, budget=left)
    return _without_groups(rare, trimmed, budget=budget - trimmed.n_suppressed)


def _without_rows(
    table: EncodedTable,
    rare: list[EncodedColumn],
    assignment: Assignment,
    requirement: Requirement,
    *,
    price: float,
    budget: int,
) -> Assignment:
    from dbanon.kernels.boxes.trim import trim

    shown = np.flatnonzero(assignment.group >= 0)
    codes = np.column_stack([*(column.codes for column in rare), table.sensitive])
    costs = pack([column_costs(column).times(column.rule.weight) for column in rare])
    group = assignment.group.copy()
    group[shown] = trim(
        np.ascontiguousarray(codes[shown], np.int32),
        assignment.group[shown],
        price,
        *costs,
        requirement.k,
        requirement.l,
        budget,
    )
    return Assignment(group, assignment.n_groups)


def _without_groups(
    rare: list[EncodedColumn], assignment: Assignment, *, budget: int
) -> Assignment:
    costs = _group_costs(rare, assignment)
    size = np.bincount(assignment.group[assignment.group >= 0], minlength=assignment.n_groups)
    average = float((costs * size).sum() / size.sum())
    out: list[int] = []
    for group in np.argsort(-costs, kind="stable").tolist():
        if costs[group] <= average or len(out) == assignment.n_groups - 1:
            break
        if size[group] <= budget:
            out.append(group)
            budget -= int(size[group])
    number = np.full(assignment.n_groups + 1, -1, np.int32)
    stay = np.setdiff1d(np.arange(assignment.n_groups), out)
    number[stay] = np.arange(len(stay), dtype=np.int32)
    return Assignment(number[assignment.group], len(stay))


def _group_costs(rare: list[EncodedColumn], assignment: Assignment) -> Floats:
    """Return what a row of each group loses in these columns, weighted, (n_groups,)."""
    from dbanon.kernels.boxes.costs import group_boxes

    codes: Int32s = np.column_stack([column.codes for column in rare])
    lo, hi, _ = group_boxes(codes, assignment.group, assignment.n_groups)
    costs = [column_costs(column).times(column.rule.weight) for column in rare]
    total: Floats = box_losses(costs, lo, hi).sum(axis=1)
    return total
