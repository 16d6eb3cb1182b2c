"""Run due jobs until stopped, one at a time."""

from __future__ import annotations

import random
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from threading import Event, Thread
from time import monotonic
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, make_wsgi_app
from prometheus_client.exposition import ThreadingWSGIServer

from dbanon.actions.refresh import Refreshed, refresh
from dbanon.db.jobs import queue
from dbanon.db.jobs.queue import Agenda, Bell, Job, JobCounts
from dbanon.db.metadata.migrate import require_current
from dbanon.db.session import Session, connect
from dbanon.domain.errors import (
    ConfigError,
    DatabaseError,
    DbanonError,
    NotPermitted,
    SchemaOutOfDate,
    TableNotFound,
)
from dbanon.domain.outcomes import Stages, followed
from dbanon.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from datetime import datetime

    from dbanon.domain.table import TableName


POLL_SECONDS = 30.0
"""A worker looks at least so often: not every change is told, and a clock may be set."""

_UNREACHED_SECONDS = 3 * POLL_SECONDS
# A single statement that proves millions of rows takes minutes.
_STUCK_SECONDS = 3600.0


@dataclass(slots=True)
class Health:
    """The last time the worker reached the database, and the last progress of its job."""

    _reached: float | None = None
    _moved: float | None = None

    @property
    def was_reached(self) -> bool:
        """True if the database was ever reached."""
        return self._reached is not None

    def reach(self) -> None:
        """Record the time of the last answer of the database."""
        self._reached = monotonic()

    @contextmanager
    def working(self) -> Iterator[Stages]:
        """Monitor a job by its stages."""
        self._move()
        try:
            yield Stages(on_start=self._move, on_step=self._move, on_progress=self._move)
        finally:
            self._moved = None
            self.reach()

    def _move(self, *_: object) -> None:
        self._moved = monotonic()

    def ails(self) -> str | None:
        """Return the problem of the worker, None if it is healthy."""
        moved, reached = self._moved, self._reached
        if moved is not None:
            stuck = monotonic() - moved > _STUCK_SECONDS
            return "the job does not move on" if stuck else None
        if reached is None or monotonic() - reached > _UNREACHED_SECONDS:
            return "the database is not reached"
        return None


_ADDRESS = "127.0.0.1"
_SECONDS = (1, 3, 10, 30, 100, 300, 1000, 3000, 10000)


class _Silent(WSGIRequestHandler):
    def log_message(self, *_: object) -> None:
        """Do not log requests: stderr is for problems."""


class Metrics:
    """Job counts of this worker, and job states from the database, by escaped table name."""

    def __init__(self, health: Health) -> None:
        self._health = health
        self._shown: set[str] = set()
        self._registry = CollectorRegistry()
        self._jobs = Counter(
            "dbanon_jobs",
            "Attempts at jobs that this worker ended, by result.",
            ["table", "result"],
            registry=self._registry,
        )
        self._seconds = Histogram(
            "dbanon_job_seconds",
            "How long attempts took.",
            ["table"],
            buckets=_SECONDS,
            registry=self._registry,
        )
        gauges = {
            "dbanon_last_success_timestamp_seconds": "When a job of the table last succeeded.",
            "dbanon_last_job_failed": "Whether the job that was begun last has failed for good.",
            "dbanon_jobs_waiting": "Jobs that wait, those to be tried again included.",
            "dbanon_jobs_running": "Jobs that a worker has taken.",
        }
        self._gauges = {
            name: Gauge(name, text, ["table"], registry=self._registry)
            for name, text in gauges.items()
        }

    def count(self, table: TableName, *, result: str, seconds: float) -> None:
        """Count the result of a job."""
        self._jobs.labels(str(table), result).inc()
        self._seconds.labels(str(table)).observe(seconds)

    def show(self, counts: Iterable[JobCounts]) -> None:
        """Update the job states of all tables."""
        shown = set()
        for one in counts:
            shown.add(str(one.table))
            at = None if one.succeeded_at is None else one.succeeded_at.timestamp()
            values = (at, one.state == "failed", one.waiting, one.running)
            for gauge, value in zip(self._gauges.values(), values, strict=True):
                if value is not None:
                    gauge.labels(str(one.table)).set(value)
        for table in self._shown - shown:
            for gauge in self._gauges.values():
                with suppress(KeyError):  # a table without a success
                    gauge.remove(table)
        self._shown = shown

    @contextmanager
    def served(self, port: int) -> Iterator[None]:
        """Serve /metrics and /healthz during the block; raises ConfigError for a port in use."""
        try:
            server = make_server(_ADDRESS, port, self._answer, ThreadingWSGIServer, _Silent)
        except OSError as error:
            raise ConfigError(
                f"port {port} cannot be opened: {error.strerror}", hint="--metrics-port 9465"
            ) from None
        with server:
            Thread(target=server.serve_forever, daemon=True).start()
            try:
                yield
            finally:
                server.shutdown()

    def _answer(self, asked: dict[str, Any], start: Callable[..., Any]) -> Sequence[bytes]:
        if asked["PATH_INFO"] == "/metrics":
            found: Sequence[bytes] = make_wsgi_app(self._registry)(asked, start)
            return found
        if asked["PATH_INFO"] != "/healthz":
            status, text = "404 Not Found", "there are /metrics and /healthz"
        elif (ails := self._health.ails()) is not None:
            status, text = "503 Service Unavailable", ails
        else:
            status, text = "200 OK", "well"
        start(status, [("Content-Type", "text/plain; charset=utf-8")])
        return [f"{text}\n".encode()]


