"""A connection to one database, shared by psycopg and SQLAlchemy in one transaction."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import psycopg
import sqlalchemy as sa
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from dbanon.db.failures import connection_failure, statement_failure
from dbanon.db.queries import query
from dbanon.domain.errors import ConfigError, NotPermitted
from dbanon.domain.text import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dbanon.settings import Settings

T = TypeVar("T")

LOCK_TIMEOUT = "60s"


# Something of that name is there already, or was changed at the same moment.
_DONE_MEANWHILE = frozenset({"23505", "42P06", "42P07", "42701", "42710", "42723", "XX000"})
_ATTEMPTS = 8


@dataclass(frozen=True, slots=True)
class Session:
    """One connection, seen by psycopg as ``pg`` and by SQLAlchemy as ``sa``.

    ``dsn`` reaches the same database again; ``search_path`` is what the role would have had,
    while the connection itself resolves names in pg_catalog only.
    """

    pg: psycopg.Connection
    sa: sa.Connection
    dsn: str
    search_path: tuple[str, ...]
    settings: Settings

    @contextmanager
    def transaction(self, *, snapshot: bool = False, keep: bool = True) -> Iterator[None]:
        """Commit the block, or roll back if it raises or is not to be kept.

        With ``snapshot`` every statement sees the same rows (REPEATABLE READ).
        """
        self.sa.rollback()
        self.pg.rollback()
        self.pg.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ if snapshot else None
        with self.sa.begin() as transaction:
            yield
            if not keep:
                transaction.rollback()

    def unless_overtaken(self, work: Callable[[], T]) -> T:
        """Do what may be done by somebody else at the same moment, and look again if it was.

        The server has waited for the other one by then. The open transaction goes on.
        """
        for _ in range(_ATTEMPTS):
            try:
                with self.sa.begin_nested():
                    return work()
            except (psycopg.Error, sa.exc.DBAPIError) as error:
                cause = error.orig if isinstance(error, sa.exc.DBAPIError) else error
                if getattr(cause, "sqlstate", None) not in _DONE_MEANWHILE:
                    raise
        return work()

    def allow_memory(self) -> None:
        """Give the sorts and hash tables of the open transaction room for millions of rows."""
        self.pg.execute(query("allow_memory"))

    @contextmanager
    def exclusive(self, lock: int) -> Iterator[None]:
        """Hold the advisory lock of one table, taken before any snapshot of its rows."""
        self.pg.rollback()
        with self.pg.transaction():
            self.pg.execute("SELECT pg_advisory_lock(hashtext('dbanon'), %s)", (_signed(lock),))
        try:
            yield
        finally:
            if not self.pg.closed:
                self.pg.rollback()
                with self.pg.transaction():
                    self.pg.execute(
                        "SELECT pg_advisory_unlock(hashtext('dbanon'), %s)", (_signed(lock),)
                    )


def _signed(oid: int) -> int:
    return oid - 2**32 if oid >= 2**31 else oid


@contextmanager
def connect(settings: Settings, *, writes: bool = False) -> Iterator[Session]:
    """Open a session and turn every failure of the server into a DbanonError.

    Starts the embedded server when the settings name no other. With ``writes``, a superuser is
    refused unless the settings allow one: what dbanon creates runs with its owner's rights.
    """
    dsn = _dsn(settings)
    pg = _open(dsn)
    try:
        search_path = _prepare(pg, settings)
        if writes:
            _refuse_superuser(pg, settings)
        engine = sa.create_engine(
            "postgresql+psycopg://",
            creator=lambda: pg,
            poolclass=sa.StaticPool,
            pool_reset_on_return=None,  # it is closed, and a lost one cannot be rolled back
        )
        with engine.connect() as shared:
            yield Session(pg, shared, dsn, search_path, settings)
    except (psycopg.Error, sa.exc.DBAPIError) as error:
        raise statement_failure(error) from None
    finally:
        pg.close()


def _dsn(settings: Settings) -> str:
    if settings.dsn is not None:
        return settings.dsn
    from dbanon.db.embedded import EmbeddedServer

    server = EmbeddedServer(settings.home)
    server.start()
    return server.dsn()


def _open(dsn: str) -> psycopg.Connection:
    _require_readable(dsn)
    try:
        return psycopg.connect(dsn, client_encoding="utf8")
    except psycopg.OperationalError as error:
        raise connection_failure(error) from None


def _require_readable(dsn: str) -> None:
    """Raise ConfigError when libpq would take a part of a password for something else.

    What it says of such a dsn quotes that part.
    """
    try:
        parts = conninfo_to_dict(dsn)
    except (psycopg.ProgrammingError, UnicodeEncodeError):
        parts = None
    ports = "" if parts is None else str(parts.get("port") or "").replace(",", "")
    if parts is None or "@" in str(parts.get("host")) or (ports and not ports.isdigit()):
        raise ConfigError(
            "the dsn cannot be read",
            hint="percent-encode special characters in a URI, quote values of key=value pairs",
        )


def _prepare(pg: psycopg.Connection, settings: Settings) -> tuple[str, ...]:
    """Fix what the meaning of names and texts depends on; return the search path found."""
    if settings.owner is not None:
        _act_as(pg, settings.owner)
    row = pg.execute("SELECT pg_catalog.current_schemas(false)").fetchone()
    for statement in SESSION_SETTINGS:
        pg.execute(statement)
    pg.commit()
    return tuple(row[0]) if row else ()


def _act_as(pg: psycopg.Connection, owner: str) -> None:
    """Become the role that is to own what is created; raise ConfigError if there is none."""
    try:
        pg.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(owner)))
    except psycopg.errors.InvalidParameterValue:
        raise ConfigError(
            f"there is no role {visible(owner)} to own what is created",
            hint="name another --owner or DBANON_OWNER, or let a DBA create the role",
        ) from None
    except psycopg.errors.InsufficientPrivilege:
        raise NotPermitted(
            f"this role may not act as {visible(owner)}",
            hint="let a DBA GRANT the role to this one, or name another --owner",
        ) from None


# How values are spelled as texts.
VALUE_SETTINGS = (
    "SET DateStyle = 'ISO, YMD'",
    "SET TimeZone = 'UTC'",
    "SET IntervalStyle = 'postgres'",
    "SET bytea_output = 'hex'",
    "SET extra_float_digits = 1",
)
SESSION_SETTINGS = (
    "SET client_encoding = 'UTF8'",
    "SET search_path = pg_catalog, pg_temp",
    *VALUE_SETTINGS,
    "SET quote_all_identifiers = off",
    "SET constraint_exclusion = off",  # else to plan is to run what CHECK constraints call
    f"SET lock_timeout = '{LOCK_TIMEOUT}'",
)


def _refuse_superuser(pg: psycopg.Connection, settings: Settings) -> None:
    row = pg.execute(query("acting_superuser")).fetchone()
    pg.commit()
    if row is not None and not settings.allow_superuser:
        raise NotPermitted(
            f"{row[0]} is a superuser: what dbanon creates runs with its owner's rights",
            hint="connect as an ordinary role that can read the table, or pass --allow-superuser",
        )
