"""Load SQL from files; psycopg composes identifiers, never string formatting."""

from __future__ import annotations

from typing import TYPE_CHECKING

from psycopg import sql

from dbanon import resources

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dbanon.domain.table import ColumnInfo, TableName


def query(name: str) -> sql.SQL:
    """Return a statement by its family and name, such as ``turns.take``."""
    return sql.SQL(resources.statement(name))


def template(name: str, **slots: sql.Composable) -> sql.Composed:
    """Fill the ``{slots}`` of a statement, or of a part of one, by its family and name."""
    return sql.SQL(resources.statement(name)).format(**slots)


def function(name: str) -> sql.SQL:
    """Return the definition in ``sql/functions/<name>.sql``."""
    return sql.SQL(resources.sql("functions", name))


def relation(name: TableName) -> sql.Identifier:
    """Quote a schema-qualified name."""
    if name.schema is None:
        return sql.Identifier(name.name)
    return sql.Identifier(name.schema, name.name)


def text_of(column: ColumnInfo, value: sql.Composable) -> sql.Composed:
    """Compose the text of a value of the column.

    A cast from a user-defined type would run its owner's code as the reader; format() does not.
    """
    if column.base_schema == "pg_catalog":
        return sql.SQL("{}::text").format(value)
    return sql.SQL("CASE WHEN {0} IS NOT NULL THEN format('%s', {0}) END").format(value)


# Equal numbers may have more zeros at their end, zero may have a sign, and a day is 24 hours.
_SPELLED_ALIKE = {
    "numeric": "trim_scale({})::text",
    "float4": "CASE WHEN {0} = 0 THEN '0' ELSE {0}::text END",
    "float8": "CASE WHEN {0} = 0 THEN '0' ELSE {0}::text END",
    "interval": "justify_interval({})::text",
}


def equal_text(column: ColumnInfo, value: sql.Composable) -> sql.Composed:
    """Compose a text that two values of the column share if and only if they are equal.

    Reading, counting, checks and hashes all compare values by it; ``dbanon.equal_text`` is its twin
    in the database. Values of other types are equal if their texts are, or are refused
    (``ColumnInfo.is_equal_by_text``).
    """
    if column.base_schema == "pg_catalog" and column.base_type in _SPELLED_ALIKE:
        return sql.SQL(_SPELLED_ALIKE[column.base_type]).format(value)
    return text_of(column, value)


def lasting_value(column: ColumnInfo, value: sql.Composable) -> sql.Composable:
    """Compose a value of the column in a type that only a superuser can change or drop."""
    if column.shown is not None:
        target = sql.Identifier("pg_catalog", column.shown)
        if (column.base_schema, column.base_type) != ("pg_catalog", column.shown):
            value = text_of(column, value)
        value = sql.SQL("({})::{}").format(value, target)
    if column.foreign_collation:
        value = sql.SQL('{} COLLATE pg_catalog."default"').format(value)
    return value


def identifiers(names: Iterable[str], *, of: str | None = None) -> sql.Composed:
    """Quote names and join them with commas, each qualified by the alias ``of`` if given."""
    parts = [sql.Identifier(name) if of is None else sql.Identifier(of, name) for name in names]
    return sql.SQL(", ").join(parts)
