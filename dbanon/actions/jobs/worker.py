"""Do the jobs of schedules, one at a time, for as long as nobody says stop."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from threading import Event
from time import monotonic
from typing import TYPE_CHECKING

from dbanon.actions.jobs.attempts import LASTING, Result, attempt
from dbanon.actions.jobs.vitals import POLL_SECONDS, Vitals
from dbanon.domain.errors import DatabaseError, SchemaOutOfDate
from dbanon.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from dbanon.actions.jobs.attempts import Outcome
    from dbanon.actions.jobs.metrics import Metrics
    from dbanon.db.jobs.queue import Job
    from dbanon.db.jobs.schedules import Agenda
    from dbanon.db.session import Session
    from dbanon.domain.table import TableName

_LONGEST_PAUSE_SECONDS = 60.0
# Anybody may say that there is a job: who has none looks no more often than this.
_LOOK_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Worked:
    """An attempt at a job: when it was due, None if it was asked for by itself; how it ended."""

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
    """Enter what is due and refresh what there are jobs for, until ``stop`` is set.

    With ``once``, until nothing is left to do now. Several workers share the jobs. ``on_job`` is
    called with what became of each, ``on_note`` when the database is lost or a schedule cannot be
    read. With ``metrics_port`` /metrics and /healthz are served to this machine alone. A
    KeyboardInterrupt ends a job at once, which then waits for another worker.

    Raises SchemaOutOfDate, NotPermitted, and any DbanonError of the first connection; a connection
    that is lost later is opened again.
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
    from dbanon.actions.jobs.metrics import Metrics

    worker.metrics = Metrics(worker.vitals)
    with worker.metrics.served(metrics_port):
        worker.run()


@dataclass(slots=True)
class _Worker:
    settings: Settings
    once: bool
    stop: Event
    on_job: Callable[[Worked], None]
    on_note: Callable[[str], None]
    vitals: Vitals = field(default_factory=Vitals)
    metrics: Metrics | None = None
    _agenda: Agenda = field(init=False)
    _lost: int = 0
    _told: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        from dbanon.db.jobs.schedules import Agenda

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
                if self.once or not self.vitals.was_reached:
                    raise
                self._pause(error)
            else:
                return

    def _pause(self, error: DatabaseError) -> None:
        """Wait before the next connection, longer each time, and not all workers alike."""
        self._lost += 1
        self.on_note(f"{error}; trying again")
        longest = min(2.0**self._lost, _LONGEST_PAUSE_SECONDS)
        self.stop.wait(longest * random.uniform(0.5, 1.0))  # noqa: S311 - no secret

    def _serve(self) -> None:
        """Work over one connection."""
        from contextlib import closing

        from dbanon.db.jobs.queue import Bell
        from dbanon.db.metadata.migrate import require_current
        from dbanon.db.session import connect

        with connect(self.settings, writes=True) as session, closing(Bell(self.settings)) as bell:
            with session.transaction():
                require_current(session)
            had_none = not self.once
            while not self.stop.is_set():
                if had_none:
                    bell.listen()
                looked = monotonic()
                job, idle = self._next(session)
                self.vitals.reach()
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
        """Take a job, or return for how many seconds there may be nothing to do."""
        from dbanon.db.jobs import queue

        with session.transaction():
            now = queue.now(session)
            unread = self._agenda.enter_due(session, now)
        for error in unread:
            self._note_once(str(error))
        with session.transaction():
            job = queue.take(session, now)
        with session.transaction():
            standing = queue.standing(session)
        if self.metrics is not None:
            self.metrics.show(standing)
        pauses = (one.not_before for one in standing)
        later = [moment for moment in (self._agenda.coming, *pauses) if moment]
        seconds = [(moment - now).total_seconds() for moment in later if moment > now]
        return job, min([POLL_SECONDS, *(second + 0.05 for second in seconds)])

    def _note_once(self, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            self.on_note(text)

    def _do(self, session: Session, job: Job) -> None:
        """Run a job and enter what became of it; its row is locked meanwhile."""
        from dbanon.db.jobs import queue

        started = monotonic()
        with session.transaction():
            if not queue.hold(session, job):
                return
            outcome = attempt(job, self.settings, vitals=self.vitals, stop=self.stop)
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
