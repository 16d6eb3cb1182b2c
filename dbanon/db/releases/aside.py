"""Free the name of a relation without dropping what others made of it.

What others made of a relation, such as a temporary view of an idle session, keeps it from being
dropped. So the relation is moved away, shows nothing from then on, and is dropped as soon as it can
be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
from psycopg import sql

from dbanon.db import rights
from dbanon.db.metadata.tables import DATA_SCHEMA
from dbanon.db.queries import identifiers, query, relation, template
from dbanon.domain.errors import DatabaseError
from dbanon.domain.table import TableName

if TYPE_CHECKING:
    from dbanon.db.session import Session

_PREFIX = "retired_"
_COMMENT = "nothing of {} any more, kept as other relations depend on it; made by dbanon"


def set_aside(
    session: Session, name: TableName, *, oid: int, is_view: bool = False
) -> TableName | None:
    """Take a relation away from its name and from everybody, with all that it shows.

    Returns its new name if other relations depend on it, None if it could be dropped. Raises
    DatabaseError when rights on it were changed since the snapshot of the transaction.
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
    """Whether a relation among the data of releases is one that was set aside."""
    return name.startswith(_PREFIX)


def drop(session: Session, name: str, kind: str) -> None:
    """Drop what was set aside, a VIEW or a TABLE, if nothing depends on it any more."""
    statement = sql.SQL("DROP {} {}").format(sql.SQL(kind), sql.Identifier(DATA_SCHEMA, name))
    session.pg.execute(statement)


def _hold_rights(session: Session, name: TableName, columns: list[str]) -> None:
    """Write a new version of each column, so that nobody else changes rights on it any more."""
    names = identifiers(columns)
    for statement in (
        "GRANT SELECT ({}) ON {} TO CURRENT_USER",
        "REVOKE SELECT ({}) ON {} FROM CURRENT_USER",
    ):
        session.pg.execute(sql.SQL(statement).format(names, relation(name)))


def _require_same_rights(session: Session, name: TableName, *, oid: int, written: int) -> None:
    """Raise DatabaseError when rights on a relation changed since the snapshot.

    Those that are given to what takes its place were read from it: one that was taken away
    meanwhile would come back.
    """
    values = {"relation": oid, "written": written}
    row = session.pg.execute(query("releases.rights_changed"), values).fetchone()
    if row is None or row[0]:
        raise DatabaseError(
            f"rights on {name} were changed while it was about to be made anew",
            hint="run the command again",
        )


def _showing_nothing(view: TableName, columns: list[tuple[str, str]]) -> sql.Composed:
    """Compose a view of the same columns without a row; types are in words of the catalog's."""
    nulls = (
        sql.SQL("NULL::{} AS {}").format(sql.SQL(kind), sql.Identifier(name))
        for name, kind in columns
    )
    return template("releases.show_nothing", view=relation(view), columns=sql.SQL(", ").join(nulls))
