"""The time that a search has."""

from __future__ import annotations

from math import inf
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Clock:
    """How much of a time limit has gone by; what is compiled once does not count.

    limit: in seconds, None for none; waited: the seconds that do not count.
    """

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
        """The share of the limit that is used up, 1 when time is over; 0 without a limit."""
        if self._limit is None:
            return 0.0
        used = self._used
        return used / self._limit if used < self._limit else 1.0

    @property
    def left(self) -> float:
        """The seconds that are left, none below zero; infinite without a limit."""
        return inf if self._limit is None else max(0.0, self._limit - self._used)

    def over(self) -> bool:
        """Whether time is over."""
        return self.left <= 0.0

    def overdue(self) -> bool:
        """Whether time was over so long ago that what should end by itself is given up."""
        return self._limit is not None and self._used > (1 + _GRACE) * max(self._limit, 1.0)


_GRACE = 0.1
