"""Take locks that readers stand in the way of, without making other readers wait."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

import psycopg

from dbanon.db.queries import query
from dbanon.db.session import LOCK_TIMEOUT
from dbanon.domain.table import quote_identifier

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from dbanon.db.session import Session

# While a lock is waited for, all that ask for the relation after it wait, too. So nobody waits for
# longer than an attempt and what is done under the lock, and everybody gets on between attempts.
ATTEMPT = "300ms"
PAUSE = 0.7

_HELD = (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected)


class Holder(NamedTuple):
    """A session that holds a lock: its process, None of a prepared transaction, and its role."""

    pid: int | None
    role: str

    def __str__(self) -> str:
        """Name the process, and the role if it is known."""
        if self.pid is None:
            return "a prepared transaction"
        return f"process {self.pid}" + (f" ({quote_identifier(self.role)})" if self.role else "")


class Held(Exception):
    """A lock could not be had; ``holders`` were in the way, as far as can be known."""

    def __init__(self, holders: tuple[Holder, ...]) -> None:
        super().__init__(", ".join(map(str, holders)) or "somebody who is gone by now")
        self.holders = holders

    @property
    def remedy(self) -> str:
        """Return what ends the first of the holders, for a hint to begin with."""
        pids = [holder.pid for holder in self.holders if holder.pid is not None]
        if pids:
            return f"SELECT pg_terminate_backend({pids[0]}) or wait for its end, then "
        return "ROLLBACK PREPARED what pg_prepared_xacts lists, then " if self.holders else ""


def patiently(
    session: Session, act: Callable[[], object], *, on: Collection[int], budget: float
) -> None:
    """Do something that needs exclusive locks ``on`` relations, given by OID, in short attempts.

    Each attempt is a savepoint in the open transaction; a budget of 0 seconds is for one attempt.
    Raises Held when none succeeded.
    """
    end = time.monotonic() + budget
    while True:
        try:
            with session.pg.transaction():
                _set_timeout(session, ATTEMPT)
                act()
                _set_timeout(session, LOCK_TIMEOUT)
        except _HELD:
            held = Held(holders(session, on))
        else:
            return
        if time.monotonic() + PAUSE > end:
            raise held
        time.sleep(PAUSE)


def holders(session: Session, relations: Collection[int]) -> tuple[Holder, ...]:
    """Return who holds any lock on relations, this session left out."""
    rows = session.pg.execute(query("session.holders"), (list(relations),)).fetchall()
    return tuple(Holder(*row) for row in rows)


def _set_timeout(session: Session, timeout: str) -> None:
    session.pg.execute("SELECT set_config('lock_timeout', %s, true)", (timeout,))
