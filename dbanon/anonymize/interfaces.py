"""What an algorithm, a model and a recoding are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dbanon.domain.assignment import Assignment, EncodedColumn, EncodedTable, ValueColumn


@dataclass(frozen=True, slots=True)
class Requirement:
    """What a group must meet: at least k rows, and l distinct values of each sensitive column.

    ``max_suppressed`` is the largest fraction of rows, in [0, 1), that may be in no group.
    """

    k: int
    l: int = 1
    max_suppressed: float = 0.0

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


class Model(Protocol):
    """A privacy model, certified on the published classes.

    ``parameter`` names its one parameter, the least that a class must achieve;
    ``per_sensitive`` tells whether it is about each sensitive column or about the rows.
    """

    parameter: ClassVar[str]
    per_sensitive: ClassVar[bool]

    def achieved(self, classes: NDArray[np.int32], values: NDArray[np.int32]) -> NDArray[np.int64]:
        """Return what each class achieves, (n_classes,).

        classes: (n,) class of each published row, 0..n_classes-1; values: (n,) the codes of the
        sensitive column that the model is about (ignored by k-anonymity).
        """
        ...


class Recoding(Protocol):
    """Turns the values of a group into one published value."""

    def accepts(self, column: EncodedColumn) -> bool:
        """Whether this recoding can publish that column."""
        ...

    def publish(self, column: EncodedColumn, assignment: Assignment) -> ValueColumn:
        """Return the published value of every group."""
        ...
