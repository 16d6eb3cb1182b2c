"""Schedules of refreshes, as rows of the metadata tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from psycopg.rows import dict_row

from dbanon.db import locks
from dbanon.db.jobs import queue
from dbanon.db.queries import query
from dbanon.domain.errors import ConfigError
from dbanon.domain.table import TableName
from dbanon.domain.text import command
from dbanon.formats.cron import Cron

if TYPE_CHECKING:
    from datetime import datetime

    from dbanon.db.session import Session


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
    cursor = session.pg.cursor(row_factory=dict_row)
    rows = cursor.execute(query("jobs.schedules")).fetchall()
    return [
        Schedule(TableName(row.pop("table_schema"), row.pop("table_name")), **row) for row in rows
    ]


def store(session: Session, table: TableName, cron: Cron) -> None:
    """Add or replace the schedule of a table."""
    values = {"cron": " ".join(cron.expression.split()), "zone": cron.zone}
    now = queue.now(session)
    session.pg.execute(query("jobs.store"), {**queue.named(table), **values, "now": now})
    session.pg.execute(query("jobs.tell"))


def remove(session: Session, table: TableName) -> None:
    """Remove the schedule of a table, and its waiting job."""
    session.pg.execute(query("jobs.remove"), queue.named(table))


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
                if due is not None and not self._is_entered(session, schedule, due):
                    continue
            if coming is not None:
                known[schedule] = coming
        self._next = known
        return unread

    def _is_entered(self, session: Session, schedule: Schedule, due: datetime) -> bool:
        now = self._looked or due
        return due == schedule.entered or _enter(session, schedule.table, due, now=now)

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
        values = {**queue.named(table), "due": due, "now": now}
        session.pg.execute(query("jobs.enter_due"), values)

    try:
        locks.patiently(session, enter, on=(), budget=0)
    except locks.Held:
        return False
    return True
