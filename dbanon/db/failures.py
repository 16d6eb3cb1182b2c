"""Translate errors of the server into messages; these never contain a value."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import psycopg

from dbanon.domain.errors import DatabaseError, NotPermitted

if TYPE_CHECKING:
    from dbanon.domain.outcomes import Operations

# Classes of SQLSTATE with names and states in the primary message, but never a row's value.
_QUOTABLE = frozenset({"08", "0A", "25", "28", "2B", "3D", "3F", "42", "53", "54", "55", "57"})

# A failed connection has no SQLSTATE; its English message contains one of these.
_NO_CONNECT = re.compile("does not have CONNECT privilege")
_FULL = re.compile("too many (clients|connections)|connection slots are reserved")

_AGAIN = "run the command again"
_LACKING = ("something that dbanon needs is not there", "dbanon doctor")
_POOLER = "connect to the server itself: a pooler loses what dbanon sets for its session"
_MEANINGS = {
    "3F000": _LACKING,
    "42501": ("a right is missing", "let the owner GRANT it to this role, then: dbanon doctor"),
    "42703": _LACKING,
    "42883": _LACKING,
    "42P01": _LACKING,
    "55P03": ("a lock was not granted in time: the relation is in use", _AGAIN),
    "40001": ("the table changed at the same time", _AGAIN),
    "40P01": ("the table changed at the same time", _AGAIN),
    "23505": ("something of that name was stored at the same time", _AGAIN),
    "25006": ("the server takes no writes", f"connect to the primary; or {_POOLER}"),
    "25P03": ("idle_in_transaction_session_timeout ended the session", _POOLER),
    "25P04": ("transaction_timeout ended the session", _POOLER),
    "53100": ("the disk of the server is full", f"free space on the server, then {_AGAIN}"),
    "53200": (
        "the server is out of memory",
        "raise max_locks_per_transaction if it says so, else lower work_mem or add memory",
    ),
    "57014": ("the server cancelled the statement", f"{_AGAIN}; or {_POOLER}"),
    "57P01": ("somebody ended the session, or stopped the server", _AGAIN),
    "57P02": ("the server crashed", _AGAIN),
    "57P05": ("idle_session_timeout ended the session", _POOLER),
    # Most often it met a catalog that another session was changing.
    "XX000": ("the server met an internal error", _AGAIN),
}
# After these, the session is over, and with it whatever it had not committed.
_ENDING = frozenset({"25P03", "25P04", "57P01", "57P02", "57P05"})
_OVERTAKEN = "tuple concurrently"


def connection_failure(error: psycopg.Error) -> DatabaseError:
    """Explain a failed connection."""
    reason = " ".join(str(error).split())
    hint = "check --dsn or DBANON_DSN; without either, dbanon server status"
    if _NO_CONNECT.search(reason):
        hint = "let the owner of the database GRANT CONNECT ON DATABASE ... to this role"
    if _FULL.search(reason):
        hint = "close other sessions, or raise max_connections or the limit of the role"
    return DatabaseError(f"cannot connect: {reason}", hint=hint)


def statement_failure(error: psycopg.Error, operations: Operations | None = None) -> DatabaseError:
    """Explain a failed statement by its SQLSTATE, with the committed work if the session ended."""
    state = error.sqlstate
    if state is None and not isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError)):
        return DatabaseError(f"the driver: {type(error).__name__}", hint=_AGAIN)
    if is_overtaken(error):
        return DatabaseError("the same thing was changed at the same time", hint=_AGAIN)
    told = f"; {operations}" if operations is not None and operations.entries else ""
    if state is None:
        return DatabaseError(f"the connection was lost{told}", hint=_AGAIN)
    message, hint = _MEANINGS.get(state, ("", None))
    if state[:2] in _QUOTABLE and error.diag.message_primary:
        message = f"{message}: {error.diag.message_primary}" if message else ""
        message = message or error.diag.message_primary
    message = (message or f"the server refused a statement ({state})") + told * (state in _ENDING)
    kind = NotPermitted if state == "42501" else DatabaseError
    return kind(message, hint=hint)


def pooler_failure() -> DatabaseError:
    """Explain that a pooler lost the settings of the session."""
    return DatabaseError(
        "the settings of this session are gone: a pooler gives each transaction another session of"
        " the server",
        hint=_POOLER,
    )


def reading_failure(state: str | None, text: str) -> DatabaseError:
    """Explain a failed read without quoting the driver's text, which may contain values."""
    if state == "53300" or (state is None and _FULL.search(text)):
        return DatabaseError(
            "the table is read by a second connection, and the server refused it: too many"
            " connections of this role or database",
            hint="ALTER ROLE ... CONNECTION LIMIT 3, or more; or close other sessions",
        )
    if state == "22021":
        return DatabaseError(
            "the table holds text that is not UTF-8, and the database knows no encoding of it",
            hint="move the table to a database of a known encoding, such as UTF8",
        )
    meaning, hint = _MEANINGS.get(state or "", (state or "the connection was lost", _AGAIN))
    return DatabaseError(f"reading the table failed: {meaning}", hint=hint)


def is_overtaken(error: psycopg.Error) -> bool:
    """Return True if another transaction changed the same catalog entry first."""
    return _OVERTAKEN in (error.diag.message_primary or "")
