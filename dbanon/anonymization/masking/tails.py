"""Top and bottom coding (Hundepool et al., Statistical Disclosure Control, 2012, section 3.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from dbanon.anonymization.masking.interfaces import NumberMasking
from dbanon.anonymization.means import mean_of
from dbanon.domain.errors import PolicyError

if TYPE_CHECKING:
    from dbanon.anonymization.masking.interfaces import Rows
    from dbanon.kernels.arrays import Floats, Int64s


@dataclass(frozen=True, slots=True)
class TopCoding(NumberMasking):
    """Replace the greatest numbers by the least of them, or by their mean.

    The tail begins at ``at``, or at the greatest value from which it has ``persons`` persons if
    that is less; where all have fewer, all are one tail.
    """

    persons: int
    at: float | None = None
    shown: Literal["threshold", "mean"] = "threshold"

    of_ranks: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Raise PolicyError for a tail of nobody."""
        if self.persons < 1:
            raise PolicyError("persons of a tail is at least 1")

    @property
    def least(self) -> int:
        """How many persons the rows must be of, or it hides nobody among them."""
        return self.persons

    def mask(self, values: Floats, rows: Rows) -> Floats:
        """Return the numbers with one for the tail; O(n log n)."""
        column = values[:, 0]
        start = _start(column, rows.person, self.persons)
        start = start if self.at is None else min(start, self.at)
        tail = column >= start
        coded = mean_of(column[tail].tolist()) if self.shown == "mean" else start
        return np.where(tail, coded, column)[:, None]


@dataclass(frozen=True, slots=True)
class BottomCoding(TopCoding):
    """Replace the least numbers by the greatest of them, or by their mean; see ``TopCoding``."""

    def mask(self, values: Floats, rows: Rows) -> Floats:
        """Return the numbers with one for the tail; O(n log n)."""
        mirrored = None if self.at is None else -self.at
        return -TopCoding(self.persons, mirrored, self.shown).mask(-values, rows)


def _start(column: Floats, person: Int64s, persons: int) -> float:
    """Return the greatest value from which on there are so many persons, else the least value."""
    order = np.argsort(-column, kind="stable")
    seen = np.zeros(len(column), np.bool_)
    seen[np.unique(person[order], return_index=True)[1]] = True
    enough = np.flatnonzero(np.cumsum(seen) >= persons)
    return float(column[order[enough[0]]] if len(enough) else column.min())
