"""Whether a worker is well: it reached the database lately, and what it does moves on."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING

from dbanon.domain.progress import Stages

if TYPE_CHECKING:
    from collections.abc import Iterator

POLL_SECONDS = 30.0
"""A worker looks at least so often: not every change is told, and a clock may be set."""

_UNREACHED_SECONDS = 3 * POLL_SECONDS
# A single statement that proves millions of rows takes minutes.
_STUCK_SECONDS = 3600.0


@dataclass(slots=True)
class Vitals:
    """When the worker last reached the database, and when a job that it does last moved on."""

    _reached: float | None = None
    _moved: float | None = None

    @property
    def was_reached(self) -> bool:
        """Whether the database was ever reached."""
        return self._reached is not None

    def reach(self) -> None:
        """Note that the database has answered."""
        self._reached = monotonic()

    @contextmanager
    def working(self) -> Iterator[Stages]:
        """Watch a job by the stages that it goes through."""
        self._move()
        try:
            yield Stages(on_start=self._move, on_step=self._move, on_progress=self._move)
        finally:
            self._moved = None
            self.reach()

    def _move(self, *_: object) -> None:
        self._moved = monotonic()

    def ails(self) -> str | None:
        """Return what is wrong, None of a worker that is well."""
        moved, reached = self._moved, self._reached
        if moved is not None:
            stuck = monotonic() - moved > _STUCK_SECONDS
            return "the job does not move on" if stuck else None
        if reached is None or monotonic() - reached > _UNREACHED_SECONDS:
            return "the database is not reached"
        return None
