"""What a masking method is given, and what it gives back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from dbanon.kernels.arrays import Floats, Int32s, Int64s


class Draw(Protocol):
    """Chance that belongs to rows."""

    def __call__(self, count: int, salt: str, column: int | None = None) -> Floats:
        """Return (n, count) numbers between 0 and 1, both excluded.

        They depend on the person, the values in all columns or in that one, the text and a secret
        key, and on nothing else: the next release draws the same.
        """
        ...


@dataclass(frozen=True, eq=False, slots=True)
class Rows:
    """Whose values are masked, and chance that stays as it is.

    person: (n,) numbers of the persons; values: returns a number between 0 and 1 of each value of
    a column that is masked by itself, which depends on that and a secret key alone; ranks: the
    places of the columns whose numbers are the ranks of labels.
    """

    person: Int64s
    draw: Draw
    values: Callable[[], Floats]
    ranks: frozenset[int] = frozenset()


class Masking(Protocol):
    """A way to change the values of columns; its fields are its parameters.

    of_numbers: whether it changes numbers, else values of any type; of_ranks: whether the numbers
    may be the ranks of labels, which it changes to ranks; joint: whether columns that are named
    together are masked together; whole: whether what becomes of a value depends on the other
    rows; solvable: whether values of one row can be computed from the masked values of two tables
    that differ in that row; within_class: whether rows are masked in their classes.
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
        """How many persons the rows must be of, or it hides nobody among them."""
        return 2

    def mask(self, values: Floats, rows: Rows) -> Floats:
        """Return other numbers, (n, p), for those given, (n, p) and finite; n >= 1.

        Raises PolicyError for what it cannot mask.
        """
        ...


class ValueMasking(Masking, Protocol):
    """A way to change values of any type."""

    of_numbers: ClassVar[bool] = False

    def mask(self, codes: Int32s, n_values: NDArray[np.int64], rows: Rows) -> Int32s:
        """Return other codes, (n, p), for those given; n >= 1.

        codes: (n, p), -1 for NULL, else 0 to n_values - 1 of the column, in the order of values;
        n_values of a column stands for a value of the method's own.
        """
        ...
