"""Share one snapshot between sessions, also on different machines."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import psycopg
from psycopg import sql

from dbanon.db import catalog, identity
from dbanon.db.queries import query
from dbanon.domain.errors import DatabaseError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dbanon.db.session import Session
    from dbanon.domain.table import TableInfo


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
