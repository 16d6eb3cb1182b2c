"""A stopwatch for the stages of a long action."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@dataclass(slots=True)
class Stages:
    """Measures named stages and tells listeners when one begins, and why it may take long.

    seconds: wall time by stage, in the order in which they first ran.
    """

    on_start: Callable[[str], None] | None = None
    on_note: Callable[[str], None] | None = None
    seconds: dict[str, float] = field(default_factory=dict)

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
        """Tell whoever waits what is going on."""
        if self.on_note:
            self.on_note(text)
