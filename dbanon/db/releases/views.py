"""Replace the published view and preserve its privileges."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psycopg
from psycopg import sql

from dbanon.db import catalog
from dbanon.db.identity import serves
from dbanon.db.locks import patiently
from dbanon.db.queries import query, relation
from dbanon.db.releases.aside import set_aside
from dbanon.domain.errors import DatabaseError
from dbanon.domain.wording import is_of_steward

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dbanon.db.session import Session
    from dbanon.domain.table import TableName

# How long, in seconds, to try to replace a view that others are reading.
PATIENCE = 60.0


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


class DependedOn(DatabaseError):
    """Other objects depend on a relation that should be dropped."""


@contextmanager
def dropping(name: TableName) -> Iterator[None]:
    """Raise DependedOn if the DROP in the block fails because of dependent objects."""
    try:
        yield
    except psycopg.errors.DependentObjectsStillExist:
        raise DependedOn(
            f"other objects depend on {name}", hint="drop what depends on it first"
        ) from None


def oids_of(session: Session, names: Iterable[TableName]) -> list[int]:
    """Return the OIDs of those relations that exist."""
    return [oid for name in names if (oid := oid_of(session, name)) is not None]


def oid_of(session: Session, name: TableName) -> int | None:
    """Return the OID of the relation with that name, None if there is none."""
    row = session.pg.execute(query("catalog.relation_oid"), (name.schema, name.name)).fetchone()
    return row[0] if row else None


def replace(session: Session, view: TableName, create: sql.Composed) -> TableName | None:
    """Run CREATE OR REPLACE VIEW, or create the view again with its grants if its columns change.

    Returns the new name of the previous view if other relations depend on it; it then shows no
    rows.
    """
    left = None
    try:
        with session.pg.transaction():
            session.pg.execute(create)
    except psycopg.errors.InvalidTableDefinition:
        held, oid = grants(session, view), oid_of(session, view) or 0
        left = set_aside(session, view, oid=oid, is_view=True)
        session.pg.execute(create)
        for grant in held:
            _restore(session, view, grant)
    _assert_barrier(session, view)
    return left


def same(session: Session, one: int, other: int) -> bool:
    """Return True if two views, given by OID, have equal definitions and column types."""
    return session.one(query("releases.same_view"), {"one": one, "other": other}) == (True,)


def put_in_place(
    session: Session, view: TableName, create: sql.Composed, *, candidate: TableName
) -> TableName | None:
    """Replace the published view by one equal to the candidate, unless it is equal already.

    Replacing needs an exclusive lock, in short attempts. Raises Held if readers do not release
    theirs; returns the result of ``replace``.
    """
    like, present = oid_of(session, candidate) or 0, oid_of(session, view)
    left: list[TableName | None] = []
    if present is None or not same(session, present, like):
        on = [] if present is None else [present]

        def act() -> None:
            left[:] = [replace(session, view, create)]

        patiently(session, act, on=on, budget=PATIENCE)
        made = oid_of(session, view)
        if made is None or not same(session, made, like):
            raise DatabaseError(f"{view} is not the view that was proved", hint="dbanon doctor")
    session.pg.execute(sql.SQL("DROP VIEW {}").format(relation(candidate)))
    return left[0] if left else None


def grants(session: Session, view: TableName) -> list[Privilege]:
    """Return the privileges on a view of roles other than its owner."""
    rows = session.pg.execute(query("rights.grants"), (view.schema, view.name)).fetchall()
    return [Privilege(*row) for row in rows]


def comments(session: Session, view: TableName) -> dict[str, str]:
    """Return the comments on columns of a view that dbanon did not write."""
    if oid_of(session, view) is None:
        return {}
    found = {column.name: column.comment for column in catalog.describe(session, view).columns}
    return {name: text for name, text in found.items() if text and is_of_steward(name, text)}


def _drop(session: Session, view: TableName) -> None:
    with dropping(view):
        session.pg.execute(sql.SQL("DROP VIEW {}").format(relation(view)))


def _restore(session: Session, view: TableName, grant: Privilege) -> None:
    try:
        with session.pg.transaction():
            session.pg.execute(grant.statement(view))
    except psycopg.errors.UndefinedColumn:
        return  # the column that was granted is no longer published


def _assert_barrier(session: Session, view: TableName) -> None:
    row = session.pg.execute(query("catalog.view_options"), (view.schema, view.name)).fetchone()
    if row is None or "security_barrier=true" not in (row[0] or ()):
        raise DatabaseError(f"{view} was created without security_barrier")


def drop(session: Session, view: TableName, *, data_id: int) -> None:
    """Drop a view if it reads the tables of that number; raises DependedOn."""
    oid = oid_of(session, view)
    if oid is not None and serves(session, oid, data_id):
        _drop(session, view)
