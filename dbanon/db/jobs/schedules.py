"""When tables are refreshed, as rows of the metadata tables."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from psycopg.rows import dict_row

from dbanon.db import locks
from dbanon.db.jobs import queue
from dbanon.db.queries import query
from dbanon.domain.errors import ConfigError
from dbanon.domain.table import TableName
from dbanon.formats.cron import Cron

if TYPE_CHECKING:
    from datetime import datetime

    from dbanon.db.session import Session


@dataclass(frozen=True, slots=True)
class Schedule:
    """When a table is refreshed; nothing that was due before ``stored_at`` is."""

    table: TableName
    cron: str
    zone: str
    stored_at: datetime
    stored_by: str

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
    rows = cursor.execute(query("jobs/schedules")).fetchall()
    return [
        Schedule(TableName(row.pop("table_schema"), row.pop("table_name")), **row) for row in rows
    ]


def store(session: Session, table: TableName, cron: Cron) -> None:
    """Add the schedule of a table, or replace it."""
    values = {"cron": " ".join(cron.expression.split()), "zone": cron.zone}
    now = queue.now(session)
    session.pg.execute(query("jobs/store"), {**queue.named(table), **values, "now": now})
    session.pg.execute(query("jobs/tell"))


def remove(session: Session, table: TableName) -> None:
    """Remove the schedule of a table, and its job that has not begun."""
    session.pg.execute(query("jobs/remove"), queue.named(table))


def enter_due(session: Session, now: datetime) -> list[ConfigError]:
    """Enter the newest time of each schedule that is due as a job, unless it is one.

    What was missed before it while nobody looked is not made up for. Returns why schedules could
    not be read.
    """
    unread = []
    for schedule in schedules(session):
        try:
            due = schedule.last(now)
        except ConfigError as error:
            unread.append(
                ConfigError(f"the schedule of {schedule.table}: {error}", hint=error.hint)
            )
            continue
        if due is not None:
            _enter(session, schedule.table, due, now=now)
    return unread


def _enter(session: Session, table: TableName, due: datetime, *, now: datetime) -> None:
    """Enter a time that is due, unless somebody has just asked for a refresh and not committed."""

    def enter() -> None:
        values = {**queue.named(table), "due": due, "now": now}
        session.pg.execute(query("jobs/enter_due"), values)

    with suppress(locks.Held):  # no worker waits for that: it is entered when it is looked at next
        locks.patiently(session, enter, on=(), budget=0)
