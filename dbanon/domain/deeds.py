"""Transactions of a command, and the known outcome of their commits."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class Fate(Enum):
    """Outcome of a commit."""

    NOT_DONE = "not done"
    UNKNOWN = "unknown"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class Deed:
    """A transaction: ``subject`` was ``done``; ``ask``: command that reports the outcome later."""

    subject: str
    done: str
    ask: str = "dbanon release list"


@dataclass(slots=True)
class Deeds:
    """The transactions of one command in order; each is not done until its commit starts."""

    entries: list[tuple[Deed, Fate]] = field(default_factory=list)

    def begin(self, deed: Deed) -> None:
        """Record an open transaction."""
        self.entries.append((deed, Fate.NOT_DONE))

    def settle(self, deed: Deed, fate: Fate) -> None:
        """Record the outcome of the last transaction, unless it was withdrawn."""
        if self.entries and self.entries[-1][0] is deed:
            self.entries[-1] = (deed, fate)

    def withdraw(self) -> None:
        """Remove the last transaction: it is retried, or there is nothing to do."""
        self.entries.pop()

    @property
    def any_done(self) -> bool:
        """True if something was certainly committed."""
        return bool(self._of(Fate.DONE))

    @property
    def partly_done(self) -> bool:
        """True if something was committed before the last transaction, which was not."""
        return self.any_done and self.entries[-1][1] is not Fate.DONE

    def __str__(self) -> str:
        """Return the known outcomes, for the end of a sentence."""
        if not self.entries:
            return "nothing was changed"
        told = [f"{deed.subject} was {deed.done}" for deed in self._of(Fate.DONE)]
        told += [
            f"whether {deed.subject} was {deed.done} is unknown: run {deed.ask}"
            for deed in self._of(Fate.UNKNOWN)
        ]
        if not told:
            return f"nothing was {self.entries[-1][0].done}"
        told += [f"{deed.subject} was not {deed.done}" for deed in self._of(Fate.NOT_DONE)]
        return "; ".join(told)

    def _of(self, wanted: Fate) -> list[Deed]:
        return [deed for deed, fate in self.entries if fate is wanted]


_DEEDS: ContextVar[Deeds | None] = ContextVar("deeds", default=None)


@contextmanager
def followed() -> Iterator[Deeds]:
    """Record all transactions within the block in one list."""
    token = _DEEDS.set(Deeds())
    try:
        yield present()
    finally:
        _DEEDS.reset(token)


def present() -> Deeds:
    """Return the list of the enclosing block, or a new one."""
    return _DEEDS.get() or Deeds()
