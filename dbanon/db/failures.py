"""What the server's errors mean to a user; never with a value in them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import psycopg

from dbanon.domain.errors import DatabaseError, NotPermitted

if TYPE_CHECKING:
    import sqlalchemy as sa

# Classes of SQLSTATE whose primary message holds names and states, never a row's value.
_QUOTABLE = frozenset({"08", "0A", "25", "28", "2B", "3D", "3F", "42", "53", "54", "55", "57"})

# A failed connection has no SQLSTATE: in English it says one of these.
_FULL = re.compile("too many (clients|connections)|connection slots are reserved")

_MEANINGS = {
    "42501": ("a right is missing", "dbanon doctor"),
    "55P03": ("a lock was not granted in time: the relation is in use", "run the command again"),
    "40001": ("the table changed at the same time", "run the command again"),
    "40P01": ("the table changed at the same time", "run the command again"),
    "23505": ("something of that name was stored at the same time", "run the command again"),
    "53100": ("the disk of the server is full", "free space on the server, then run it again"),
    "53200": (
        "the server is out of memory",
        "raise max_locks_per_transaction if it says so, else lower work_mem or add memory",
    ),
    "57014": ("the server cancelled the statement", "raise statement_timeout for this role"),
}


def connection_failure(error: psycopg.Error) -> DatabaseError:
    """Explain why no session could be opened."""
    reason = " ".join(str(error).split())
    hint = "check --dsn or DBANON_DSN; without either, dbanon server status"
    if _FULL.search(reason):
        hint = "close other sessions, or raise max_connections or the limit of the role"
    return DatabaseError(f"cannot connect: {reason}", hint=hint)


def statement_failure(error: psycopg.Error | sa.exc.DBAPIError) -> DatabaseError:
    """Explain a failed statement by its SQLSTATE."""
    cause = error if isinstance(error, psycopg.Error) else error.orig
    if not isinstance(cause, psycopg.Error):
        return DatabaseError(f"the database driver failed ({type(cause).__name__})")
    state = cause.sqlstate
    if state is None:
        lost = isinstance(cause, (psycopg.OperationalError, psycopg.InterfaceError))
        reason = "the connection was lost" if lost else f"the driver: {type(cause).__name__}"
        return DatabaseError(reason, hint="nothing was published; run the command again")
    message, hint = _MEANINGS.get(state, ("", None))
    if state[:2] in _QUOTABLE and cause.diag.message_primary:
        message = f"{message}: {cause.diag.message_primary}" if message else ""
        message = message or cause.diag.message_primary
    kind = NotPermitted if state == "42501" else DatabaseError
    return kind(message or f"the server refused a statement ({state})", hint=hint)
