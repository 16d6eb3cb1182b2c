"""The job queue: each job is done by one worker, even if others fail.

A worker marks a job as *running*, and holds its row lock until it records the result. So a running
job that can be locked belongs to a lost worker.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from selectors import EVENT_READ, DefaultSelector
from time import monotonic
from typing import TYPE_CHECKING, TypeVar, cast

import psycopg

from dbanon.db import locks
from dbanon.db.queries import named, query
from dbanon.db.session import Notified, Session, listening
from dbanon.domain.errors import ConfigError, DbanonError
from dbanon.domain.release import Mark
from dbanon.domain.table import TableName
from dbanon.domain.text import command
from dbanon.formats.cron import Cron

if TYPE_CHECKING:
    from collections.abc import Callable
    from threading import Event

    from dbanon.settings import Settings


T = TypeVar("T")
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
class JobCounts:
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
    return cast("datetime", session.one(query("jobs.now"))[0])


class Bell:
    """A separate connection that listens for new jobs while the worker is idle.

    Any role may send notifications, in any number and size. So the connection is closed at the
    first one, which discards the rest, and before a job starts. Without it, as with limited
    connections, workers poll the queue.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._pg: psycopg.Connection | None = None
        self._has_rung = False

    def listen(self) -> None:
        """Start listening; check the queue for earlier notifications."""
        if self._pg is None:
            with suppress(DbanonError, psycopg.Error):
                try:
                    self._pg = listening(self._settings)
                except Notified:
                    self._has_rung = True

    def wait(self, seconds: float, stop: Event) -> None:
        """Wait for a notification, the timeout, or ``stop``; reads nothing, as a flood may come."""
        if self._has_rung:
            self._has_rung = False
            return
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
    """Lock a job in the open transaction; False if another worker has taken it.

    One that looked for a job meanwhile may have locked this one until the end of its transaction.
    """
    values = {"job": job.id, "attempts": job.attempts}

    def lock() -> bool:
        return session.pg.execute(query("jobs.hold"), values).fetchone() is not None

    with suppress(locks.LockNotGranted):
        return locks.patiently(session, lock, on=(), budget=_MOMENT.total_seconds() / 2)
    return False


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

    if not locks.unless_held(session, wait):
        session.pg.execute(query("jobs.put_back"), values | {"state": "running", "merged": False})
    session.pg.execute(query("jobs.tell"))


def job_counts(session: Session) -> list[JobCounts]:
    """Return the job counts of each table, by table."""
    return _by_table(session, "jobs.job_counts", JobCounts)


def _by_table(session: Session, name: str, make: Callable[..., T]) -> list[T]:
    """Return the rows of a statement, each made of its table and its other columns."""
    rows = session.records(query(name))
    return [make(TableName(row.pop("table_schema"), row.pop("table_name")), **row) for row in rows]


@dataclass(frozen=True, slots=True)
class Schedule:
    """The schedule of a table; earlier times than ``stored_at`` do not count.

    ``entered`` is the newest due time that has a job.
    """

    table: TableName
    cron: str
    zone: str
    stored_at: datetime
    stored_by: str
    entered: datetime | None = field(default=None, compare=False)

    def last(self, now: datetime) -> datetime | None:
        """Return the newest due time or None; raises ConfigError for an unknown zone."""
        due = Cron(self.cron, self.zone).last(now)
        # A schedule that was stored later than now is one of a clock that has jumped back since.
        return None if due is None or due <= self.stored_at <= now else due

    def next(self, now: datetime) -> datetime | None:
        """Return the next due time, None if this machine does not know the zone."""
        try:
            return Cron(self.cron, self.zone).next(now)
        except ConfigError:
            return None


def schedules(session: Session) -> list[Schedule]:
    """Return all schedules, by table."""
    return _by_table(session, "jobs.schedules", Schedule)


def store(session: Session, table: TableName, cron: Cron) -> None:
    """Add or replace the schedule of a table."""
    values = {**named(table), "cron": " ".join(cron.expression.split()), "zone": cron.zone}
    session.pg.execute(query("jobs.store"), {**values, "now": now(session)})
    session.pg.execute(query("jobs.tell"))


def remove(session: Session, table: TableName) -> None:
    """Remove the schedule of a table, and its waiting job."""
    session.pg.execute(query("jobs.remove"), named(table))


@dataclass(slots=True)
class Agenda:
    """The next due time of each schedule; ``_next`` lacks those whose cron must be evaluated."""

    _next: dict[Schedule, datetime] = field(default_factory=dict)
    _looked: datetime | None = None

    def enter_due(self, session: Session, now: datetime) -> list[ConfigError]:
        """Create jobs for the newest due times; earlier missed ones are skipped.

        Returns the errors of schedules that cannot be read.
        """
        if self._looked is not None and now < self._looked:  # the clock was set back
            self._next.clear()
        self._looked, unread, known = now, [], {}
        for schedule in schedules(session):
            coming = self._next.get(schedule)
            if coming is None or coming <= now:
                try:
                    due, coming = schedule.last(now), schedule.next(now)
                except Exception as error:  # noqa: BLE001 - it keeps no other from being due
                    unread.append(_unread(schedule, error))
                    continue
                if due not in {None, schedule.entered} and not _enter(
                    session, schedule.table, due, now=now
                ):
                    continue
            if coming is not None:
                known[schedule] = coming
        self._next = known
        return unread

    @property
    def coming(self) -> datetime | None:
        """The next due time of all schedules, None if there is none."""
        return min(self._next.values(), default=None)


def _unread(schedule: Schedule, error: Exception) -> ConfigError:
    """Return the error for an unreadable schedule; an unexpected one is named by its type."""
    text, hint = f"unforeseen {type(error).__name__}", None
    if isinstance(error, ConfigError):
        text, hint = str(error), error.hint
    hint = hint or command("dbanon schedule set", schedule.table, options="--cron ...")
    return ConfigError(f"the schedule of {schedule.table}: {text}", hint=hint)


def _enter(session: Session, table: TableName, due: datetime, *, now: datetime) -> bool:
    """Create a job; False if an open transaction requests a refresh: then it is retried later."""

    def enter() -> None:
        values = {**named(table), "due": due, "now": now}
        session.pg.execute(query("jobs.enter_due"), values)

    return locks.unless_held(session, enter)
