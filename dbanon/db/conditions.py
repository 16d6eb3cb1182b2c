"""The conditions of a policy on the rows of its table, in SQL."""

from __future__ import annotations

from psycopg import sql

from dbanon.db.queries import text_of
from dbanon.domain.policy import Comparison, Condition, Policy
from dbanon.domain.table import ColumnInfo, ColumnKind, TableInfo

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
