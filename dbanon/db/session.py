"""A connection to one database, and its transactions."""

from __future__ import annotations

import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import PipelineStatus
from psycopg.rows import dict_row

from dbanon.db.failures import connection_failure, pooler_failure, statement_failure
from dbanon.db.queries import query, template
from dbanon.domain import outcomes
from dbanon.domain.errors import (
    CommitUnknown,
    ConfigError,
    DatabaseError,
    DbanonError,
    NotPermitted,
)
from dbanon.domain.outcomes import CommitOutcome, Operation, Operations
from dbanon.domain.table import TableInfo, TableName, quote_identifier
from dbanon.domain.text import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from psycopg.abc import ConnDict

    from dbanon.settings import Settings

    Statement = str | sql.SQL | sql.Composed
    Parameters = Sequence[object] | Mapping[str, object] | None

T = TypeVar("T")

LOCK_TIMEOUT = "60s"

# A firewall drops a connection that is idle during a long search.
_KEEPALIVE_SECONDS = 60
# Timeout of queries for the outcome of a commit without an answer: a server may be recovering.
_ASKING_SECONDS = 10.0


# An object of that name exists already, or was changed concurrently.
_DONE_MEANWHILE = frozenset({"23505", "42P06", "42P07", "42701", "42710", "42723", "XX000"})
EVENT_TRIGGER_REMEDY = (
    "ALTER EVENT TRIGGER ... DISABLE, or let a superuser, the owner of the database or this role"
    " own its function"
)
_ATTEMPTS = 8


