"""The schemas of the metadata, of private data and of published relations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from psycopg import sql

from dbanon.db.queries import query

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dbanon.db.session import Session

SCHEMA = "dbanon"
DATA_SCHEMA = "dbanon_data"


def statements(session: Session, name: str) -> Iterator[sql.Composed]:
    """Yield the statement that creates a schema, unless it exists."""
    if session.pg.execute(query("catalog.schema_exists"), (name,)).fetchone() is None:
        yield sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(name))


def ensure(session: Session, name: str) -> None:
    """Create a schema unless it exists; requires READ COMMITTED, to see concurrent creation."""
    if any(statements(session, name)):
        session.unless_overtaken(lambda: session.run([*statements(session, name)]))
