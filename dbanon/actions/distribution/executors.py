"""Executors of blocks: threads, processes, or a Dask cluster."""

from __future__ import annotations

import multiprocessing
import signal
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol

from dbanon.actions.distribution.tasks import completed, perform, retry_limit_reached
from dbanon.anonymization.threads import GivenUp, aside, processors
from dbanon.domain.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from multiprocessing.process import BaseProcess

    from dbanon.actions.distribution.tasks import Future, Job, Result, Run, Task
    from dbanon.settings import Settings


THREADS, PROCESSES, DASK = "threads", "processes", "dask://"
_ATTEMPTS = 4


class Executor(Protocol):
    """An executor of tasks."""

    def opened(
        self, job: Job, settings: Settings, *, stopped: Callable[[], bool]
    ) -> AbstractContextManager[Run]:
        """Open it for one job; it leaves nothing behind.

        stopped: polled; KeyboardInterrupt is raised when it returns True.
        """
        ...


def executor_named(text: str) -> Executor:
    """Return the executor of that name; raises ConfigError, also if its library is missing."""
    if text == THREADS:
        return Threads()
    if text == PROCESSES:
        return Processes()
    if text.startswith(DASK):
        from dbanon.actions.distribution.cluster import Cluster

        return Cluster.of(text.removeprefix(DASK))
    raise ConfigError(
        f"there is no executor {text!r}",
        hint=f"choose one of {THREADS}, {PROCESSES}, {DASK}HOST:PORT",
    )


@dataclass(frozen=True, slots=True)
class Threads:
    """This process, one block after the other, each with the threads of a search."""

    @contextmanager
    def opened(self, job: Job, settings: Settings, *, stopped: Callable[[], bool]) -> Iterator[Run]:
        """Open it for one job."""

        def run(tasks: Sequence[Task]) -> Iterator[tuple[int, Result]]:
            for number, task in enumerate(tasks):
                try:
                    yield number, aside(partial(perform, job, task, settings), until=stopped)
                except GivenUp:
                    raise KeyboardInterrupt from None

        yield run


@dataclass(frozen=True, slots=True)
class Processes:
    """Local processes, one per processor."""

    @contextmanager
    def opened(self, job: Job, settings: Settings, *, stopped: Callable[[], bool]) -> Iterator[Run]:
        """Open them for one job."""
        others = frozenset(multiprocessing.active_children())
        pools: list[ProcessPoolExecutor] = []

        def run(tasks: Sequence[Task]) -> Iterator[tuple[int, Result]]:
            todo = dict(enumerate(tasks))
            for _ in range(_ATTEMPTS):
                if not pools:
                    pools.append(_pool(job, settings))
                try:
                    futures = _submitted(pools[0], todo)
                    for number, result in completed(futures, stopped=stopped):
                        del todo[number]
                        yield number, result
                except BrokenProcessPool:  # the system, or somebody, has killed one of them
                    _end(pools.pop(), others)
                else:
                    return
            raise retry_limit_reached()

        try:
            yield run
        finally:
            for pool in pools:
                _end(pool, others)


def _submitted(pool: ProcessPoolExecutor, todo: Mapping[int, Task]) -> dict[Future, int]:
    """Submit tasks to a pool; raises BrokenProcessPool also if it breaks while a process starts."""
    try:
        return {pool.submit(_perform_here, task): number for number, task in todo.items()}
    except (OSError, ValueError) as error:  # its pipes are closed, or their numbers used again
        raise BrokenProcessPool from error


def _end(pool: ProcessPoolExecutor, others: Collection[BaseProcess]) -> None:
    """End all processes of a pool, including those that started after it broke.

    The pool itself would wait for these, and for blocks that are no longer needed.
    """
    for child in multiprocessing.active_children():
        if child not in others:
            child.kill()
    pool.shutdown(wait=True, cancel_futures=True)


def _pool(job: Job, settings: Settings) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(
        processors(),
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_begin,
        initargs=(job, settings),
    )


_mine: list[tuple[Job, Settings]] = []


def _begin(job: Job, settings: Settings) -> None:
    """Store the shared data of all tasks of this process, which arrives through its own pipe."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that began this one ends it
    _mine.append((job, settings))


def _perform_here(task: Task) -> Result:
    job, settings = _mine[-1]
    return perform(job, task, settings)
