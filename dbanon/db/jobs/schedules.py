"""When tables are refreshed, as rows of the metadata tables."""

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
    """When a table is refreshed; nothing that was due before ``stored_at`` is.

    ``entered`` is the newest due time that is a job already.
    """

    table: TableName
    cron: str
    zone: str
    stored_at: datetime
    stored_by: str
    entered: datetime | None = field(default=None, compare=False)

    def last(self, now: datetime) -> datetime | None:
        """Return the newest time that is due by now, None if there is none yet.

        Raises ConfigError for a zone that this machine does not know.
        """
        due = Cron(self.cron, self.zone).last(now)
        # A schedule that was stored later than now is one of a clock that has jumped back since.
        return None if due is None or due <= self.stored_at <= now else due

    def next(self, now: datetime) -> datetime | None:
        """Return the first time that comes, None if this machine cannot tell."""
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
    """Add the schedule of a table, or replace it."""
    values = {"cron": " ".join(cron.expression.split()), "zone": cron.zone}
    now = queue.now(session)
    session.pg.execute(query("jobs.store"), {**queue.named(table), **values, "now": now})
    session.pg.execute(query("jobs.tell"))


def remove(session: Session, table: TableName) -> None:
    """Remove the schedule of a table, and its job that has not begun."""
    session.pg.execute(query("jobs.remove"), queue.named(table))


@dataclass(slots=True)
class Agenda:
    """When each schedule is due next, so that those that are not due need no look at their cron.

    ``_next`` has no schedule whose cron is to be read: a new or changed one, or one that is due.
    """

    _next: dict[Schedule, datetime] = field(default_factory=dict)
    _looked: datetime | None = None

    def enter_due(self, session: Session, now: datetime) -> list[ConfigError]:
        """Enter the newest time of each schedule that is due as a job, unless it is one.

        What was missed before it while nobody looked is not made up for. Returns why schedules
        could not be read.
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
        """Whether a due time is a job by now."""
        now = self._looked or due
        return due == schedule.entered or _enter(session, schedule.table, due, now=now)

    @property
    def coming(self) -> datetime | None:
        """The first time that any schedule is due after the last look, None if none is."""
        return min(self._next.values(), default=None)


def _unread(schedule: Schedule, error: Exception) -> ConfigError:
    """Return the error that a schedule cannot be read; of an unforeseen one, its kind."""
    text, hint = f"unforeseen {type(error).__name__}", None
    if isinstance(error, ConfigError):
        text, hint = str(error), error.hint
    hint = hint or command("dbanon schedule set", schedule.table, options="--cron ...")
    return ConfigError(f"the schedule of {schedule.table}: {text}", hint=hint)


def _enter(session: Session, table: TableName, due: datetime, *, now: datetime) -> bool:
    """Enter a time that is due; return False if somebody asks for a refresh and has not committed.

    No worker waits for that: it is entered when it is looked at next.
    """

    def enter() -> None:
        values = {**queue.named(table), "due": due, "now": now}
        session.pg.execute(query("jobs.enter_due"), values)

    try:
        locks.patiently(session, enter, on=(), budget=0)
    except locks.Held:
        return False
    return True
