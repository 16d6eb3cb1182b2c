"""The algorithm that needs no choice."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dbanon.anonymize.algorithms.mondrian import RelaxedMondrian
from dbanon.domain.stages import Stages

if TYPE_CHECKING:
    from dbanon.anonymize.interfaces import Requirement
    from dbanon.domain.assignment import Assignment, EncodedTable


@dataclass(frozen=True, slots=True)
class Auto:
    """Relaxed Mondrian, until the search of this name takes its place."""

    effort: str = "balanced"
    time_limit: float | None = None
    loss: str = "ncp"
    stages: Stages = field(default_factory=Stages)

    def assign(self, table: EncodedTable, requirement: Requirement, *, seed: int) -> Assignment:
        """Cut the table and report that it is done."""
        self.stages.progress(0.0, 1.0)
        assignment = RelaxedMondrian().assign(table, requirement, seed=seed)
        self.stages.progress(1.0, 0.0)
        return assignment
