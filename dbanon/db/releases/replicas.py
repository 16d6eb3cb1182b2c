"""Replica identities: what publications require of tables that are updated or deleted from.

PostgreSQL refuses to update a table, or to delete from it, if a publication includes the table and
nothing identifies its rows. A publication FOR ALL TABLES includes those of dbanon.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from psycopg import sql

from dbanon.db.locks import Held, patiently
from dbanon.db.queries import query, relation
from dbanon.domain.errors import DatabaseError
from dbanon.domain.table import TableName

if TYPE_CHECKING:
    from dbanon.db.session import Session

# How long to wait for those who read a table of an older dbanon.
PATIENCE = 3.0


def identity_statement(table: sql.Composable) -> sql.Composed:
    """Compose the statement that lets any publication include a table, which may have no key."""
    return sql.SQL("ALTER TABLE {} REPLICA IDENTITY FULL").format(table)


def unidentified(session: Session, *tables: sql.Composable) -> dict[int, TableName]:
    """Return, by OID, which of the tables a publication prevents from being changed."""
    names = [table.as_string() for table in tables]
    rows = session.pg.execute(query("releases/unidentified"), {"tables": names}).fetchall()
    return {oid: TableName(schema, name) for oid, schema, name in rows}


def ensure(session: Session, *tables: sql.Composable) -> None:
    """Give tables of an older dbanon a replica identity, if a publication requires it.

    Nobody may be reading them. Raises DatabaseError if somebody would not stop.
    """
    for oid, name in unidentified(session, *tables).items():
        identify = partial(session.pg.execute, identity_statement(relation(name)))
        try:
            patiently(session, identify, on=[oid], budget=PATIENCE)
        except Held as held:
            raise DatabaseError(
                f"{name} has no replica identity, which a publication requires, and {held} is"
                " using it; nothing was changed",
                hint=f"{held.remedy}run the command again",
            ) from None


def private_publications(session: Session) -> list[tuple[str, int]]:
    """Return the publications that include private tables, and how many of these."""
    return session.pg.execute(query("releases/private_publications")).fetchall()
