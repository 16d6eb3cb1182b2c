"""Rounding to a base, and discretization."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from dbanon.anonymization.masking.interfaces import NumberMasking
from dbanon.domain.errors import PolicyError

if TYPE_CHECKING:
    from dbanon.anonymization.masking.interfaces import Rows
    from dbanon.kernels.arrays import Floats


@dataclass(frozen=True, slots=True)
class Rounding(NumberMasking):
    """Round to the nearest multiple of ``base``, to the even one of two (days for dates)."""

    base: float

    whole: ClassVar[bool] = False
    solvable: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Raise PolicyError for what is no such parameter."""
        if self.base <= 0.0:
            raise PolicyError("base of rounding is more than 0")

    @property
    def least(self) -> int:
        """How many persons the rows must be of, or it hides nobody among them."""
        return 1

    def mask(self, values: Floats, rows: Rows) -> Floats:  # noqa: ARG002 - of the interface
        """Return multiples of the base."""
        return np.asarray(np.rint(values / self.base) * self.base)


@dataclass(frozen=True, slots=True)
class Discretization(NumberMasking):
    """Cut the range into bins, [a, b) but for the last, and give the middle of the bin of each.

    ``bins`` are as wide as each other with ``by = "width"``, and have about as many rows with
    ``by = "quantile"``.
    """

    bins: int
    by: Literal["quantile", "width"] = "quantile"

    def __post_init__(self) -> None:
        """Raise PolicyError for what is no such parameter."""
        if self.bins < 1:
            raise PolicyError("bins of discretization is at least 1")

    def mask(self, values: Floats, rows: Rows) -> Floats:  # noqa: ARG002 - of the interface
        """Return the middles of the bins; O(n log n)."""
        steps = np.linspace(0.0, 1.0, self.bins + 1)
        if self.by == "width":
            least, greatest = values.min(), values.max()
            edges = least + steps * (greatest - least)
        else:
            edges = np.unique(np.quantile(values, steps))
        if len(edges) == 1:
            return values.copy()
        place = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)
        return np.asarray((edges[place] + edges[place + 1]) / 2)
