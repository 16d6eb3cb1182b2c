"""Timing and progress of the stages of a long action."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@dataclass(slots=True)
class Stages:
    """Measures named stages and notifies listeners; seconds: wall time by stage, in order.

    stopped: a long search should end with its best result; remarks: decisions on the way.
    """

    on_start: Callable[[str], None] | None = None
    on_note: Callable[[str], None] | None = None
    on_progress: Callable[[float, float], None] | None = None
    on_step: Callable[[str], None] | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    stopped: bool = False
    remarks: list[str] = field(default_factory=list)
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
