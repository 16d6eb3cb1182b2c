"""The job queue: each job is done by one worker, even if others fail.

A worker marks a job as *running*, and holds its row lock until it records the result. So a running
job that can be locked belongs to a lost worker.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from selectors import EVENT_READ, DefaultSelector
from time import monotonic
from typing import TYPE_CHECKING, cast

import psycopg
from psycopg.rows import dict_row, scalar_row

from dbanon.db import locks
from dbanon.db.queries import query
from dbanon.db.session import listening
from dbanon.domain.errors import DbanonError
from dbanon.domain.release import Mark
from dbanon.domain.table import TableName

if TYPE_CHECKING:
    from datetime import datetime
    from threading import Event

    from dbanon.db.session import Session
    from dbanon.settings import Settings

ATTEMPTS = 8
_FIRST_PAUSE = timedelta(seconds=15)
_LONGEST_PAUSE = timedelta(minutes=30)
_STOP_SECONDS = 0.5  # interval of checks for a stop request while listening
_MOMENT = timedelta(seconds=5)  # between taking a job and locking it


@dataclass(frozen=True, slots=True)
class Job:
    """A refresh that this worker has taken: its attempt, and when it was due, if ever.

    A release after ``begun``, the start of the first attempt, completes the job, even if another
    session published it, or a worker that was lost after its COMMIT.
    """

    id: int
    table: TableName
    due_at: datetime | None
    attempts: int
    begun: Mark


@dataclass(frozen=True, slots=True)
class Standing:
    """The job counts of a table; the last four fields describe the job that started last."""

    table: TableName
    waiting: int
    running: int
    not_before: datetime | None
    succeeded_at: datetime | None
    state: str | None
    result: str | None
    reason: str | None
    ended_at: datetime | None


def now(session: Session) -> datetime:
    """Return the time of the database's clock."""
    cursor = session.pg.cursor(row_factory=scalar_row)
    return cast("datetime", cursor.execute(query("jobs.now")).fetchone())


def named(table: TableName) -> dict[str, object]:
    """Return the name of a table as parameters of a statement."""
    return {"schema": table.schema, "name": table.name}


class Bell:
    """A separate connection that listens for new jobs while the worker is idle.

    Any role may send notifications, in any number and size. So the connection is closed at the
    first one, which discards the rest, and before a job starts. Without it, as with limited
    connections, workers poll the queue.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._pg: psycopg.Connection | None = None

    def listen(self) -> None:
        """Start listening; check the queue for earlier notifications."""
        if self._pg is None:
            with suppress(DbanonError, psycopg.Error):
                self._pg = listening(self._settings)

    def wait(self, seconds: float, stop: Event) -> None:
        """Wait for a notification, the timeout, or ``stop``; reads nothing, as a flood may come."""
        if self._pg is None:
            stop.wait(seconds)
            return
        end = monotonic() + seconds
        with DefaultSelector() as selector:
            try:
                selector.register(self._pg.fileno(), EVENT_READ)
            except psycopg.Error:  # it was lost
                self.close()
                return
            while not stop.is_set() and (left := end - monotonic()) > 0:
                if selector.select(min(left, _STOP_SECONDS)):
                    self.close()
                    return

    def close(self) -> None:
        """Stop listening."""
        if self._pg is not None:
            self._pg.close()
            self._pg = None


def take(session: Session, moment: datetime) -> Job | None:
    """Take a job, None if there is none; the caller must commit."""
    values = {"now": moment, "longest": _LONGEST_PAUSE, "moment": _MOMENT}
    row = session.pg.execute(query("jobs.take"), values).fetchone()
    if row is None:
        return None
    number, schema, name, due_at, attempts, begun_after, begun_at = row
    return Job(number, TableName(schema, name), due_at, attempts, Mark(begun_after, begun_at))


def hold(session: Session, job: Job) -> bool:
    """Lock a job in the open transaction; False if another worker has taken it."""
    values = {"job": job.id, "attempts": job.attempts}
    return session.pg.execute(query("jobs.hold"), values).fetchone() is not None


def end(
    session: Session, job: Job, *, result: str | None = None, reason: str | None = None
) -> None:
    """Record that a job is done, with its result, or failed, with a reason."""
    values = {
        "job": job.id,
        "state": "failed" if result is None else "done",
        "result": result,
        "reason": reason,
        "now": now(session),
    }
    session.pg.execute(query("jobs.end"), values)
    session.pg.execute(query("jobs.prune"), named(job.table))


def put_back(session: Session, job: Job, *, reason: str | None = None) -> None:
    """Put a job back for another attempt: at once, or after a pause if there is a reason.

    If an open transaction requests a refresh, the job is left like that of a lost worker instead.
    """
    pause = timedelta()
    if reason is not None:
        pause = min(_FIRST_PAUSE * 2 ** (job.attempts - 1), _LONGEST_PAUSE)
    values = {
        "job": job.id,
        "uncounted": int(reason is None),
        "now": now(session),
        "pause": pause,
        "reason": reason,
    }

    def wait() -> None:
        merged = session.pg.execute(query("jobs.merge"), values).rowcount > 0
        session.pg.execute(query("jobs.put_back"), values | {"state": "waiting", "merged": merged})

    try:
        locks.patiently(session, wait, on=(), budget=0)
    except locks.Held:
        session.pg.execute(query("jobs.put_back"), values | {"state": "running", "merged": False})
    session.pg.execute(query("jobs.tell"))


def standing(session: Session) -> list[Standing]:
    """Return the job counts of each table, by table."""
    cursor = session.pg.cursor(row_factory=dict_row)
    rows = cursor.execute(query("jobs.standing")).fetchall()
    return [
        Standing(TableName(row.pop("table_schema"), row.pop("table_name")), **row) for row in rows
    ]
