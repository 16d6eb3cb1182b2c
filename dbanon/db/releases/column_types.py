"""The PostgreSQL types of published columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbanon.domain.policy import BOUNDS, CENTER, GLOBAL, PAIRS
from dbanon.domain.table import ColumnKind

if TYPE_CHECKING:
    from dbanon.domain.table import ColumnInfo

_RANGES = {
    ColumnKind.DECIMAL: "numrange",
    ColumnKind.FLOAT: "numrange",
    ColumnKind.DATE: "daterange",
    ColumnKind.TIMESTAMP: "tsrange",
    ColumnKind.TIMESTAMPTZ: "tstzrange",
}
_BOUNDS = {
    ColumnKind.DECIMAL: "numeric",
    ColumnKind.FLOAT: "numeric",
    ColumnKind.DATE: "date",
    ColumnKind.TIMESTAMP: "timestamp",
    ColumnKind.TIMESTAMPTZ: "timestamptz",
}
_SCALARS = {
    ColumnKind.INTEGER: "int8",
    ColumnKind.DECIMAL: "numeric",
    ColumnKind.FLOAT: "float8",
    ColumnKind.DATE: "date",
    ColumnKind.TIMESTAMP: "timestamp",
    ColumnKind.TIMESTAMPTZ: "timestamptz",
}


def stored_type(recoding: str, column: ColumnInfo) -> str:
    """Return the type of a value in the group table; a pair of columns is stored as a range."""
    return published_type("interval" if recoding in PAIRS else recoding, column)


def published_type(recoding: str, column: ColumnInfo) -> str:
    """Return the type of a published column (of two, the first); integers keep their width."""
    kind = column.kind
    if recoding == BOUNDS:
        return _BOUNDS.get(kind, "int8" if column.base_type == "int8" else "int4")
    if recoding == "interval" or (recoding == GLOBAL and kind.is_ordered):
        wide = "int8range" if column.base_type == "int8" else "int4range"
        return _RANGES.get(kind, wide)
    if recoding in {"mean", "midpoint", CENTER}:
        return "numeric" if kind in {ColumnKind.INTEGER, ColumnKind.FLOAT} else _SCALARS[kind]
    if recoding in {"median", "mode", "set", "cell-suppression"}:
        scalar = column.base_type if kind is ColumnKind.INTEGER else _SCALARS.get(kind, "text")
        return f"{scalar}[]" if recoding == "set" else scalar
    return "text"
