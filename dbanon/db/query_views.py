"""Views of queries that a user writes, so that a join can be looked at and published."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
from psycopg import sql

from dbanon.db.queries import relation
from dbanon.domain.errors import ConfigError
from dbanon.domain.table import TableName

if TYPE_CHECKING:
    from dbanon.db.session import Session

_TEMPORARY = TableName("pg_temp", "query")
_NO_PLACE = frozenset({"3F000", "42501"})
_MAKE_ELSEWHERE = (
    "name a schema in which this role may CREATE: --create-view SCHEMA.NAME;"
    " it also needs SELECT on all that the query reads"
)
_WRITE_ANOTHER = "write one SELECT, with a name of its own for every column"


def create(session: Session, query: str, name: TableName | None) -> TableName:
    """Make a view of a query, in the open transaction, and return its name; nothing is read.

    name: None for a temporary view. Names in the query mean what they mean to the role elsewhere,
    as for whoever types it into psql. Raises ConfigError for what is no query, or more than one.
    """
    statement = sql.SQL("CREATE VIEW {} AS {}").format(
        relation(name or _TEMPORARY), sql.SQL(query.strip().rstrip(";"))
    )
    own = session.pg.execute("SELECT current_setting('search_path')").fetchone()
    path = sql.SQL(", ").join(map(sql.Identifier, session.search_path)).as_string()
    set_path = "SELECT set_config('search_path', %s, true)"
    try:
        session.pg.execute(set_path, (path,))
        session.pg.execute(statement, prepare=True)  # prepared, it cannot be several statements
    except (psycopg.ProgrammingError, psycopg.NotSupportedError, psycopg.DataError) as error:
        raise ConfigError(
            f"PostgreSQL makes no view of the query: {error.diag.message_primary or error}",
            hint=_MAKE_ELSEWHERE if error.sqlstate in _NO_PLACE else _WRITE_ANOTHER,
        ) from None
    session.pg.execute(set_path, own)
    return name or TableName(_temporary_schema(session), _TEMPORARY.name)


def _temporary_schema(session: Session) -> str:
    return str(session.one("SELECT pg_my_temp_schema()::regnamespace::text")[0])
