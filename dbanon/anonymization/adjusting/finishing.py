"""What becomes of an algorithm's groups before they are published."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbanon.anonymization.adjusting.rare import leave_rare
from dbanon.anonymization.adjusting.repair import enforce
from dbanon.anonymization.adjusting.trim import trim

if TYPE_CHECKING:
    from dbanon.anonymization.interfaces import Requirement
    from dbanon.domain.assignment import Assignment, EncodedTable
    from dbanon.domain.progress import Stages


def finish(
    table: EncodedTable,
    assignment: Assignment,
    requirement: Requirement,
    *,
    budget: int,
    stages: Stages,
) -> Assignment:
    """Leave out up to ``budget`` rows where that pays, and merge groups that fail a demand."""
    assignment = trim(table, assignment, requirement, budget=budget)
    assignment = leave_rare(table, assignment, requirement, budget=budget)
    if any(demand.model.is_monotone for demand in requirement.demands):  # k is the algorithm's task
        assignment = enforce(table, assignment, requirement, stages=stages)
    return assignment
