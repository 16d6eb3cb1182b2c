"""Executors of blocks: threads, processes, or a Dask cluster."""

from __future__ import annotations

import ipaddress
import multiprocessing
import os
import signal
import threading
import warnings
from concurrent.futures import CancelledError, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol
from uuid import uuid4

from dbanon.actions.distribution.tasks import completed, perform, retry_limit_reached
from dbanon.anonymization.threads import GivenUp, aside, processors
from dbanon.domain import errors
from dbanon.domain.errors import ConfigError, DbanonError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from multiprocessing.process import BaseProcess

    from dbanon.actions.distribution.tasks import Future, Job, Make, Result, Run, Task


THREADS, PROCESSES, DASK = "threads", "processes", "dask://"
_ATTEMPTS = 4


class Executor(Protocol):
    """An executor of tasks."""

    def opened(self, job: Job, *, stopped: Callable[[], bool]) -> AbstractContextManager[Run]:
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
        return Cluster.of(text.removeprefix(DASK))
    raise ConfigError(
        f"there is no executor {text!r}",
        hint=f"choose one of {THREADS}, {PROCESSES}, {DASK}HOST:PORT",
    )


@dataclass(frozen=True, slots=True)
class Threads:
    """This process, one block after the other, each with the threads of a search."""

    @contextmanager
    def opened(self, job: Job, *, stopped: Callable[[], bool]) -> Iterator[Run]:
        """Open it for one job."""

        def run(tasks: Sequence[Make]) -> Iterator[tuple[int, Result]]:
            for number, make in enumerate(tasks):
                try:
                    yield number, aside(partial(perform, job, make()), until=stopped)
                except GivenUp:
                    raise KeyboardInterrupt from None

        yield run


@dataclass(frozen=True, slots=True)
class Processes:
    """Local processes, one per processor."""

    @contextmanager
    def opened(self, job: Job, *, stopped: Callable[[], bool]) -> Iterator[Run]:
        """Open them for one job."""
        others = frozenset(multiprocessing.active_children())
        pools: list[ProcessPoolExecutor] = []

        def run(tasks: Sequence[Make]) -> Iterator[tuple[int, Result]]:
            todo = dict(enumerate(tasks))
            for _ in range(_ATTEMPTS):
                if not pools:
                    pools.append(_pool(job))
                submit = partial(_submitted, pools[0])
                try:
                    for number, result in completed(todo, submit, room=_room, stopped=stopped):
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


def _room() -> int:
    return 2 * processors()  # one is performed, and the next is there already


def _submitted(pool: ProcessPoolExecutor, task: Task) -> Future:
    """Submit a task; raises BrokenProcessPool also if the pool breaks while a process starts."""
    try:
        return pool.submit(_perform_here, task)
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


def _pool(job: Job) -> ProcessPoolExecutor:
    spawn = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(processors(), spawn, initializer=_begin, initargs=(job,))


_mine: list[Job] = []


def _begin(job: Job) -> None:
    """Store the shared data of all tasks of this process, which arrives through its own pipe."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that began this one ends it
    parent: Any = multiprocessing.parent_process()  # it may be killed; then nobody ends this one
    threading.Thread(target=lambda: parent.join() or os._exit(1), daemon=True).start()
    _mine.append(job)


def _perform_here(task: Task) -> Result:
    return perform(_mine[-1], task)


_CONNECTING = 10.0  # seconds to reach a scheduler
_CLOSING = 2.0  # seconds to take leave of it


@dataclass(frozen=True, slots=True)
class Cluster:
    """A scheduler and its workers.

    The scheduler sends the blocks of a lost worker to another. A lost scheduler ends the
    publication.
    """

    address: str

    @classmethod
    def of(cls, where: str) -> Cluster:
        """Return the cluster of a scheduler, ``host:port``; raises ConfigError."""
        errors.require_library(
            "distributed", what="the executor dask://", also=", here and on every worker"
        )
        host, colon, port = where.rpartition(":")
        if not (host and colon and port.isascii() and port.isdigit()):
            raise ConfigError(
                f"dask://{where} names no scheduler", hint="--executor dask://HOST:8786"
            )
        import distributed

        security: Any = distributed.Security
        if security().require_encryption:
            return cls(f"tls://{where}")
        if not _is_this_machine(host):
            raise ConfigError(
                f"dask://{where} is another machine, and quasi-identifiers and sensitive values of"
                " rows would travel to it as they are",
                hint="let distributed.comm.require-encryption be true in the configuration of Dask,"
                " with the certificates of distributed.comm.tls",
            )
        return cls(f"tcp://{where}")

    @contextmanager
    def opened(self, job: Job, *, stopped: Callable[[], bool]) -> Iterator[Run]:
        """Connect for one job."""
        client = self._client()
        name = uuid4().hex  # a key tells nothing of the job

        def submit(shared: Any, task: Task) -> Any:  # noqa: ANN401
            return _submit(client, perform, shared, task, key=f"dbanon-{uuid4().hex}")

        def room() -> int:
            threads: int = sum(client.nthreads().values())
            return 2 * max(1, threads)

        def run(tasks: Sequence[Make]) -> Iterator[tuple[int, Result]]:
            shared = _submit(client, _kept, job, key=f"dbanon-job-{name}")
            with _failures():
                yield from completed(
                    dict(enumerate(tasks)), partial(submit, shared), room=room, stopped=stopped
                )

        try:
            yield run
        finally:
            with suppress(Exception):  # it is gone, and so is all that it had of the job
                client.close(timeout=_CLOSING)

    def _client(self) -> Any:  # noqa: ANN401 - distributed comes without types
        import distributed

        connect: Any = distributed.Client
        try:
            return connect(self.address, timeout=_CONNECTING, set_as_default=False)
        except (OSError, ValueError) as error:
            raise ConfigError(
                f"no scheduler of Dask answers at {self.address}",
                hint="dask scheduler --host 127.0.0.1 --dashboard-address 127.0.0.1:0, and a dask"
                " worker of the same version",
            ) from error


def _kept(job: Job) -> Job:
    """Return the shared data of all tasks; as a task, it is created again where it is lost."""
    return job


def _submit(client: Any, function: Callable[..., object], *given: object, key: str) -> Any:  # noqa: ANN401
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sending large graph")
        return client.submit(function, *given, key=key, pure=False)


@contextmanager
def _failures() -> Iterator[None]:
    """Convert errors of a cluster into errors of dbanon, without the original text."""
    from distributed import KilledWorker

    try:
        yield
    except KilledWorker:
        raise retry_limit_reached() from None
    except (CancelledError, OSError) as error:
        raise DbanonError(
            f"the scheduler of Dask was lost ({type(error).__name__}); nothing was published",
            hint="run the command again once it is back",
        ) from None


def _is_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"
