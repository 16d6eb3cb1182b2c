"""What an algorithm and a recoding are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from dbanon.domain.assignment import Assignment, EncodedColumn, EncodedTable, ValueColumn
    from dbanon.domain.table import Structure
    from dbanon.models.base import Demand


@dataclass(frozen=True, slots=True)
class Requirement:
    """What a group must meet: at least k rows, and l distinct values of each sensitive column.

    ``max_suppressed`` is the largest fraction of rows, in [0, 1), that may be in no group.
    ``demands`` is what else is asked: an algorithm may search for it, and merging sees to it
    afterwards (``dbanon.anonymization.adjusting.repair``).
    """

    k: int
    l: int = 1
    max_suppressed: float = 0.0
    demands: tuple[Demand, ...] = ()

    @property
    def sensitive_aware(self) -> bool:
        """Whether meeting it takes a look at sensitive values; without, no algorithm has one."""
        return self.l > 1 or bool(self.demands)

    def budget(self, n_rows: int) -> int:
        """Return how many of so many rows may be left out, the fraction read as it is written."""
        return math.floor(Fraction(repr(self.max_suppressed)) * n_rows)


class Algorithm(Protocol):
    """Groups rows; a dataclass whose fields are its parameters."""

    def assign(self, table: EncodedTable, requirement: Requirement, *, seed: int) -> Assignment:
        """Partition the rows into groups that meet the requirement.

        Rows may be left out within the requirement's budget; most algorithms leave out none.
        The same table, requirement, parameters and seed give the same partition. Raises
        Unsatisfiable when no partition exists, or when the table is larger than the algorithm can
        take, naming the limit and what to use instead.
        """
        ...


class Recoding(Protocol):
    """Turns the values of a group into one published value."""

    @property
    def accepts(self) -> frozenset[Structure]:
        """The structures of columns that it can publish."""
        ...

    def publish(self, column: EncodedColumn, assignment: Assignment) -> ValueColumn:
        """Return the published value of every group."""
        ...
