"""How many rows an algorithm takes, and for which k."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbanon.domain.errors import Unsatisfiable

if TYPE_CHECKING:
    from dbanon.anonymization.interfaces import Requirement
    from dbanon.domain.assignment import EncodedTable


def require_at_most(limit: int, table: EncodedTable, *, algorithm: str) -> None:
    """Raise Unsatisfiable when the table is too large for an algorithm that compares all pairs."""
    if table.n_rows > limit:
        msg = f"{algorithm} takes at most {limit:,} rows at once; the table has {table.n_rows:,}"
        raise Unsatisfiable(msg, hint=f"--algorithm auto, or --block {limit}")


def require_small_k(limit: int, requirement: Requirement, *, algorithm: str) -> None:
    """Raise Unsatisfiable when k is more than the groups of an algorithm can have."""
    if requirement.k > limit:
        msg = f"{algorithm} makes {limit}-anonymous groups, and k = {requirement.k} asks for more"
        raise Unsatisfiable(msg, hint="--algorithm forest")