_LONGEST_PAUSE_SECONDS = 60.0
# Any role may announce a job: an idle worker looks no more often than this.
_LOOK_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Worked:
    """An attempt at a job with its outcome; due_at is None if it was requested individually."""

    table: TableName
    due_at: datetime | None
    attempt: int
    seconds: float
    outcome: Outcome


def work(
    *,
    once: bool = False,
    metrics_port: int | None = None,
    stop: Event | None = None,
    on_job: Callable[[Worked], None] | None = None,
    on_note: Callable[[str], None] | None = None,
    settings: Settings | None = None,
) -> None:
    """Create and run due jobs until ``stop`` is set, or with ``once`` until none is due.

    Several workers share the jobs. ``on_job`` gets the result of each, ``on_note`` a lost
    connection or an unreadable schedule. With ``metrics_port``, serves /metrics and /healthz on
    localhost only. A KeyboardInterrupt ends a job at once, and leaves it to another worker.

    Raises SchemaOutOfDate, NotPermitted, and any DbanonError of the first connection; later lost
    connections are opened again.
    """
    worker = _Worker(
        settings or Settings.load(),
        once=once,
        stop=stop or Event(),
        on_job=on_job or (lambda _: None),
        on_note=on_note or (lambda _: None),
    )
    if metrics_port is None:
        worker.run()
        return

    worker.metrics = Metrics(worker.health)
    with worker.metrics.served(metrics_port):
        worker.run()


