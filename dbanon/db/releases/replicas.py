"""Replica identities: what publications require of tables that are updated or deleted from.

PostgreSQL refuses to update a table, or to delete from it, if a publication includes the table and
nothing identifies its rows. A publication FOR ALL TABLES includes those of dbanon.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from psycopg import sql

from dbanon.db.queries import query

if TYPE_CHECKING:
    from dbanon.db.session import Session


def identity_statement(table: sql.Composable) -> sql.Composed:
    """Compose the statement that lets any publication include a table, which may have no key."""
    return sql.SQL("ALTER TABLE {} REPLICA IDENTITY FULL").format(table)


def private_publications(session: Session) -> list[tuple[str, int]]:
    """Return the publications that include private tables, and how many of these."""
    return session.pg.execute(query("releases/private_publications")).fetchall()
