"""What is allowed and seldom meant."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Caution:
    """Something in a policy that weakens what it promises; ``column`` is None for all of it."""

    column: str | None
    message: str
    hint: str

    def __str__(self) -> str:
        """Say it on one line."""
        return f"{self.message} (try: {self.hint})"


@dataclass(frozen=True, slots=True)
class Contents:
    """How many values a column has, and how many differ from another one.

    n_filled: rows whose value is not NULL; n_alike: the distinct values that differ from another
    only in case, blanks or the form of their characters, 0 where nobody has looked.
    """

    n_filled: int
    n_distinct: int
    n_alike: int = 0