@dataclass(frozen=True, slots=True)
class Session:
    """One connection of psycopg (``pg``).

    ``dsn`` is the given address, ``server`` reaches exactly the same server again; ``search_path``
    is the role's own: the connection itself resolves names in pg_catalog only. ``operations``
    records the outcome of commits. Of the open transaction, ``admitted`` has the relations that it
    may read, by OID, ``pins`` their private views and ``published`` the published ones as described
    (``dbanon.db.identity``), ``lasting`` what it wrote that a rollback is to keep, ``policies`` the
    stored policies of the releases of tables, ``writers`` who wrote the rows of copies, by number,
    and how many it had changed of each then (``dbanon.db.releases.immutability``);
    ``emptied`` the tables that lost rows of persons for good; ``transactions`` identifies it.
    """

    pg: psycopg.Connection
    dsn: str
    server: str
    search_path: tuple[str, ...]
    settings: Settings
    admitted: dict[int, TableName] = field(default_factory=dict)
    pins: dict[int, TableName] = field(default_factory=dict)
    published: dict[TableName, TableInfo] = field(default_factory=dict)
    operations: Operations = field(default_factory=outcomes.present)
    lasting: list[Callable[[Session], None]] = field(default_factory=list)
    policies: dict[TableName, Sequence[Any]] = field(default_factory=dict)
    writers: dict[int, tuple[dict[str, int], tuple[int, int, int]]] = field(default_factory=dict)
    emptied: list[sql.Identifier] = field(default_factory=list)
    transactions: list[object] = field(default_factory=list)

    @contextmanager
    def transaction(
        self,
        *,
        snapshot: bool = False,
        read_only: bool = False,
        keep: bool = True,
        operation: Operation | None = None,
    ) -> Iterator[None]:
        """Commit the block, or roll back if it raises or without ``keep``.

        snapshot: REPEATABLE READ; read_only: no statement can write; operation: what is
        committed. Raises CommitUnknown if its outcome is unknown; after every other error nothing
        was committed.
        """
        self.pg.rollback()
        self.admitted.clear()
        self.pins.clear()
        self.published.clear()
        self.lasting.clear()
        self.policies.clear()
        self.writers.clear()
        self.emptied.clear()
        if snapshot and not read_only:  # it creates at least temporary tables
            _refuse_event_triggers(foreign_event_triggers(self.pg))
            self.pg.commit()
        self.pg.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ if snapshot else None
        self.pg.read_only = read_only or None
        if operation is not None:
            self.operations.begin(operation)
        self.transactions[:] = [transaction := object()]
        try:
            self._require_settings()
            yield
            if keep:
                self._commit(operation, transaction)
            else:
                self.pg.rollback()
        except BaseException:
            with suppress(psycopg.Error):  # of a lost connection; the first error is raised
                self.pg.rollback()
            raise

    @contextmanager
    def keeping_lasting(self, *, keep: bool) -> Iterator[None]:
        """Commit ``lasting`` on its own if the transaction of the block is refused, if ``keep``."""
        try:
            yield
        except DbanonError:
            lasting = [*self.lasting] if keep else []
            if lasting:
                with suppress(psycopg.Error), self.transaction():
                    for write in lasting:
                        write(self)
            raise

    def _require_settings(self) -> None:
        """Raise DatabaseError if the session lost its settings; takes no snapshot."""
        if self.one("SHOW search_path") != (_SETTINGS["search_path"],):
            raise pooler_failure()

    def _commit(self, operation: Operation | None, transaction: object) -> None:
        """Commit; without an answer, query the outcome over another connection."""
        if self.transactions != [transaction]:
            raise AssertionError  # a transaction within this one has ended it
        if operation is None:
            self.pg.commit()
            return
        marks = self.pg.execute(query("session.transaction_marks")).fetchone() or (None, None)
        if marks[0] is None:
            self.pg.commit()
            self.operations.settle(operation, CommitOutcome.DONE)
            return
        self.operations.settle(operation, CommitOutcome.UNKNOWN)
        try:
            self.pg.commit()
        except BaseException as error:
            outcome = self._outcome(*marks)
            self.operations.settle(operation, outcome)
            if not isinstance(error, psycopg.Error) or outcome is CommitOutcome.NOT_DONE:
                raise
            if outcome is CommitOutcome.UNKNOWN:
                raise _unknown(operation) from None
        else:
            self.operations.settle(operation, CommitOutcome.DONE)

    def _outcome(self, number: str, run: object) -> CommitOutcome:
        """Query the outcome of a transaction of this session, which is closed first."""
        with suppress(psycopg.Error):
            self.pg.close()
        deadline = time.monotonic() + _ASKING_SECONDS
        known = {
            "committed": CommitOutcome.DONE,
            "aborted": CommitOutcome.NOT_DONE,
            None: CommitOutcome.UNKNOWN,
        }
        while True:
            with suppress(psycopg.Error, DatabaseError), self.fresh() as other:
                marks = {"number": number, "run": run}
                row = other.execute(query("session.transaction_status"), marks).fetchone()
                if row is not None and row[0] in known:
                    return known[row[0]]
            if time.monotonic() > deadline:
                return CommitOutcome.UNKNOWN
            time.sleep(0.1)

    @contextmanager
    def fresh(self) -> Iterator[psycopg.Connection]:
        """Open another connection in autocommit mode, which sees everything committed by now."""
        with _open(make_conninfo(self.server, connect_timeout=5)) as connection:
            _prepare(connection, self.settings)
            connection.autocommit = True
            yield connection

    def run(self, statements: Iterable[Statement]) -> None:
        """Send statements that return nothing in one message."""
        with at_once(self.pg):
            for statement in statements:
                self.pg.execute(statement)

    def one(self, statement: Statement, parameters: Parameters = None) -> tuple[Any, ...]:
        """Return the only row of a statement that always returns one."""
        return only(self.pg.execute(statement, parameters))

    def records(self, statement: Statement, parameters: Parameters = None) -> list[dict[str, Any]]:
        """Return the rows of a statement by the names of its columns."""
        with self.pg.cursor(row_factory=dict_row) as cursor:
            return cursor.execute(statement, parameters).fetchall()

    def unless_overtaken(self, work: Callable[[], T]) -> T:
        """Run ``work`` in a savepoint, and again if another session changed the same object."""
        for _ in range(_ATTEMPTS):
            try:
                with self.pg.transaction():
                    return work()
            except psycopg.Error as error:
                if error.sqlstate not in _DONE_MEANWHILE:
                    raise
        return work()

    def allow_memory(self) -> None:
        """Raise the memory for sorts and hash tables of the transaction, for millions of rows."""
        self.pg.execute(query("session.allow_memory"))

    @contextmanager
    def sparing_memory(self) -> Iterator[None]:
        """Send catalog queries as ``at_once``, with little work_mem.

        PostgreSQL expects millions of rows from a recursive query, and clearing a hash table of
        that size takes most of its time.
        """
        with at_once(self.pg):
            self.pg.execute(query("session.note_memory"))
            self.pg.execute("SET LOCAL work_mem = '1MB'")
            yield
            self.pg.execute(query("session.restore_memory"))


