"""The time limit of a search."""

from __future__ import annotations

from math import inf
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Clock:
    """Elapsed share of a time limit in seconds, without ``waited()``, the time of compilation."""

    def __init__(
        self, limit: float | None = None, waited: Callable[[], float] = lambda: 0.0
    ) -> None:
        self._limit, self._waited = limit, waited
        self._began = monotonic() - waited()

    @property
    def _used(self) -> float:
        return monotonic() - self._began - self._waited()

    @property
    def share(self) -> float:
        """Used share of the limit, 1 after it; 0 without a limit."""
        if self._limit is None:
            return 0.0
        used = self._used
        return used / self._limit if used < self._limit else 1.0

    @property
    def left(self) -> float:
        """Remaining seconds, at least 0; infinite without a limit."""
        return inf if self._limit is None else max(0.0, self._limit - self._used)

    def over(self) -> bool:
        """Return True after the time limit."""
        return self.left <= 0.0

    def overdue(self) -> bool:
        """Return True so long after the time limit that unfinished tasks are abandoned."""
        return self._limit is not None and self._used > (1 + _GRACE) * max(self._limit, 1.0)


_GRACE = 0.1
