"""Explain why a table cannot meet a model, and what is possible; in figures, never values."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from dbanon.models.tally import Tally, Whole

Told = tuple[str, str]
"""What stands against a model, and what is possible, which may be nothing."""


class Case(NamedTuple):
    """A table as one class, and the relation it is compared with.

    name: the quoted sensitive column; strictly: assessed by parts of equal values of the other
    sensitive columns.
    """

    name: str
    one: Tally
    whole: Whole
    strictly: bool = False

    @property
    def top(self) -> float:
        """Share of the most frequent value."""
        return float(self.one.shares().max())

    @property
    def distinct(self) -> int:
        """Number of distinct values."""
        return int(self.one.distinct()[0])

    @property
    def shared(self) -> str:
        """Share of the most frequent value as text."""
        return f"{100 * self.top:.0f} % of the rows share one value of {self.name}"

    @property
    def several(self) -> str:
        """Number of distinct values as text."""
        return f"{self.name} has {self.distinct:,} distinct values"


def shared_value(case: Case) -> Told:
    """Return the share of the most frequent value, and a possible share."""
    return case.shared, f"probabilistic l <= {rounded_down(1 / case.top)}"


def too_few(case: Case, required: int, *, possible: str) -> Told:
    """Return the number of values; possible: format of a model with that number."""
    if case.strictly:
        return case.shared, ""
    return case.several, possible.format(case.distinct) if case.distinct < required else ""


def rounded_down(number: float) -> str:
    """Round down to two places, tolerating float errors."""
    return f"{math.floor(100 * number + 1e-9) / 100:.2f}"


def rounded_up(number: float) -> str:
    """Round up to two places, tolerating float errors."""
    return f"{math.ceil(100 * number - 1e-9) / 100:.2f}"
