"""Long actions in processes of their own, which can be watched and killed."""

from __future__ import annotations

import os
import secrets
import signal
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import get_context
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any

from dbanon.domain.errors import DbanonError
from dbanon.domain.outcomes import Stages, followed

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection

_PROCESSES = get_context("spawn")  # threads of the server hold locks, which a fork would copy
_MOST_JOBS = 20  # finished ones that are kept for their pages
_PATIENCE = 5.0  # seconds that an interrupted process has to say what it did


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a job failed, with the next command, and what it changed."""

    message: str
    hint: str | None = None
    done: str | None = None


@dataclass(slots=True)
class Job:
    """An action that runs, or has run.

    title: what it does; steps: the stages that began, in order; share: of the last stage that is
    done, in [0, 1]; result: None until it is complete, and if it failed.
    """

    title: str
    id: str = field(default_factory=lambda: secrets.token_urlsafe(12))
    steps: list[str] = field(default_factory=list)
    share: float | None = None
    result: Any = None
    failure: Failure | None = None
    about: str = ""
    is_begun: bool = False
    is_cancelled: bool = False
    process: Any = None
    listener: Thread | None = None

    @property
    def is_over(self) -> bool:
        """True once it has a result or a failure."""
        return self.result is not None or self.failure is not None

    def take(self, kind: str, value: Any) -> None:  # noqa: ANN401 - results of any action
        """Note a message of the process."""
        if kind == "begun":
            self.is_begun = True
        elif kind == "stage":
            self.steps.append(value)
            self.share = None
        elif kind == "step" and self.steps:
            self.steps[-1] = f"{self.steps[-1].partition(':')[0]}: {value}"
        elif kind == "progress":
            self.share = value
        elif kind == "result":
            self.result = value
        elif kind == "failure":
            self.failure = value

    def cancel(self) -> None:
        """Interrupt the process, which reports what it did; kill it if that takes too long."""
        if self.is_begun and not self.is_cancelled and self.process.is_alive():
            with suppress(ProcessLookupError):
                os.kill(self.process.pid, signal.SIGINT)
        self.is_cancelled = True
        self.process.join(_PATIENCE if self.is_begun else 0)
        self.process.kill()
        if self.listener is not None:
            self.listener.join()

    def lose(self) -> None:
        """Note that the process ended without a result."""
        if not self.is_begun:
            self.failure = Failure("it ended before it began: nothing was changed")
        elif not self.is_over:
            unknown = "its process was killed: whether anything was changed is unknown"
            self.failure = Failure(unknown, hint="dbanon release list")


class Jobs:
    """The jobs of a studio, by their numbers."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._lock = Lock()

    def start(self, title: str, about: str, action: Callable[..., object], *rest: object) -> Job:
        """Run an action in a new process; it gets the other arguments and then the ``Stages``.

        about: the table or relation; a job of the same title that still runs there is returned.
        """
        with self._lock:
            jobs = [*self._jobs.values()]
            for one in jobs:
                if not one.is_over and (one.title, one.about) == (title, about):
                    return one
            over = [one for one in jobs if one.is_over]
            for one in over[: max(len(over) - _MOST_JOBS, 0)]:
                del self._jobs[one.id]
            job = _started(Job(title, about=about), action, rest)
            self._jobs[job.id] = job
        return job

    def get(self, number: str) -> Job | None:
        """Return a job, None if there is none of that number."""
        return self._jobs.get(number)

    def end(self) -> None:
        """End all processes."""
        for job in [*self._jobs.values()]:
            job.cancel()


def _started(job: Job, action: Callable[..., object], arguments: tuple[object, ...]) -> Job:
    ours, theirs = _PROCESSES.Pipe(duplex=False)
    job.process = _PROCESSES.Process(
        target=_run, args=(theirs, action, arguments), daemon=True, name="dbanon studio"
    )
    job.process.start()
    theirs.close()
    job.listener = Thread(target=_listen, args=(job, ours), daemon=True)
    job.listener.start()
    return job


def _listen(job: Job, messages: Connection) -> None:
    try:
        with messages, suppress(EOFError, OSError):
            while not job.is_over:
                job.take(*messages.recv())
    finally:
        job.lose()


def _run(
    messages: Connection, action: Callable[..., object], arguments: tuple[object, ...]
) -> None:
    """Run an action, and send its stages, and its result or failure."""

    def send(kind: str, value: object) -> None:
        with suppress(OSError):
            messages.send((kind, value))

    stages = Stages(
        on_start=lambda name: send("stage", name),
        on_step=lambda name: send("step", name),
        on_progress=lambda done, _: send("progress", done),
    )
    signal.signal(signal.SIGINT, signal.default_int_handler)  # also where it was ignored
    send("begun", None)
    with followed() as operations:
        try:
            send("result", action(*arguments, stages))
        except DbanonError as error:
            done = str(operations) if operations.partly_done else None
            send("failure", Failure(str(error), error.hint, done))
        except KeyboardInterrupt:
            send("failure", Failure(f"cancelled; {operations}"))
        except Exception as error:  # noqa: BLE001 - its text may quote a row
            text = f"unforeseen {type(error).__name__}; {operations}"
            send("failure", Failure(text, "DBANON_DEBUG=1 dbanon studio, which may print values"))
