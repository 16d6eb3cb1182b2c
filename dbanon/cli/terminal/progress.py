"""Progress as lines, where no bar can be drawn: in a log, a pipe, a mail."""

from __future__ import annotations

from threading import Event, Thread
from time import perf_counter
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable

EVERY = 10.0  # seconds


class Lines:
    """Says every few seconds where a long command is, also while it reports nothing itself."""

    def __init__(self, say: Callable[[str], None], *, every: float = EVERY) -> None:
        self._say, self._every = say, every
        self._stage = self._name = "connect"
        self._loss = ""
        self._begun = perf_counter()
        self._over = Event()
        self._thread = Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def start(self, stage: str) -> None:
        """Begin a stage."""
        self._stage = self._name = stage
        self._loss = ""

    def step(self, name: str) -> None:
        """Begin a part of the stage."""
        self._name = f"{self._stage}: {name}"

    def move(self, _done: float, loss: float) -> None:
        """Take note of the loss so far."""
        self._loss = f", loss {100 * loss:.2f}%"

    def _run(self) -> None:
        while not self._over.wait(self._every):
            seconds = perf_counter() - self._begun
            self._say(f"{seconds:.0f} s: {self._name}{self._loss}")
