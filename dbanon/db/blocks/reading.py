"""Read value counts, a sample, or blocks of rows of a table."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import psycopg
from psycopg import sql

from dbanon.db import catalog, identity, transfer
from dbanon.db.queries import query, selected, template, text_of
from dbanon.domain.errors import DatabaseError
from dbanon.domain.policy import ColumnRule, Policy, Role
from dbanon.domain.table import ColumnInfo, ColumnKind, TableInfo

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

    from dbanon.db.session import Session
    from dbanon.db.transfer import SourceRows
    from dbanon.domain.assignment import Slice


_MASK = (1 << 30) - 1


def value_counts(session: Session, info: TableInfo, policy: Policy, rule: ColumnRule) -> pa.Table:
    """Return the distinct values of a column, ``value``, with their numbers of rows, ``rows``."""
    statement = template(
        "persons.count_values",
        value=_exact(info.column(rule.column), rule.role),
        source=identity.readable_elsewhere(session, info),
        selected=selected(policy, info),
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
    if role is Role.QUASI and column.kind.is_ordered:
        return value
    return sql.SQL('({})::text COLLATE pg_catalog."C"').format(value)


def _literal(column: ColumnInfo, value: object) -> sql.Composable:
    if column.kind in {ColumnKind.DECIMAL, ColumnKind.FLOAT}:
        return sql.SQL("{}::float8").format(sql.Literal(value))
    return sql.Literal(value)


class Snapshot(NamedTuple):
    """The name of a snapshot, and the identity of the server run that has it."""

    name: str
    run: str


def export(session: Session) -> Snapshot:
    """Export the snapshot of the open transaction, which others may use until it ends."""
    row = session.one("SELECT pg_export_snapshot()")
    return Snapshot(row[0], _run(session))


@contextmanager
def sharing(session: Session, snapshot: Snapshot, info: TableInfo) -> Iterator[TableInfo]:
    """Open a transaction that reads a relation on another session's snapshot.

    Raises DatabaseError if that does not exist here: another server or database, or already ended.
    """
    with session.transaction(snapshot=True, read_only=True, keep=False):
        statement = sql.SQL("SET TRANSACTION SNAPSHOT {}").format(snapshot.name)
        try:
            session.pg.execute(statement)
        except (psycopg.DataError, psycopg.ProgrammingError, psycopg.NotSupportedError):
            raise _elsewhere() from None
        if _run(session) != snapshot.run:
            raise _elsewhere()
        found = catalog.describe(session, info.name)
        identity.require_same(info, found)
        identity.admit(session, found)
        yield info
        identity.require_admitted(session)


def _run(session: Session) -> str:
    return str(session.one(query("session.server_run"))[0])


def _elsewhere() -> DatabaseError:
    return DatabaseError(
        "a worker does not see the rows that are to be published: it reaches another server or"
        " database, or the publication has ended meanwhile",
        hint="give every worker the same DBANON_DSN, or the same of libpq's variables",
    )
