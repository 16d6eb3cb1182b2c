"""Load SQL from files; psycopg composes identifiers, never string formatting."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from psycopg import sql

from dbanon import resources
from dbanon.domain.policy import Comparison
from dbanon.domain.table import ColumnInfo, ColumnKind, TableInfo, TableName, quote_identifier
from dbanon.domain.text import is_seen, visible

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dbanon.domain.policy import Condition, Policy


def query(name: str) -> sql.SQL:
    """Return a statement by its family and name, such as ``publication_lock.take``."""
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


def named(name: TableName) -> dict[str, str | None]:
    """Return the name of a relation as parameters of a statement."""
    return {"schema": name.schema, "name": name.name}


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


def keyed_hash(document: sql.Composable, key: sql.Composable) -> sql.Composed:
    """Compose the hash of a text by a row of the table of keys."""
    return template("persons.keyed_hash", document=document, key=key)


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


def key_values(info: TableInfo, *, of: str) -> list[sql.Composed]:
    """Compose the primary key of the relation ``of`` in base types, without domain code."""
    return [
        sql.SQL("{}::{}").format(
            sql.Identifier(of, column.name), sql.Identifier(column.base_schema, column.base_type)
        )
        for column in map(info.column, info.primary_key)
    ]


def identifiers(names: Iterable[str], *, of: str | None = None) -> sql.Composed:
    """Quote names and join them with commas, each qualified by the alias ``of`` if given."""
    parts = [sql.Identifier(name) if of is None else sql.Identifier(of, name) for name in names]
    return sql.SQL(", ").join(parts)


# Names are written as U&"...", which these settings make mean what dbanon means by them.
SETTINGS = (
    "SET LOCAL standard_conforming_strings = on",
    "SET LOCAL search_path = pg_catalog, pg_temp",
)
_STRING = re.compile(r"(E?)'((?:[^']|'')*)'")


class Body(sql.Composable):
    """The text of a function as a literal; dollar-quoting could clash with a column's name."""

    def as_bytes(self, context: object = None) -> bytes:
        """Return the literal for PostgreSQL."""
        text: sql.Composable = self._obj
        return sql.Literal(text.as_string(context)).as_bytes(context)  # type: ignore[arg-type]

    def printed(self) -> str:
        """Return the literal for people."""
        return sql.Literal(printed(self._obj)).as_string()


def printed(statement: sql.Composable) -> str:
    r"""Return the text of a statement, with names and values that psql cannot misread.

    psql ends the data of a COPY at a line ``\.``, after which a command may follow; a terminal
    obeys control characters. Such names are printed as ``U&"..."`` and values as ``E'...'``.
    """
    if isinstance(statement, sql.Composed):
        return "".join(map(printed, statement))
    if isinstance(statement, Body):
        return statement.printed()
    text = statement.as_string()
    if isinstance(statement, sql.Identifier) and not all(map(is_seen, text)):
        return ".".join(map(quote_identifier, statement._obj))  # noqa: SLF001 - its parts
    if isinstance(statement, sql.Literal) and not all(map(is_seen, text)):
        return _STRING.sub(_escaped, text)
    return text


def script(statements: Iterable[str], *, end: str) -> str:
    """Return printed statements as a psql script with one transaction; a COPY gets no rows."""
    lines = [
        f"{text};\n\\." if text.startswith("COPY ") else f"{text};"
        for text in ("BEGIN", *SETTINGS, *statements, end)
    ]
    return "\n\n".join([*lines, ""])


def _escaped(string: re.Match[str]) -> str:
    """Escape a string literal of psycopg, which has a backslash only after an E."""
    return f"E'{visible(string[2])}'" if not all(map(is_seen, string[2])) else string[0]


ALL = sql.SQL("true")

# Casts for comparing a column with a value; all others as texts. real goes through text, so that
# it is the value people mean.
_COMPARED = {
    ColumnKind.INTEGER: ("{}::int8", "{}::numeric"),
    ColumnKind.DECIMAL: ("{}::numeric", "{}::numeric"),
    ColumnKind.FLOAT: ("{}::text::float8", "{}::float8"),
    ColumnKind.DATE: ("{}::date", "{}::date"),
    ColumnKind.TIMESTAMP: ("{}::timestamp", "{}::timestamp"),
    ColumnKind.TIMESTAMPTZ: ("{}::timestamptz", "{}::timestamptz"),
}
_OPERATORS = {
    Comparison.EQUAL: "({} = {})",
    Comparison.DIFFERENT: "({} <> {})",
    Comparison.BELOW: "({} < {})",
    Comparison.AT_MOST: "({} <= {})",
    Comparison.ABOVE: "({} > {})",
    Comparison.AT_LEAST: "({} >= {})",
    Comparison.BETWEEN: "({} BETWEEN {} AND {})",
    Comparison.IS_NULL: "({} IS NULL)",
    Comparison.IS_NOT_NULL: "({} IS NOT NULL)",
}


def selected(policy: Policy, info: TableInfo) -> sql.Composable:
    """Compose the conjunction of the policy's conditions; NULL does not meet one."""
    if not policy.where:
        return ALL
    parts = (_met(condition, info.column(condition.column)) for condition in policy.where)
    return sql.SQL(" AND ").join(parts)


def _met(condition: Condition, column: ColumnInfo) -> sql.Composed:
    name = sql.Identifier(column.name)
    if column.kind in _COMPARED:
        of_column, of_value = _COMPARED[column.kind]
        left = sql.SQL(of_column).format(name)
        values: list[sql.Composable] = [
            sql.SQL(of_value).format(sql.Literal(value)) for value in condition.values
        ]
    else:
        left = sql.SQL('({} COLLATE pg_catalog."C")').format(text_of(column, name))
        texts = [str(v).lower() if isinstance(v, bool) else str(v) for v in condition.values]
        values = list(map(sql.Literal, texts))
    if condition.comparison is Comparison.IN:
        return sql.SQL("({} IN ({}))").format(left, sql.SQL(", ").join(values))
    return sql.SQL(_OPERATORS[condition.comparison]).format(left, *values)
