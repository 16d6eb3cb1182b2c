"""Tables of the demonstration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from psycopg import sql

from dbanon.db.catalog import describe, describe_source
from dbanon.db.identity import readable
from dbanon.db.queries import relation, template
from dbanon.db.releases.relations import oid_of
from dbanon.domain.errors import ConfigError

if TYPE_CHECKING:
    from dbanon.db.session import Session
    from dbanon.domain.table import TableName

_MARK = "dbanon demo"


def is_loaded(session: Session, table: TableName) -> bool:
    """Return True if the demo's table exists; raises ConfigError if another one does."""
    if oid_of(session, table) is None:
        return False
    if (describe(session, table).comment or "").startswith(_MARK):
        return True
    raise ConfigError(
        f"{table} exists and is not the demonstration's",
        hint="run the demonstration in another database: --dsn",
    )


def load(session: Session, table: TableName, text: bytes, *, delimiter: str) -> None:
    """Create the table of a sample, and COPY its rows in."""
    session.pg.execute(template(f"demo.create_demo_{table.name}", table=relation(table)))
    header, _, _ = text.partition(b"\n")
    columns = header.decode().strip().split(delimiter)
    statement = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT csv, HEADER, DELIMITER {})").format(
        relation(table),
        sql.SQL(", ").join(sql.Identifier(column) for column in columns),
        sql.Literal(delimiter),
    )
    with session.pg.cursor().copy(statement) as copy:
        copy.write(text)
    _mark(session, table, "real data")


def make(session: Session, table: TableName) -> None:
    """Create the table of a sample with generated rows."""
    session.pg.execute(template(f"demo.create_demo_{table.name}", table=relation(table)))
    _mark(session, table, "invented data")


def _mark(session: Session, table: TableName, text: str) -> None:
    comment = sql.SQL("COMMENT ON TABLE {} IS {}")
    session.pg.execute(comment.format(relation(table), sql.Literal(f"{_MARK}: {text}")))
    session.pg.execute(sql.SQL("ANALYZE {}").format(relation(table)))


def first_rows(
    session: Session, name: TableName, *, limit: int
) -> tuple[tuple[str, ...], tuple[tuple[str | None, ...], ...]]:
    """Return the column names of a relation and its first rows as text."""
    info = describe_source(session, name)
    columns = tuple(column.name for column in info.columns)
    texts = sql.SQL(", ").join(
        sql.SQL("{}::text").format(sql.Identifier(column)) for column in columns
    )
    statement = sql.SQL("SELECT {} FROM {} LIMIT {}").format(texts, readable(session, info), limit)
    return columns, tuple(session.pg.execute(statement).fetchall())
