"""Manage refresh schedules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dbanon.actions.preparation.loading import find_source
from dbanon.db.jobs import queue
from dbanon.db.metadata import ledger
from dbanon.db.metadata.migrate import current_session
from dbanon.domain.errors import ConfigError
from dbanon.domain.outcomes import Operation
from dbanon.domain.table import TableName
from dbanon.domain.text import command
from dbanon.formats.cron import Cron
from dbanon.settings import Settings

if TYPE_CHECKING:
    from datetime import datetime

    from dbanon.db.jobs.queue import JobCounts, Schedule
    from dbanon.db.session import Session

_LIST = "dbanon schedule list"


@dataclass(frozen=True, slots=True)
class Scheduled:
    """A table with a schedule or jobs; ``schedule`` and ``jobs`` are None if there are none."""

    table: TableName
    schedule: Schedule | None
    next_due: datetime | None
    jobs: JobCounts | None


def set_schedule(
    table: str | TableName, cron: str, *, zone: str = "UTC", settings: Settings | None = None
) -> Scheduled:
    """Set or replace the refresh schedule of a table, starting with the next due time.

    ``cron`` has five fields, in the time zone. Raises ConfigError if one of them is invalid, or if
    the table has no served release.
    """
    times = Cron(cron, zone)
    name = TableName.parse(table)
    operation = Operation(f"the schedule of {name}", "stored", _LIST)
    with current_session(settings or Settings.load(), operation=operation) as session:
        found = find_source(session, name).name
        if not ledger.releases(session, table=found, served=True):
            hint = command("dbanon publish", found, options="--k 5")
            raise ConfigError(f"{found} is not published", hint=hint)
        queue.store(session, found, times)
        (stored,) = (one for one in _all(session) if one.table == found)
    return stored


def list_schedules(*, settings: Settings | None = None) -> list[Scheduled]:
    """Return the tables with a schedule or jobs, by name."""
    with current_session(settings or Settings.load()) as session:
        return _all(session)


def _all(session: Session) -> list[Scheduled]:
    moment = queue.now(session)
    planned = {one.table: one for one in queue.schedules(session)}
    jobs = {one.table: one for one in queue.job_counts(session)}
    tables = sorted({*planned, *jobs}, key=str)
    return [
        Scheduled(
            table,
            planned.get(table),
            planned[table].next(moment) if table in planned else None,
            jobs.get(table),
        )
        for table in tables
    ]


def remove_schedule(table: str | TableName, *, settings: Settings | None = None) -> TableName:
    """Remove the schedule of a table, which need not exist; returns its full name.

    Raises ConfigError if it has none.
    """
    name = TableName.parse(table)
    operation = Operation(f"the schedule of {name}", "removed", _LIST)
    with current_session(settings or Settings.load(), operation=operation) as session:
        known = (one.table for one in queue.schedules(session))
        found = [t for t in known if t.name == name.name and name.schema in {None, t.schema}]
        if len(found) != 1:
            several = f": {', '.join(map(str, found))}" if found else ""
            message = f"{name} is scheduled in several schemas{several}"
            raise ConfigError(message if found else f"{name} is not scheduled", hint=_LIST)
        queue.remove(session, found[0])
    return found[0]
