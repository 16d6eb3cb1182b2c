"""Serialize publications of a table, and retry on a concurrent GRANT or REVOKE."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

import psycopg
from psycopg import sql

from dbanon.db.failures import is_overtaken
from dbanon.db.locks import ATTEMPT, PAUSE, LockNotGranted, holders
from dbanon.db.queries import query
from dbanon.db.releases.guards import lock_source
from dbanon.db.session import LOCK_TIMEOUT, at_once
from dbanon.domain.errors import DatabaseError
from dbanon.domain.table import TableName, quote_identifier

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from dbanon.db.session import Session
    from dbanon.domain.outcomes import Operation
    from dbanon.domain.table import TableInfo

T = TypeVar("T")

PATIENCE_SECONDS = 60.0
_ATTEMPTS = 5


class _Overtaken(Exception):
    """Another publication was first, or committed after this one's snapshot."""


class _Busy(Exception):
    """Another session writes the source and blocks its lock."""

    def __init__(self, source: TableInfo) -> None:
        super().__init__()
        self.source = source


@contextmanager
def alone(
    session: Session,
    sources: Sequence[TableInfo],
    *,
    exclude_writers: bool,
    keep: bool,
    operation: Operation,
) -> Iterator[None]:
    """Open the REPEATABLE READ transaction of a publication, with the publication locks.

    A lock is a row that only publishers may lock; anybody can take an advisory lock. The
    transaction holds it, so it ends with the session, and updates it, so that a snapshot older than
    the previous publication fails. The sources are locked before any snapshot (``lock_source``); an
    earlier transaction waits for the rows. Raises DatabaseError that names the holder after 60
    seconds.
    """
    deadline = time.monotonic() + PATIENCE_SECONDS
    sources = sorted(sources, key=lambda source: source.oid)
    while True:
        for source in sources:
            _await(session, source, deadline)
        try:
            with session.transaction(snapshot=True, keep=keep, operation=operation):
                for source in sources:
                    _lock(session, source, exclude_writers=exclude_writers)
                for source in sources:
                    _take(session, source)
                yield
                return
        except _Overtaken:
            session.operations.withdraw()
        except _Busy as busy:
            session.operations.withdraw()
            _pause(session, busy.source, deadline)


def _lock(session: Session, source: TableInfo, *, exclude_writers: bool) -> None:
    """Lock the source in a short attempt, with statements that take no snapshot."""
    limit = sql.SQL("SET LOCAL lock_timeout = {}")
    try:
        with at_once(session.pg):
            session.pg.execute(limit.format(ATTEMPT))
            lock_source(session, source, exclude_writers=exclude_writers)
            session.pg.execute(limit.format(LOCK_TIMEOUT))
    except psycopg.errors.LockNotAvailable:
        raise _Busy(source) from None


def _pause(session: Session, source: TableInfo, deadline: float) -> None:
    """Wait before the next attempt; raises DatabaseError that names the lock holder on timeout."""
    if time.monotonic() + PAUSE < deadline:
        time.sleep(PAUSE)
        return
    oids = [part.oid for part in source.partitions] or [source.oid]
    with session.transaction(keep=False):
        held = LockNotGranted(holders(session, oids))
    raise DatabaseError(
        f"{source.name} cannot be locked, because of {held}, which is using it; what is served"
        " stays as it is",
        hint=f"{held.remedy}run the command again",
    )


def _await(session: Session, source: TableInfo, deadline: float) -> None:
    patience = max(1, round(1000 * (deadline - time.monotonic())))
    try:
        with session.transaction(), at_once(session.pg):
            session.pg.execute("SELECT set_config('lock_timeout', %s, true)", (str(patience),))
            session.pg.execute(query("publication_lock.enter_turn"), (source.oid,))
            session.pg.execute(query("publication_lock.await_turn"), (source.oid,))
    except psycopg.errors.LockNotAvailable:
        raise DatabaseError(
            f"{source.name} is being published by {_holder(session, source)}",
            hint="run the command again when that has ended",
        ) from None


def _holder(session: Session, source: TableInfo) -> str:
    with session.transaction(keep=False):
        row = session.pg.execute(query("publication_lock.whose_turn"), (source.oid,)).fetchone()
    if row is None:
        return "another session"
    return f"{quote_identifier(row[1] or '?')} in another session (pid {row[0]})"


def _take(session: Session, source: TableInfo) -> None:
    try:
        with at_once(session.pg):
            session.pg.execute(query("publication_lock.hold_turn"), (source.oid,))
            session.pg.execute(query("publication_lock.take_turn"), (source.oid,))
    except (psycopg.errors.LockNotAvailable, psycopg.errors.SerializationFailure):
        raise _Overtaken from None


def former_names(session: Session, source: TableInfo) -> dict[TableName, list[int]]:
    """Return earlier names under which a source may be published, with the served releases.

    The OID outlives a rename; of several names that no longer exist, none can be excluded.
    """
    named = {"source": source.oid, "schema": source.name.schema, "name": source.name.name}
    rows = session.pg.execute(query("publication_lock.former_names"), named)
    return {TableName(schema, name): served for schema, name, served in rows}


def with_retry(session: Session, operation: Operation, *, keep: bool, work: Callable[[], T]) -> T:
    """Run ``work`` in a transaction, and again from scratch after a concurrent change of rights.

    GRANT and REVOKE wait for an open publication, and then fail on its new catalog entry.
    """
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            with session.transaction(keep=keep, operation=operation):
                return work()
        except psycopg.Error as error:
            if not is_overtaken(error) or attempt == _ATTEMPTS:
                raise
            session.operations.withdraw()
    raise AssertionError  # the last attempt returns or raises