@contextmanager
def at_once(pg: psycopg.Connection) -> Iterator[None]:
    """Send the statements of the block in one message; fetch results after the block.

    The first statement that fails raises its error, and later ones do not run. A nested block joins
    the outer one: its results and errors come after that.
    """
    if pg.pgconn.pipeline_status != PipelineStatus.OFF:
        yield
        return
    failed = None
    try:
        with pg.pipeline():
            try:
                yield
            except psycopg.Error as error:
                failed = (
                    error  # raised within the pipeline, psycopg would also log the error of its end
                )
    except psycopg.Error:
        if failed is None:
            raise
    if failed is not None:
        raise failed


def only(found: psycopg.Cursor[Any]) -> tuple[Any, ...]:
    """Return the only row of a query that always returns one, such as an aggregate."""
    row: tuple[Any, ...] | None = found.fetchone()
    assert row is not None  # noqa: S101
    return row


def _unknown(operation: Operation) -> CommitUnknown:
    return CommitUnknown(
        f"the connection was lost during the commit: whether {operation.subject} was"
        f" {operation.done} is unknown",
        hint=operation.ask,
    )


@contextmanager
def connect(settings: Settings, *, writes: bool = False) -> Iterator[Session]:
    """Open a session, and convert all failures of the server into DbanonError.

    Starts the embedded server without a dsn. With ``writes``, refuses a superuser unless the
    settings allow it, because created objects run with their owner's rights; and event triggers of
    other roles, which would run with the rights of this session.
    """
    dsn = _dsn(settings)
    pg = _open(dsn)
    followed = outcomes.present()
    try:
        search_path = _prepare(pg, settings)
        if writes:
            _require_writer(pg, settings)
        at = pg.info  # the reached server, of which the dsn may list several
        server = make_conninfo(dsn, host=at.host, port=at.port, dbname=at.dbname, user=at.user)
        yield Session(pg, dsn, server, search_path, settings, operations=followed)
    except psycopg.Error as error:
        raise statement_failure(error, followed) from None
    finally:
        pg.close()


class Notified(Exception):
    """A notification came before a connection was ready to wait for it."""


def listening(settings: Settings) -> psycopg.Connection:
    """Open a connection that only listens for new jobs; raises Notified if one is announced.

    A flood is sent before the answer to LISTEN, which might never come: its first one ends this.
    """

    def end(_notification: object) -> None:
        raise Notified

    pg = _open(_dsn(settings))
    try:
        _prepare(pg, settings)
        pg.autocommit = True
        pg.add_notify_handler(end)
        pg.execute(query("jobs.listen"))
    except BaseException:
        pg.close()
        raise
    return pg


def _dsn(settings: Settings) -> str:
    if settings.dsn is not None:
        return settings.dsn
    from dbanon.server import EmbeddedServer

    server = EmbeddedServer(settings.home)
    server.start()
    return server.dsn()


def _open(dsn: str) -> psycopg.Connection:
    given = _require_readable(dsn)
    idle: Any = given.get("keepalives_idle", _KEEPALIVE_SECONDS)
    try:
        return psycopg.connect(dsn, client_encoding="utf8", keepalives_idle=idle)
    except psycopg.OperationalError as error:
        raise connection_failure(error) from None


def _require_readable(dsn: str) -> ConnDict:
    """Return the parts of a dsn; raises ConfigError if libpq would quote a part of a password."""
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
    return parts


