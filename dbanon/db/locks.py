"""Take locks that conflict with readers, without making other readers wait."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import psycopg

from dbanon.db.queries import query
from dbanon.db.session import LOCK_TIMEOUT, Session
from dbanon.domain.table import quote_identifier

if TYPE_CHECKING:
    from collections.abc import Callable, Collection


# A waiting exclusive lock also blocks all later requests for the relation. So each attempt is
# short, and other sessions proceed between attempts.
T = TypeVar("T")
ATTEMPT = "300ms"
PAUSE = 0.7

_HELD = (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected)


class Holder(NamedTuple):
    """A session with a lock: its process, None for a prepared transaction, and its role."""

    pid: int | None
    role: str

    def __str__(self) -> str:
        """Name the process, and the role if it is known."""
        if self.pid is None:
            return "a prepared transaction"
        return f"process {self.pid}" + (f" ({quote_identifier(self.role)})" if self.role else "")


class LockNotGranted(Exception):
    """A lock was not granted; ``holders`` are the sessions that had it, if known."""

    def __init__(self, holders: tuple[Holder, ...]) -> None:
        super().__init__(", ".join(map(str, holders)) or "a session that has ended")
        self.holders = holders

    @property
    def remedy(self) -> str:
        """The command that ends the first holder, as the beginning of a hint."""
        pids = [holder.pid for holder in self.holders if holder.pid is not None]
        if pids:
            return f"SELECT pg_terminate_backend({pids[0]}) or wait for its end, then "
        return "ROLLBACK PREPARED what pg_prepared_xacts lists, then " if self.holders else ""


def patiently(session: Session, act: Callable[[], T], *, on: Collection[int], budget: float) -> T:
    """Run ``act``, which needs exclusive locks ``on`` relations (OIDs), in short attempts.

    Each is a savepoint; a budget of 0 seconds allows one. Raises LockNotGranted if none succeeds.
    """
    end = time.monotonic() + budget
    while True:
        try:
            with session.pg.transaction():
                _set_timeout(session, ATTEMPT)
                done = act()
                _set_timeout(session, LOCK_TIMEOUT)
        except _HELD:
            held = LockNotGranted(holders(session, on))
        else:
            return done
        if time.monotonic() + PAUSE > end:
            raise held
        time.sleep(PAUSE)


def unless_held(session: Session, act: Callable[[], object]) -> bool:
    """Run ``act`` in one short attempt; return False if a lock prevented it."""
    try:
        patiently(session, act, on=(), budget=0)
    except LockNotGranted:
        return False
    return True


def holders(session: Session, relations: Collection[int]) -> tuple[Holder, ...]:
    """Return the other sessions that hold a lock on relations."""
    rows = session.pg.execute(query("session.holders"), (list(relations),)).fetchall()
    return tuple(Holder(*row) for row in rows)


def _set_timeout(session: Session, timeout: str) -> None:
    session.pg.execute("SELECT set_config('lock_timeout', %s, true)", (timeout,))
