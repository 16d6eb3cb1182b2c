"""What an algorithm, a model and a recoding are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dbanon.domain.assignment import Assignment, EncodedColumn, EncodedTable, ValueColumn


@dataclass(frozen=True, slots=True)
class Requirement:
    """What a group must meet: at least k rows, and l distinct values of each sensitive column.

    max_suppressed: the fraction of all rows that may be left out.
    """

    k: int
    l: int = 1
    max_suppressed: float = 0.0


class Algorithm(Protocol):
    """Groups rows; a dataclass whose fields are its parameters."""

    def assign(self, table: EncodedTable, requirement: Requirement, *, seed: int) -> Assignment:
        """Partition all rows into groups that meet the requirement.

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