@dataclass(slots=True)
class _Worker:
    settings: Settings
    once: bool
    stop: Event
    on_job: Callable[[Worked], None]
    on_note: Callable[[str], None]
    health: Health = field(default_factory=Health)
    metrics: Metrics | None = None
    _agenda: Agenda = field(init=False)
    _lost: int = 0
    _told: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._agenda = Agenda()

    def run(self) -> None:
        while not self.stop.is_set():
            try:
                self._serve()
            except LASTING:
                raise
            except DatabaseError as error:
                if self.stop.is_set():
                    return
                if self.once or not self.health.was_reached:
                    raise
                self._pause(error)
            else:
                return

    def _pause(self, error: DatabaseError) -> None:
        """Wait before the next connection, with exponential backoff and jitter."""
        self._lost += 1
        self.on_note(f"{error}; trying again")
        longest = min(2.0**self._lost, _LONGEST_PAUSE_SECONDS)
        self.stop.wait(longest * random.uniform(0.5, 1.0))  # noqa: S311 - no secret

    def _serve(self) -> None:
        with connect(self.settings, writes=True) as session, closing(Bell(self.settings)) as bell:
            with session.transaction():
                require_current(session)
            had_none = not self.once
            while not self.stop.is_set():
                if had_none:
                    bell.listen()
                looked = monotonic()
                job, idle = self._next(session)
                self.health.reach()
                self._lost = 0
                if job is not None:
                    had_none = False
                    bell.close()
                    self._do(session, job)
                elif self.once:
                    return
                elif not had_none:
                    had_none = True  # it listens before it looks again: nothing is missed
                else:
                    bell.wait(idle, self.stop)
                    self.stop.wait(max(0.0, looked + _LOOK_SECONDS - monotonic()))

    def _next(self, session: Session) -> tuple[Job | None, float]:
        """Take a job; also returns the seconds until the next one may be due."""
        with session.transaction():
            now = queue.now(session)
            unread = self._agenda.enter_due(session, now)
        for error in unread:
            self._note_once(str(error))
        with session.transaction():
            job = queue.take(session, now)
        if job is not None and self.metrics is None:
            return job, POLL_SECONDS  # until it is held, another worker may think it lost
        with session.transaction():
            counts = queue.job_counts(session)
        if self.metrics is not None:
            self.metrics.show(counts)
        pauses = (one.not_before for one in counts)
        later = [moment for moment in (self._agenda.coming, *pauses) if moment]
        seconds = [(moment - now).total_seconds() for moment in later if moment > now]
        return job, min([POLL_SECONDS, *(second + 0.05 for second in seconds)])

    def _note_once(self, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            self.on_note(text)

    def _do(self, session: Session, job: Job) -> None:
        """Run a job and record its result; its row is locked meanwhile."""
        started = monotonic()
        with session.transaction():
            if not queue.hold(session, job):
                return
            outcome = attempt(job, self.settings, health=self.health, stop=self.stop)
            result, error = outcome.result, outcome.error
            if result in {Result.REFRESHED, Result.UNCHANGED}:
                queue.end(session, job, result=result)
            elif result is Result.FAILED:
                queue.end(session, job, reason=str(error))
            else:
                counted = result is Result.RETRIED
                queue.put_back(session, job, reason=str(error) if counted else None)
        seconds = monotonic() - started
        if self.metrics is not None:
            self.metrics.count(job.table, result=result, seconds=seconds)
        self.on_job(Worked(job.table, job.due_at, job.attempts, seconds, outcome))
        if isinstance(error, SchemaOutOfDate):
            raise error
        if result is Result.STOPPED and not self.stop.is_set():
            raise KeyboardInterrupt


LASTING = (NotPermitted, SchemaOutOfDate, TableNotFound)
"""The errors of a database that trying again does not help against."""


class Result(StrEnum):
    """The result of a job; retried and stopped ones wait again."""

    REFRESHED = "refreshed"
    UNCHANGED = "unchanged"
    FAILED = "failed"
    RETRIED = "retried"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of an attempt, with its ``error`` or the ``refreshed`` releases."""

    result: Result
    error: DbanonError | None = None
    refreshed: tuple[Refreshed, ...] = ()


def attempt(job: Job, settings: Settings, *, health: Health, stop: Event) -> Outcome:
    """Refresh the table of a job, unless an earlier attempt did; retries transient errors."""
    if job.attempts > queue.ATTEMPTS:
        lost = DatabaseError(f"attempt {queue.ATTEMPTS} has lost its worker")
        return Outcome(Result.FAILED, lost)
    try:
        refreshed = _refresh(job, settings, health=health)
    except KeyboardInterrupt:
        return Outcome(Result.STOPPED)
    except Exception as error:  # noqa: BLE001 - a worker survives unexpected errors
        # Some libraries make an error of their own of a KeyboardInterrupt.
        return Outcome(Result.STOPPED) if stop.is_set() else _failed(job, error)
    changed = any(one.changed or job.begun.precedes(one.release) for one in refreshed)
    return Outcome(Result.REFRESHED if changed else Result.UNCHANGED, refreshed=tuple(refreshed))


def _failed(job: Job, error: Exception) -> Outcome:
    """Return the outcome of an attempt with an error: failed, or to be retried."""
    if isinstance(error, SchemaOutOfDate):  # it ends this worker, and another knows the schema
        return Outcome(Result.STOPPED, error)
    passes = isinstance(error, DatabaseError) and not isinstance(error, LASTING)
    if not isinstance(error, DbanonError):
        # The text of an unexpected error may quote a row, so only its type is reported.
        passes, error = True, DbanonError(f"unforeseen {type(error).__name__}")
    again = passes and job.attempts < queue.ATTEMPTS
    return Outcome(Result.RETRIED if again else Result.FAILED, error)


def _refresh(job: Job, settings: Settings, *, health: Health) -> list[Refreshed]:
    with followed(), health.working() as stages:
        return refresh(
            job.table, if_changed=True, unless_since=job.begun, settings=settings, stages=stages
        )
