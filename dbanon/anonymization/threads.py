"""Run independent tasks on all processors, and tasks that the caller can abandon."""

from __future__ import annotations

import os
import threading
from itertools import count
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

T = TypeVar("T")
R = TypeVar("R")

_LOOKS = 0.05  # seconds between two checks
_here = threading.local()


class GivenUp(Exception):
    """The caller abandoned the task."""


def processors() -> int:
    """Return the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def given_up() -> bool:
    """Return True if the caller of this thread's task has abandoned it."""
    asked: threading.Event | None = getattr(_here, "given_up", None)
    return asked is not None and asked.is_set()


def aside(task: Callable[[], R], *, until: Callable[[], bool]) -> R:
    """Return a task's result; raise GivenUp as soon as ``until`` returns True.

    The task has its own thread: a kernel cannot be interrupted, but the caller can. An abandoned
    task ends in the background, before its next subtask.
    """
    if until() or given_up():
        raise GivenUp
    results: list[R] = []
    errors: list[BaseException] = []
    done, asked = threading.Event(), threading.Event()

    def work() -> None:
        _here.given_up = asked
        try:
            results.append(task())
        except BaseException as error:  # noqa: BLE001 - raised again in the waiting thread
            errors.append(error)
        finally:
            done.set()

    threading.Thread(target=work, daemon=True).start()
    try:
        while not (done.wait(_LOOKS) or until() or given_up()):
            pass
    finally:
        asked.set()
    if errors:
        raise errors[0]
    if not results:
        raise GivenUp
    return results[0]


def in_threads(task: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """Run a task on all items in parallel; return results in order, or raise GivenUp."""
    todo = list(items)
    results: dict[int, R] = {}
    errors: list[BaseException] = []
    asked: threading.Event = getattr(_here, "given_up", None) or threading.Event()
    turns = count()

    def work() -> None:
        _here.given_up = asked
        while not (errors or asked.is_set()) and (i := next(turns)) < len(todo):
            try:
                results[i] = task(todo[i])
            except BaseException as error:  # noqa: BLE001 - raised again in the waiting thread
                errors.append(error)

    workers = [
        threading.Thread(target=work, daemon=True) for _ in range(min(processors(), len(todo)))
    ]
    for worker in workers:
        worker.start()
    _join(workers, asked)
    if errors:
        raise errors[0]
    return [results[i] for i in range(len(todo))]


def _join(workers: list[threading.Thread], asked: threading.Event) -> None:
    try:
        for worker in workers:
            while worker.is_alive() and not asked.is_set():
                worker.join(_LOOKS)
    except BaseException:
        asked.set()  # the caller is interrupted
        raise
    if asked.is_set():
        raise GivenUp
