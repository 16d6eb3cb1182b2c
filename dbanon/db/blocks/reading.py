"""Read value counts, a sample, or blocks of rows of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from psycopg import sql

from dbanon.db import identity, transfer
from dbanon.db.queries import template, text_of
from dbanon.domain.policy import Role
from dbanon.domain.table import ColumnKind

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

    from dbanon.db.session import Session
    from dbanon.db.transfer import SourceRows
    from dbanon.domain.assignment import Slice
    from dbanon.domain.policy import ColumnRule, Policy
    from dbanon.domain.table import ColumnInfo, TableInfo

_ON_A_LINE = frozenset({ColumnKind.INTEGER, ColumnKind.DECIMAL, ColumnKind.FLOAT})
_MOMENTS = frozenset({ColumnKind.DATE, ColumnKind.TIMESTAMP, ColumnKind.TIMESTAMPTZ})
_MASK = (1 << 30) - 1


def value_counts(session: Session, info: TableInfo, policy: Policy, rule: ColumnRule) -> pa.Table:
    """Return the distinct values of a column, ``value``, with their numbers of rows, ``rows``."""
    statement = template(
        "persons.count_values",
        value=_exact(info.column(rule.column), rule.role),
        source=identity.readable_elsewhere(session, info),
        selected=transfer.selected(policy, info),
    )
    return transfer.fetch(session, info, statement, names=("rows", "value"), keys=1)


def read_sample(
    session: Session, info: TableInfo, policy: Policy, *, share: float, seed: int
) -> SourceRows:
    """Read a share of the rows, drawn by a hash of seed and keys, not by their order."""
    drawn: sql.Composable = sql.Literal(seed)
    for name in info.primary_key:
        key = text_of(info.column(name), sql.Identifier(name))
        exact = sql.SQL('({}) COLLATE pg_catalog."C"').format(key)
        drawn = sql.SQL("hashtextextended({}, {})").format(exact, drawn)
    most = sql.Literal(round(share * (_MASK + 1)))
    within = template("persons.is_drawn", hash=drawn, mask=sql.Literal(_MASK), most=most)
    return transfer.read(session, info, policy, within=within)


def read_block(
    session: Session, info: TableInfo, policy: Policy, slices: Iterable[Slice]
) -> SourceRows:
    """Read the rows with values in all of some slices."""
    parts = [_within(info.column(one.column), one) for one in slices]
    within = sql.SQL(" AND ").join([sql.SQL("true"), *parts])
    return transfer.read(session, info, policy, within=within)


def _within(column: ColumnInfo, values: Slice) -> sql.Composed:
    value = _exact(column, Role.QUASI)
    null = sql.SQL("{} IS NULL").format(value)
    if values.among:
        listed = sql.SQL(", ").join(_literal(column, one) for one in values.among)
        some = sql.SQL("{} IN ({})").format(value, listed)
    elif values.least is not None:
        ends = [_literal(column, end) for end in (values.least, values.most)]
        some = sql.SQL("{} BETWEEN {} AND {}").format(value, *ends)
    else:
        return null
    return sql.SQL("({} OR {})").format(some, null) if values.nulls else some


def _exact(column: ColumnInfo, role: Role) -> sql.Composed:
    """Compose the expression that is read, so that values are equal only if read as equal."""
    value = transfer.value_of(column, role)
    if role is Role.QUASI and column.kind in _ON_A_LINE | _MOMENTS:
        return value
    return sql.SQL('({})::text COLLATE pg_catalog."C"').format(value)


def _literal(column: ColumnInfo, value: object) -> sql.Composable:
    if column.kind in {ColumnKind.DECIMAL, ColumnKind.FLOAT}:
        return sql.SQL("{}::float8").format(sql.Literal(value))
    return sql.Literal(value)