def _prepare(pg: psycopg.Connection, settings: Settings) -> tuple[str, ...]:
    """Fix all settings that affect names and texts; returns the original search path."""
    if settings.owner is not None:
        _act_as(pg, settings.owner)
    try:
        with at_once(pg):
            found = pg.execute("SELECT pg_catalog.current_schemas(false)")
            for statement in settings_statements():
                pg.execute(statement)
    except psycopg.errors.InsufficientPrivilege as error:
        raise NotPermitted(
            f"a setting of this role or database cannot be undone: {error.diag.message_primary}",
            hint="let a superuser run ALTER ROLE ... RESET, or ALTER DATABASE ... RESET",
        ) from None
    pg.commit()
    return tuple(only(found)[0])


def _act_as(pg: psycopg.Connection, owner: str) -> None:
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
_SETTINGS = {
    "client_encoding": "UTF8",
    "search_path": "pg_catalog, pg_temp",
    "lock_timeout": LOCK_TIMEOUT,
    # A search takes minutes between two statements, a proof takes minutes in one.
    "statement_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "idle_session_timeout": "0",
    "transaction_timeout": "0",
    "default_transaction_isolation": "read committed",
    "default_transaction_read_only": "off",
    "default_transaction_deferrable": "off",
    # What a publication knows of persons is in temporary tables, which are read several times.
    "temp_buffers": "256MB",
    # A savepoint is not the end of the session.
    "exit_on_error": "off",
    # The meaning of statements and of the values in them.
    "array_nulls": "on",
    "lc_monetary": "C",
    "quote_all_identifiers": "off",
    "row_security": "on",
    "standard_conforming_strings": "on",
    # A scan begins with the first row: the same rows in the same order give the same groups.
    "synchronize_seqscans": "off",
    "transform_null_equals": "off",
    "constraint_exclusion": "off",  # planning would run functions of CHECK constraints
    "enable_tidscan": "on",  # without it, each range of pages would read the whole table
    # Properties of created objects; triggers and foreign keys apply to them.
    "check_function_bodies": "on",
    "default_table_access_method": "heap",
    "session_replication_role": "origin",
}


def settings_statements() -> Iterator[sql.SQL | sql.Composed]:
    """Yield the settings that make sessions equal for all roles, databases and servers."""
    yield from map(sql.SQL, VALUE_SETTINGS)
    pairs = (
        sql.SQL("({}, {})").format(sql.Literal(name), sql.Literal(value))
        for name, value in _SETTINGS.items()
    )
    yield template("session.session_settings", settings=sql.SQL(", ").join(pairs))


def _require_writer(pg: psycopg.Connection, settings: Settings) -> None:
    """Raise NotPermitted or DatabaseError unless a session may create relations."""
    with at_once(pg):
        superuser = pg.execute(query("session.acting_superuser"))
        writable = pg.execute(query("session.takes_writes"))
        triggers = pg.execute(query("identity.foreign_event_triggers"))
    role = superuser.fetchone()
    if role is not None and not settings.allow_superuser:
        raise NotPermitted(
            f"{role[0]} is a superuser: what dbanon creates runs with its owner's rights",
            hint="connect as an ordinary role that can read the table, or pass --allow-superuser",
        )
    if writable.fetchone() != (True,):
        raise DatabaseError(
            "this server takes no writes: it is a standby",
            hint="connect to the primary: target_session_attrs=read-write in the dsn",
        )
    _refuse_event_triggers(_in_words(triggers.fetchall()))
    pg.commit()


def foreign_event_triggers(pg: psycopg.Connection) -> list[str]:
    """Describe the event triggers that would run functions of other roles."""
    return _in_words(pg.execute(query("identity.foreign_event_triggers")).fetchall())


def _in_words(triggers: Sequence[tuple[str, str, str, str]]) -> list[str]:
    return [
        f"event trigger {quote_identifier(name)} runs {TableName(schema, function)} of"
        f" {quote_identifier(owner)} with this role's rights"
        for name, schema, function, owner in triggers
    ]


def _refuse_event_triggers(found: Sequence[str]) -> None:
    if found:
        raise NotPermitted(found[0], hint=EVENT_TRIGGER_REMEDY)
