"""Why a table cannot meet a model, and what it can meet; in counts and shares, never in values."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from dbanon.models.tally import Tally, Whole

Told = tuple[str, str]
"""What stands against a model, and what is possible, which may be nothing."""


class Case(NamedTuple):
    """A table as one class, and what it is compared with.

    name: the sensitive column as SQL spells it; strictly: whether it is judged in parts of equal
    values of the other sensitive columns.
    """

    name: str
    one: Tally
    whole: Whole
    strictly: bool = False

    @property
    def top(self) -> float:
        """The share of the most frequent value."""
        return float(self.one.shares().max())

    @property
    def distinct(self) -> int:
        """The number of distinct values."""
        return int(self.one.distinct()[0])

    @property
    def shared(self) -> str:
        """How many rows share a value."""
        return f"{100 * self.top:.0f} % of the rows share one value of {self.name}"

    @property
    def several(self) -> str:
        """How many values there are."""
        return f"{self.name} has {self.distinct:,} distinct values"


def shared_value(case: Case) -> Told:
    """Say how many rows share a value, and which share would be possible."""
    return case.shared, f"probabilistic l <= {rounded_down(1 / case.top)}"


def too_few(case: Case, required: int, *, possible: str) -> Told:
    """Say how many values there are; possible: spells a model of a number of them."""
    if case.strictly:
        return case.shared, ""
    return case.several, possible.format(case.distinct) if case.distinct < required else ""


def rounded_down(number: float) -> str:
    """Round down to two places, what is a hair below a number of two places not at all."""
    return f"{math.floor(100 * number + 1e-9) / 100:.2f}"


def rounded_up(number: float) -> str:
    """Round up to two places, what is a hair above a number of two places not at all."""
    return f"{math.ceil(100 * number - 1e-9) / 100:.2f}"
