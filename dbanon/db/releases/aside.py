"""Free the name of a relation that other relations depend on.

A dependent object of another role, such as a temporary view of an idle session, blocks DROP. The
relation is then renamed, moved to the private schema and emptied, and dropped as soon as possible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
from psycopg import sql

from dbanon.db import rights
from dbanon.db.queries import identifiers, query, relation, template
from dbanon.db.schemas import DATA_SCHEMA
from dbanon.domain.errors import DatabaseError
from dbanon.domain.table import TableName

if TYPE_CHECKING:
    from dbanon.db.session import Session

_PREFIX = "retired_"
_COMMENT = "nothing of {} any more, kept as other relations depend on it; made by dbanon"


def set_aside(
    session: Session, name: TableName, *, oid: int, is_view: bool = False
) -> TableName | None:
    """Rename a relation, empty it and revoke all rights on it.

    Returns its new name if other relations depend on it, None if it could be dropped. Raises
    DatabaseError if rights on it were changed since the snapshot of the transaction.
    """
    moved = TableName(name.schema, f"{_PREFIX}{oid}")
    away = TableName(DATA_SCHEMA, moved.name)
    rename, move = sql.SQL("ALTER TABLE {} RENAME TO {}"), sql.SQL("ALTER TABLE {} SET SCHEMA {}")
    session.pg.execute(rename.format(relation(name), sql.Identifier(moved.name)))
    session.pg.execute(move.format(relation(moved), sql.Identifier(DATA_SCHEMA)))
    columns = session.pg.execute(
        query("releases.columns_of_relation"), {"relation": oid}
    ).fetchall()
    _hold_rights(session, away, [column for column, _ in columns])
    kind = "VIEW" if is_view else "TABLE"
    try:
        with session.pg.transaction():
            drop(session, away.name, kind)
    except psycopg.errors.DependentObjectsStillExist:
        _require_same_rights(session, name, oid=oid, written=1)
    else:
        _require_same_rights(session, name, oid=oid, written=0)
        return None
    rights.take_from_all(session, away)
    if is_view:
        session.pg.execute(_showing_nothing(away, columns))
    else:
        session.pg.execute(sql.SQL("DELETE FROM ONLY {}").format(relation(away)))
    comment = sql.SQL("COMMENT ON {} {} IS {}")
    text = sql.Literal(_COMMENT.format(name))
    session.pg.execute(comment.format(sql.SQL(kind), relation(away), text))
    return away


def is_retired(name: str) -> bool:
    """Return True if a table or view of the private schema is one that was set aside."""
    return name.startswith(_PREFIX)


def drop(session: Session, name: str, kind: str) -> None:
    """Drop a VIEW or TABLE that was set aside; fails while other objects depend on it."""
    statement = sql.SQL("DROP {} {}").format(sql.SQL(kind), sql.Identifier(DATA_SCHEMA, name))
    session.pg.execute(statement)


def _hold_rights(session: Session, name: TableName, columns: list[str]) -> None:
    """Write new versions of all column rights, so that a concurrent GRANT or REVOKE fails."""
    names = identifiers(columns)
    for statement in (
        "GRANT SELECT ({}) ON {} TO CURRENT_USER",
        "REVOKE SELECT ({}) ON {} FROM CURRENT_USER",
    ):
        session.pg.execute(sql.SQL(statement).format(names, relation(name)))


def _require_same_rights(session: Session, name: TableName, *, oid: int, written: int) -> None:
    """Raise DatabaseError if rights changed since the snapshot: revoked ones would return."""
    values = {"relation": oid, "written": written}
    row = session.pg.execute(query("releases.rights_changed"), values).fetchone()
    if row is None or row[0]:
        raise DatabaseError(
            f"rights on {name} were changed while it was about to be created again",
            hint="run the command again",
        )


def _showing_nothing(view: TableName, columns: list[tuple[str, str]]) -> sql.Composed:
    """Compose a view with the same columns and no rows; types are catalog text."""
    nulls = (
        sql.SQL("NULL::{} AS {}").format(sql.SQL(kind), sql.Identifier(name))
        for name, kind in columns
    )
    return template("releases.show_nothing", view=relation(view), columns=sql.SQL(", ").join(nulls))
