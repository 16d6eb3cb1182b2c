"""Replace the view that readers use without losing what hangs on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import psycopg
from psycopg import sql

from dbanon.db.queries import query, relation
from dbanon.domain.errors import DatabaseError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dbanon.db.session import Session
    from dbanon.domain.table import TableName


@dataclass(frozen=True, slots=True)
class Privilege:
    """One grant on a view, or on one of its columns; an empty grantee is PUBLIC."""

    grantee: str
    privilege: str
    grantable: bool
    column: str | None

    def statement(self, view: TableName) -> sql.Composed:
        """Compose the GRANT that restores it."""
        columns = sql.Composed([])
        if self.column is not None:
            columns = sql.SQL(" ({})").format(sql.Identifier(self.column))
        return sql.SQL("GRANT {}{} ON {} TO {}{}").format(
            sql.SQL(self.privilege),  # from the catalog, one of PostgreSQL's own words
            columns,
            relation(view),
            sql.Identifier(self.grantee or "public"),
            sql.SQL(" WITH GRANT OPTION" if self.grantable else ""),
        )


def oid_of(session: Session, name: TableName) -> int | None:
    """Return the OID of whatever relation has that name, None if there is none."""
    row = session.pg.execute(query("relation_oid"), (name.schema, name.name)).fetchone()
    return row[0] if row else None


def serves(session: Session, view: int, release_id: int) -> bool:
    """Whether the relation with that OID is the view that serves a release."""
    tables = [f"{prefix}_{release_id}" for prefix in ("release", "rows")]
    row = session.pg.execute(query("serves_release"), {"view": view, "tables": tables}).fetchone()
    return row is not None and row[0]


def replace(session: Session, view: TableName, create: sql.Composed) -> None:
    """Run a CREATE OR REPLACE VIEW, keeping grants even when the columns change.

    PostgreSQL replaces a view in place only while its columns stay; otherwise the view is made
    anew. One that other objects depend on cannot be: DatabaseError says so.
    """
    try:
        with session.pg.transaction():
            session.pg.execute(create)
    except psycopg.errors.InvalidTableDefinition:
        grants = _grants(session, view)
        _drop(session, view)
        session.pg.execute(create)
        for grant in grants:
            _restore(session, view, grant)
    _assert_barrier(session, view)


def _grants(session: Session, view: TableName) -> list[Privilege]:
    rows = session.pg.execute(query("grants"), (view.schema, view.name)).fetchall()
    return [Privilege(*row) for row in rows]


def _drop(session: Session, view: TableName) -> None:
    try:
        session.pg.execute(sql.SQL("DROP VIEW {}").format(relation(view)))
    except psycopg.errors.DependentObjectsStillExist:
        raise DatabaseError(
            f"the columns of {view} change, and other objects depend on it",
            hint="publish under another --name, or drop what depends on it first",
        ) from None


def _restore(session: Session, view: TableName, grant: Privilege) -> None:
    try:
        with session.pg.transaction():
            session.pg.execute(grant.statement(view))
    except psycopg.errors.UndefinedColumn:
        return  # the column that was granted is no longer published


def _assert_barrier(session: Session, view: TableName) -> None:
    row = session.pg.execute(query("view_options"), (view.schema, view.name)).fetchone()
    if row is None or "security_barrier=true" not in (row[0] or ()):
        raise DatabaseError(f"{view} was created without security_barrier")


def schema_statements(session: Session, view: TableName) -> Iterator[sql.Composed]:
    """Yield what creates the schema of a view, nothing if it is there."""
    if session.pg.execute(query("schema_exists"), (view.schema,)).fetchone() is None:
        yield sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(view.schema or "public"))


def ensure_schema(session: Session, view: TableName) -> None:
    """Create the schema of a view unless it is there."""
    for statement in schema_statements(session, view):
        session.pg.execute(statement)


def drop(session: Session, view: TableName, *, release_id: int) -> None:
    """Drop the view that serves a release; what somebody else put in its place stays.

    Raises DatabaseError when other objects depend on it.
    """
    oid = oid_of(session, view)
    if oid is not None and serves(session, oid, release_id):
        _drop(session, view)
