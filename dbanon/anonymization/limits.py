"""How many rows an algorithm takes, for which k, and which libraries it needs."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dbanon.domain.errors import ConfigError, Unsatisfiable

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


def library(name: str) -> Any:  # noqa: ANN401 - any module
    """Import a module of scipy, networkx or scikit-learn; raise ConfigError when it is missing."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        msg = f"this algorithm needs {name.partition('.')[0]}, which is not installed"
        raise ConfigError(msg, hint="pip install --upgrade --force-reinstall dbanon") from error
