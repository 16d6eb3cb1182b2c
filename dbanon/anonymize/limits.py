"""How many rows an algorithm takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbanon.domain.errors import Unsatisfiable

if TYPE_CHECKING:
    from dbanon.domain.assignment import EncodedTable


def require_at_most(limit: int, table: EncodedTable, *, algorithm: str) -> None:
    """Raise Unsatisfiable when the table is too large for an algorithm that compares all pairs."""
    if table.n_rows > limit:
        msg = f"{algorithm} takes at most {limit:,} rows at once; the table has {table.n_rows:,}"
        raise Unsatisfiable(msg, hint=f"--algorithm auto, or --block {limit}")
