"""Interfaces of masking methods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from dbanon.kernels.arrays import Floats, Int32s, Int64s


class Draw(Protocol):
    """Random numbers that belong to rows."""

    def __call__(self, count: int, salt: str, column: int | None = None) -> Floats:
        """Return (n, count) random numbers in (0, 1), the same for the next release.

        They depend only on the person, the values in all columns or in one, the salt and a secret
        key.
        """
        ...


@dataclass(frozen=True, eq=False, slots=True)
class Rows:
    """Persons whose values are masked, and their reproducible random numbers.

    person: (n,) numbers of the persons; values: returns a random number in (0, 1) of each value of
    a column that is masked alone, which depends on the value and a secret key; ranks: indices of
    the columns whose numbers are ranks of labels.
    """

    person: Int64s
    draw: Draw
    values: Callable[[], Floats]
    ranks: frozenset[int] = frozenset()


class Masking(Protocol):
    """A way to change the values of columns; its fields are its parameters.

    of_numbers: changes numbers, otherwise values of any type; of_ranks: the numbers may be ranks of
    labels; joint: columns named together are masked together; whole: the result depends on other
    rows; solvable: values of one row can be computed from two masked tables that differ in that
    row; within_class: rows are masked within their classes.
    """

    of_numbers: ClassVar[bool]
    of_ranks: ClassVar[bool] = False
    joint: ClassVar[bool] = False
    whole: ClassVar[bool] = True
    solvable: ClassVar[bool] = True
    within_class: ClassVar[bool] = False


class NumberMasking(Masking, Protocol):
    """A way to change numbers."""

    of_numbers: ClassVar[bool] = True

    @property
    def least(self) -> int:
        """Least number of persons whose values hide each other."""
        return 2

    def mask(self, values: Floats, rows: Rows) -> Floats:
        """Return other finite numbers, (n, p), n >= 1; PolicyError if that is impossible."""
        ...


class ValueMasking(Masking, Protocol):
    """A way to change values of any type."""

    of_numbers: ClassVar[bool] = False

    def mask(self, codes: Int32s, n_values: NDArray[np.int64], rows: Rows) -> Int32s:
        """Return other codes, (n, p); n >= 1.

        codes: -1 for NULL, otherwise 0 to n_values - 1 in value order; n_values is an added value.
        """
        ...
