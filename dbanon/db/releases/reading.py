"""Read a published relation as Arrow, in types that data frames support."""

from __future__ import annotations

import io
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
from psycopg import sql
from pyarrow import csv

from dbanon.db.queries import relation
from dbanon.domain.table import ColumnKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dbanon.db.session import Session
    from dbanon.domain.table import ColumnInfo, TableName

RANGES: Mapping[str, ColumnKind] = {
    "int4range": ColumnKind.INTEGER,
    "int8range": ColumnKind.INTEGER,
    "numrange": ColumnKind.FLOAT,
    "daterange": ColumnKind.DATE,
    "tsrange": ColumnKind.TIMESTAMP,
    "tstzrange": ColumnKind.TIMESTAMPTZ,
}
"""What the ends of a range are."""

COUNTED = "dbanon: how many"
"""The name of the counts among texts, which no column of a relation has."""

_MICROSECONDS = "CASE WHEN isfinite({0}) THEN (extract(epoch FROM {0}) * 1000000)::int8 END"
_READ: Mapping[ColumnKind, tuple[str, pa.DataType]] = {
    ColumnKind.INTEGER: ("{}::int8", pa.int64()),
    ColumnKind.DECIMAL: ("{}::float8", pa.float64()),
    ColumnKind.FLOAT: ("{}::float8", pa.float64()),
    ColumnKind.BOOLEAN: ("{}::bool", pa.bool_()),
    **dict.fromkeys(filter(attrgetter("is_moment"), ColumnKind), (_MICROSECONDS, pa.int64())),
}
_OF_TEXT = ("{}::text", pa.string())
_DISCRETE = frozenset({"int4range", "int8range", "daterange"})


class _Part(NamedTuple):
    expression: sql.Composed
    type: pa.DataType


def read(session: Session, name: TableName, columns: Iterable[ColumnInfo]) -> list[pa.Table]:
    """Return one table per column, with the values of all rows.

    A table has one column ``value``; for a range, its bounds ``low`` and ``high`` (NULL if open),
    ``closed`` (True if the range includes ``high``) and ``known`` (False if the range is NULL).
    Times are microseconds since 1970, in UTC if they have a zone; infinite ones are NULL. Sets are
    JSON.
    """
    columns = list(columns)
    parts = [_parts(column) for column in columns]
    flat = [part for own in parts for part in own.values()]
    statement = sql.SQL("COPY (SELECT {} FROM {}) TO STDOUT (FORMAT csv)").format(
        sql.SQL(", ").join(part.expression for part in flat), relation(name)
    )
    types = {str(i): part.type for i, part in enumerate(flat)}
    found = iter(_copied(session, statement, types).columns)
    return [pa.table({key: next(found) for key in own}) for own in parts]


def texts(
    session: Session, name: TableName, columns: Sequence[str], *, counted: str | None = None
) -> pa.Table:
    """Return the distinct rows of some columns, as texts, sorted, and their number in ``COUNTED``.

    counted: a column with the number of rows that each row represents; without it each counts once.
    """
    shown = [sql.SQL("{}::text").format(sql.Identifier(column)) for column in columns]
    one = sql.SQL("1") if counted is None else sql.Identifier(counted)
    count = sql.SQL("sum({})::int8").format(one)
    numbers = sql.SQL(", ").join(map(sql.Literal, range(1, len(shown) + 1)))
    statement = sql.SQL("COPY (SELECT {}, {} FROM {} GROUP BY {}) TO STDOUT (FORMAT csv)").format(
        sql.SQL(", ").join(shown), count, relation(name), numbers
    )
    types = {str(i): pa.string() for i in range(len(shown))} | {COUNTED: pa.int64()}
    keys = [(str(i), "ascending") for i in range(len(shown))]  # else groups come in any order
    found = _copied(session, statement, types).sort_by(keys)
    return found.rename_columns([*columns, COUNTED])


def _copied(
    session: Session, statement: sql.Composed, types: Mapping[str, pa.DataType]
) -> pa.Table:
    """Run a COPY to CSV, and parse what it gives."""
    buffer = _bytes(session, statement)
    if not buffer.tell():
        return pa.schema(types.items()).empty_table()
    convert = csv.ConvertOptions(
        column_types=types,
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
        true_values=["t"],
        false_values=["f"],
    )
    parse = csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False)
    read = csv.ReadOptions(column_names=list(types))
    return csv.read_csv(io.BytesIO(buffer.getbuffer()), read, parse, convert)


def _bytes(session: Session, statement: sql.Composed) -> io.BytesIO:
    buffer = io.BytesIO()
    with session.pg.cursor().copy(statement) as rows:
        for block in rows:
            buffer.write(block)
    return buffer


def as_csv(session: Session, name: TableName) -> bytes:
    """Return all rows as CSV with a header, in the texts of PostgreSQL."""
    statement = sql.SQL("COPY (SELECT * FROM {}) TO STDOUT (FORMAT csv, HEADER)")
    return _bytes(session, statement.format(relation(name))).getvalue()


def _parts(column: ColumnInfo) -> dict[str, _Part]:
    name = sql.Identifier(column.name)
    if column.base_type in RANGES:
        return _ends(column.base_type, name)
    if column.base_type.startswith("_"):
        return {"value": _part(("to_json({})::text", pa.string()), name)}
    return {"value": _part(_READ.get(column.kind, _OF_TEXT), name)}


def _ends(base_type: str, name: sql.Identifier) -> dict[str, _Part]:
    low, high = sql.SQL("lower({})").format(name), sql.SQL("upper({})").format(name)
    closed = sql.SQL("upper_inc({})").format(name)
    if base_type in _DISCRETE:  # PostgreSQL makes them half-open
        high, closed = sql.SQL("({} - 1)").format(high), sql.SQL("true").format()
    kind = _READ[RANGES[base_type]]
    return {
        "low": _part(kind, low),
        "high": _part(kind, high),
        "closed": _part(_READ[ColumnKind.BOOLEAN], closed),
        "known": _part(("({} IS NOT NULL)", pa.bool_()), name),
    }


def _part(kind: tuple[str, pa.DataType], value: sql.Composable) -> _Part:
    expression, read_as = kind
    return _Part(sql.SQL(expression).format(value), read_as)
