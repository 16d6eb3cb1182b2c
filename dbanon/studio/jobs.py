"""Long actions in processes of their own, which can be watched and killed."""

from __future__ import annotations

import os
import secrets
import signal
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import get_context
from threading import Lock, Thread
from time import monotonic
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

    title: what it does; about: the table or relation; action, arguments: what is called, and with
    what; on_success: called before it is over, unless it fails; steps: the stages that began, each
    once, in order; share: of the last stage that is done, in [0, 1]; result: the latest, None
    before the first; version: number of results so far.
    """

    title: str
    about: str
    action: Callable[..., object]
    arguments: tuple[object, ...]
    on_success: Callable[[], object]
    id: str = field(default_factory=lambda: secrets.token_urlsafe(12))
    steps: list[str] = field(default_factory=list)
    share: float | None = None
    result: Any = None
    version: int = 0
    failure: Failure | None = None
    is_begun: bool = False
    is_cancelled: bool = False
    is_over: bool = False
    process: Any = None
    listener: Thread | None = None
    began: float = field(default_factory=monotonic)

    @property
    def seconds(self) -> int:
        """How long it has run."""
        return int(monotonic() - self.began)

    def take(self, kind: str, value: Any) -> None:  # noqa: ANN401 - results of any action
        """Note a message of the process."""
        if kind == "begun":
            self.is_begun = True
        elif kind == "stage":
            self._enter(value)
            self.share = None
        elif kind == "step" and self.steps:
            self._enter(f"{self.steps.pop().partition(':')[0]}: {value}")
        elif kind == "progress":
            self.share = value
        elif kind == "result":
            self.result, self.version = value, self.version + 1
        elif kind == "success":
            self.on_success()
            self.is_over = True
        elif kind == "failure":
            self.failure, self.is_over = value, True

    def _enter(self, step: str) -> None:
        """Put a step at the end, from its former place if it comes again."""
        self.steps = [*(one for one in self.steps if one != step), step]

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
            how = "it was cancelled" if self.is_cancelled else "its process ended"
            self.failure = Failure(f"{how} before it began: nothing was changed")
        elif not self.is_over:
            unknown = "its process was killed: whether anything was changed is unknown"
            self.failure = Failure(unknown, hint="dbanon release list")
        self.is_over = True


class Jobs:
    """The jobs of a studio, by their numbers.

    prepare: a function that loads what jobs need; a process that has called it waits for the next
    job. None: each process starts with its job.
    """

    def __init__(self, prepare: Callable[[], object] | None = None) -> None:
        self._jobs: dict[str, Job] = {}
        self._lock = Lock()
        self._prepare = prepare
        self.waiting: tuple[Any, Connection] | None = None

    def start(
        self,
        title: str,
        about: str,
        action: Callable[..., object],
        *rest: object,
        on_success: Callable[[], object] = lambda: None,
    ) -> Job:
        """Run an action in another process; it gets the other arguments and then the ``Stages``.

        Of an action that returns an iterator, each item is a result. about: the table or relation.
        If a job of the same action with equal arguments still runs there, it is returned.
        """
        with self._lock:
            jobs = [*self._jobs.values()]
            for one in jobs:
                of_it = (one.title, one.about, one.action, one.arguments)
                if not one.is_over and of_it == (title, about, action, rest):
                    return one
            over = [one for one in jobs if one.is_over]
            for one in over[: max(len(over) - _MOST_JOBS, 0)]:
                del self._jobs[one.id]
            job = Job(title, about, action, rest, on_success)
            self._jobs[job.id] = job
            process, messages = self.waiting or _started(None)
            self.waiting, job.process = None, process
            with suppress(OSError):  # of a process that was killed, which the listener finds
                messages.send((action, rest))
            job.listener = Thread(target=self._listen, args=(job, messages), daemon=True)
            job.listener.start()
        return job

    def prepare(self) -> None:
        """Start the process of the next job."""
        with self._lock:
            if self._prepare is not None and self.waiting is None:
                self.waiting = _started(self._prepare)

    def get(self, number: str) -> Job | None:
        """Return a job, None if there is none of that number."""
        return self._jobs.get(number)

    def end(self) -> None:
        """End all processes."""
        self._prepare = None
        for job in [*self._jobs.values()]:
            job.cancel()
        with self._lock:
            if self.waiting is not None:
                self.waiting[0].kill()

    def _listen(self, job: Job, messages: Connection) -> None:
        try:
            with messages, suppress(EOFError, OSError):
                while not job.is_over:
                    job.take(*messages.recv())
        finally:
            job.lose()
            self.prepare()  # only now: two cores are few


def _started(prepare: Callable[[], object] | None) -> tuple[Any, Connection]:
    """Return a new process, and a connection to send it an action and receive its messages."""
    ours, theirs = _PROCESSES.Pipe()
    process = _PROCESSES.Process(
        target=_run, args=(theirs, prepare), daemon=True, name="dbanon studio"
    )
    process.start()
    theirs.close()
    return process, ours


def _run(messages: Connection, prepare: Callable[[], object] | None) -> None:
    """Wait for an action, run it, and send its stages, its results, and how it ended."""

    def send(kind: str, value: object) -> None:
        with suppress(OSError):
            messages.send((kind, value))

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if prepare is not None:
        send("stage", "prepare")
        with suppress(Exception):  # its error is that of the job, which needs the same
            prepare()
    try:
        action, arguments = messages.recv()
    except (EOFError, OSError):  # the studio has ended
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)  # also where it was ignored
    send("begun", None)
    _send_results(send, action, arguments)


def _send_results(
    send: Callable[[str, object], None],
    action: Callable[..., object],
    arguments: tuple[object, ...],
) -> None:
    stages = Stages(
        on_start=lambda name: send("stage", name),
        on_step=lambda name: send("step", name),
        on_progress=lambda done, _: send("progress", done),
    )
    with followed() as operations:
        try:
            found = action(*arguments, stages)
            for result in found if isinstance(found, Iterator) else (found,):
                send("result", result)
            send("success", None)
        except DbanonError as error:
            done = str(operations) if operations.partly_done else None
            send("failure", Failure(str(error), error.hint, done))
        except KeyboardInterrupt:
            send("failure", Failure(f"cancelled; {operations}"))
        except Exception as error:  # noqa: BLE001 - its text may quote a row
            text = f"unforeseen {type(error).__name__}; {operations}"
            send("failure", Failure(text, "DBANON_DEBUG=1 dbanon studio, which may print values"))
