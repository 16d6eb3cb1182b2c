"""Operations of a command, and the known outcomes of their commits."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import Enum
from time import perf_counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class CommitOutcome(Enum):
    """Outcome of a commit."""

    NOT_DONE = "not done"
    UNKNOWN = "unknown"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class Operation:
    """What a transaction does: ``subject`` was ``done``; ``ask``: command that reports it later."""

    subject: str
    done: str
    ask: str = "dbanon release list"


@dataclass(slots=True)
class Operations:
    """The operations of one command in order; each is not done until its commit starts."""

    entries: list[tuple[Operation, CommitOutcome]] = field(default_factory=list)

    def begin(self, operation: Operation) -> None:
        """Record an open transaction."""
        self.entries.append((operation, CommitOutcome.NOT_DONE))

    def settle(self, operation: Operation, outcome: CommitOutcome) -> None:
        """Record the outcome of the last transaction, unless it was withdrawn."""
        if self.entries and self.entries[-1][0] is operation:
            self.entries[-1] = (operation, outcome)

    def withdraw(self) -> None:
        """Remove the last transaction: it is retried, or there is nothing to do."""
        self.entries.pop()

    @property
    def any_done(self) -> bool:
        """True if something was certainly committed."""
        return bool(self._of(CommitOutcome.DONE))

    @property
    def partly_done(self) -> bool:
        """True if something was committed before the last transaction, which was not."""
        return self.any_done and self.entries[-1][1] is not CommitOutcome.DONE

    def __str__(self) -> str:
        """Return the known outcomes, for the end of a sentence."""
        if not self.entries:
            return "nothing was changed"
        told = [
            f"{operation.subject} was {operation.done}"
            for operation in self._of(CommitOutcome.DONE)
        ]
        told += [
            f"whether {operation.subject} was {operation.done} is unknown: run {operation.ask}"
            for operation in self._of(CommitOutcome.UNKNOWN)
        ]
        if not told:
            return f"nothing was {self.entries[-1][0].done}"
        told += [
            f"{operation.subject} was not {operation.done}"
            for operation in self._of(CommitOutcome.NOT_DONE)
        ]
        return "; ".join(told)

    def _of(self, wanted: CommitOutcome) -> list[Operation]:
        return [operation for operation, outcome in self.entries if outcome is wanted]


_OPERATIONS: ContextVar[Operations | None] = ContextVar("operations", default=None)


@contextmanager
def followed() -> Iterator[Operations]:
    """Record all transactions within the block in one list."""
    token = _OPERATIONS.set(Operations())
    try:
        yield present()
    finally:
        _OPERATIONS.reset(token)


def present() -> Operations:
    """Return the list of the enclosing block, or a new one."""
    return _OPERATIONS.get() or Operations()


@dataclass(slots=True)
class Stages:
    """Measures named stages and notifies listeners; seconds: wall time by stage, in order.

    stopped: a long search should end with its best result; remarks: decisions on the way; shared:
    results that other searches of the same rows use.
    """

    on_start: Callable[[str], None] | None = None
    on_note: Callable[[str], None] | None = None
    on_progress: Callable[[float, float], None] | None = None
    on_step: Callable[[str], None] | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    stopped: bool = False
    remarks: list[str] = field(default_factory=list)
    shared: dict[tuple[object, ...], object] = field(default_factory=dict)
    _notes: set[str] = field(default_factory=set)

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Measure the block as part of the stage ``name``."""
        if self.on_start:
            self.on_start(name)
        start = perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + perf_counter() - start

    def note(self, text: str) -> None:
        """Notify listeners of a reason for waiting, each text once."""
        if self.on_note and text not in self._notes:
            self._notes.add(text)
            self.on_note(text)

    def remark(self, text: str) -> None:
        """Record a decision for the timing breakdown."""
        self.remarks.append(text)

    def step(self, name: str) -> None:
        """Notify listeners of the start of a part of a long stage."""
        if self.on_step:
            self.on_step(name)

    def progress(self, done: float, loss: float) -> None:
        """Notify listeners of the share done, and the loss so far, both in [0, 1]."""
        if self.on_progress:
            self.on_progress(done, loss)
