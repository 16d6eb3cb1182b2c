"""The PostgreSQL type in which a recoding publishes a column."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
_SCALARS = {
    ColumnKind.INTEGER: "int8",
    ColumnKind.DECIMAL: "numeric",
    ColumnKind.FLOAT: "float8",
    ColumnKind.DATE: "date",
    ColumnKind.TIMESTAMP: "timestamp",
    ColumnKind.TIMESTAMPTZ: "timestamptz",
}


def published_type(recoding: str, column: ColumnInfo) -> str:
    """Return the type's name; ranges and scalars keep the width of an integer column."""
    kind = column.kind
    if recoding == "interval":
        wide = "int8range" if column.base_type == "int8" else "int4range"
        return _RANGES.get(kind, wide)
    if recoding == "mean":
        return "numeric" if kind in {ColumnKind.INTEGER, ColumnKind.FLOAT} else _SCALARS[kind]
    if recoding in {"median", "mode", "set"}:
        scalar = column.base_type if kind is ColumnKind.INTEGER else _SCALARS.get(kind, "text")
        return f"{scalar}[]" if recoding == "set" else scalar
    return "text"
