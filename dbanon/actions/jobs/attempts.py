"""One attempt at a job, and what is to become of the job after it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from dbanon.domain.errors import (
    DatabaseError,
    DbanonError,
    NotPermitted,
    SchemaOutOfDate,
    TableNotFound,
)

if TYPE_CHECKING:
    from threading import Event

    from dbanon.actions.jobs.vitals import Vitals
    from dbanon.actions.refresh import Refreshed
    from dbanon.db.jobs.queue import Job
    from dbanon.settings import Settings

LASTING = (NotPermitted, SchemaOutOfDate, TableNotFound)
"""The errors of a database that trying again does not help against."""


class Result(StrEnum):
    """What became of a job; what is retried or was stopped waits again."""

    REFRESHED = "refreshed"
    UNCHANGED = "unchanged"
    FAILED = "failed"
    RETRIED = "retried"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of an attempt: ``error`` is why the job is not done, ``refreshed`` what it did."""

    result: Result
    error: DbanonError | None = None
    refreshed: tuple[Refreshed, ...] = ()


def attempt(job: Job, settings: Settings, *, vitals: Vitals, stop: Event) -> Outcome:
    """Refresh the table of a job, unless an attempt before has done so.

    What anybody can do about an error decides whether the job is tried again.
    """
    from dbanon.db.jobs import queue

    if job.attempts > queue.ATTEMPTS:
        lost = DatabaseError(f"attempt {queue.ATTEMPTS} has lost its worker")
        return Outcome(Result.FAILED, lost)
    try:
        refreshed = _refresh(job, settings, vitals=vitals)
    except KeyboardInterrupt:
        return Outcome(Result.STOPPED)
    except Exception as error:  # noqa: BLE001 - a worker outlives what nobody foresaw
        # Some libraries make an error of their own of a KeyboardInterrupt.
        return Outcome(Result.STOPPED) if stop.is_set() else _failed(job, error)
    changed = any(one.changed or job.begun.precedes(one.release) for one in refreshed)
    return Outcome(Result.REFRESHED if changed else Result.UNCHANGED, refreshed=tuple(refreshed))


def _failed(job: Job, error: Exception) -> Outcome:
    """Return the end of an attempt that an error broke off: whether the job is tried again."""
    from dbanon.db.jobs import queue

    if isinstance(error, SchemaOutOfDate):  # it ends this worker, and another knows the schema
        return Outcome(Result.STOPPED, error)
    passes = isinstance(error, DatabaseError) and not isinstance(error, LASTING)
    if not isinstance(error, DbanonError):
        # What an unforeseen error says may quote a row, so only its kind is told.
        passes, error = True, DbanonError(f"unforeseen {type(error).__name__}")
    again = passes and job.attempts < queue.ATTEMPTS
    return Outcome(Result.RETRIED if again else Result.FAILED, error)


def _refresh(job: Job, settings: Settings, *, vitals: Vitals) -> list[Refreshed]:
    from dbanon.actions.refresh import refresh
    from dbanon.domain.deeds import followed

    with followed(), vitals.working() as stages:
        return refresh(
            job.table, if_changed=True, unless_since=job.begun, settings=settings, stages=stages
        )
