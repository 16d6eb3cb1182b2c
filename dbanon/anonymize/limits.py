"""How many rows an algorithm takes, and how many it may leave out."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from dbanon.domain.errors import Unsatisfiable

if TYPE_CHECKING:
    from dbanon.domain.assignment import EncodedTable


def require_at_most(limit: int, table: EncodedTable, *, algorithm: str) -> None:
    """Raise Unsatisfiable when the table is too large for an algorithm that compares all pairs."""
    if table.n_rows > limit:
        msg = f"{algorithm} takes at most {limit:,} rows at once; the table has {table.n_rows:,}"
        raise Unsatisfiable(msg, hint=f"--algorithm auto, or --block {limit}")


def most_suppressed(share: float, table: EncodedTable) -> int:
    """Return how many rows a share is at most; exact for the decimal that the user wrote."""
    return math.floor(Fraction(repr(share)) * table.n_rows)
