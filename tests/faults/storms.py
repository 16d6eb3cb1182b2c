"""Workers, their connections and the server are killed at random, beside writers and readers."""

from __future__ import annotations

import atexit
import os
import random
import signal
import time
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import cache, partial
from threading import Event, Thread
from typing import TYPE_CHECKING, TypeVar

import psycopg
import pytest
from forked import forking
from servers import Server

import dbanon
from dbanon.actions.init import init

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from forked import Forked
    from servers import Database

    T = TypeVar("T")

STEADY = """
import sys
sys.argv = ["dbanon", "worker", "--quiet"]
from dbanon.cli import main
main()
"""
# Its clock jumps back, each time by another while, whenever it looks. So it may take a job that
# another one has taken and not locked yet, which counts as one more attempt.
JUMPING = (
    """
import random
from datetime import timedelta
from dbanon.db.jobs import queue
now = queue.now
queue.now = lambda session: now(session) - timedelta(hours=random.choice([0, 0, 1, 5]))
"""
    + STEADY
)
# When the server last began, also after a crash; only a superuser is told of its processes.
RECOVERED = "SELECT backend_start FROM pg_stat_activity WHERE backend_type = 'checkpointer'"
BACKENDS = """
SELECT pid FROM pg_stat_activity
 WHERE datname = current_database() AND backend_type = 'client backend'
   AND application_name <> 'bystander' AND pid <> pg_backend_pid()
 ORDER BY pid
"""
PATIENCE = 120.0


@contextmanager
def repeating(
    database: Database, act: Callable[[psycopg.Connection], object], *, pause: float = 0.02
) -> Iterator[None]:
    """Do something over a connection of its own, again and again, whatever ends the connection.

    Raises at the end what the act raised that is no loss of a connection.
    """
    stop, raised = Event(), []

    def run() -> None:
        while not stop.is_set() and not raised:
            with (
                suppress(psycopg.OperationalError, psycopg.errors.SerializationFailure),
                psycopg.connect(
                    database.dsn, autocommit=True, application_name="bystander"
                ) as connection,
            ):
                while not stop.wait(pause):
                    try:
                        act(connection)
                    except AssertionError as error:
                        raised.append(error)
                        return
            stop.wait(0.1)

    thread = Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
    if raised:
        raise raised[0]


@cache
def _two_forks() -> list[partial[Forked]]:
    """Import dbanon in two processes, which serve all storms of this one."""
    stack = ExitStack()
    atexit.register(stack.close)
    return [stack.enter_context(forking()) for _ in range(2)]


class Workers:
    """Two worker processes that are started again when they are gone, as a supervisor does."""

    def __init__(self, stack: ExitStack, program: str = JUMPING) -> None:
        self.program = program
        self.forks = _two_forks()
        self.stacks = [ExitStack() for _ in self.forks]
        stack.callback(self.close)
        self.processes = [self.begin(i) for i in range(2)]

    def begin(self, i: int) -> Forked:
        return self.stacks[i].enter_context(self.forks[i](self.program))

    def kill(self, i: int) -> None:
        self.stacks[i].close()
        self.processes[i] = self.begin(i)

    def close(self) -> None:
        for stack in self.stacks:
            stack.close()


def one_of_the_backends(database: Database) -> int | None:
    with suppress(psycopg.OperationalError), psycopg.connect(database.dsn) as connection:
        found = [pid for (pid,) in connection.execute(BACKENDS).fetchall()]
        return random.choice(found) if found else None  # noqa: S311
    return None


def _recovered(database: Database) -> datetime:
    with closing(database.admin()) as connection:
        ((began,),) = connection.execute(RECOVERED).fetchall()
    return began


def harm(database: Database, workers: Workers, *, crash: bool, within: float = 1.5) -> str:
    """Kill a worker or what it is connected to, most often while it is at work; return which."""
    time.sleep(random.uniform(0.0, within))  # noqa: S311
    ways = ["worker", "worker", "connection", "connection", *["server"] * crash]
    way = random.choice(ways)  # noqa: S311
    if way == "worker":
        workers.kill(random.randrange(2))  # noqa: S311
        return way
    pid = one_of_the_backends(database)
    if pid is None:
        return "nothing"
    if way == "server":  # which ends all its sessions when one of them crashes
        before = answered(partial(_recovered, database))
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            deadline = time.monotonic() + 5.0  # it may have ended by itself
            while before == answered(partial(_recovered, database)):
                if time.monotonic() > deadline:
                    return "nothing"
                time.sleep(0.05)
            return way
    else:
        with suppress(psycopg.OperationalError):
            if database.execute("SELECT pg_terminate_backend(%s)", (pid,)) == [(True,)]:
                return way
    return "nothing"


@contextmanager
def own_server(request: pytest.FixtureRequest) -> Iterator[Database]:
    """Give a database on a server of its own, of the kind that is asked for, to be killed."""
    choice = request.node.callspec.params["server"]
    if not choice.id.endswith(("embedded", "debian")):
        pytest.skip("the processes of this server are elsewhere")
    with ExitStack() as stack:
        own = Server(stack.enter_context(choice.open()), choice.major)
        database = stack.enter_context(stack.enter_context(own.prepared()).database())
        with closing(database.admin()) as connection:  # a crash loses nothing that was committed
            name = psycopg.sql.Identifier(database.name)
            on = psycopg.sql.SQL("ALTER DATABASE {} SET synchronous_commit = on").format(name)
            connection.execute(on)
        init(database.settings)
        yield database


def answered(ask: Callable[[], T]) -> T:
    """Return an answer of the database, once the server has recovered."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return ask()
        except (psycopg.OperationalError, dbanon.DatabaseError):
            assert time.monotonic() < deadline
            time.sleep(0.2)


def enqueue(database: Database) -> None:
    """Ask for a refresh once, also if a crash cuts off the answer to a request that it kept."""

    def jobs() -> int:
        ((count,),) = database.execute("SELECT count(*) FROM dbanon.job")
        return count

    def ask() -> None:
        if jobs() == before:
            assert [(True,)] == database.execute("SELECT dbanon.enqueue('public.patients')")

    before = answered(jobs)
    answered(ask)


def settle(database: Database) -> None:
    """Wait until no job is left; what waits to be tried again need not wait for long here."""
    deadline = time.monotonic() + PATIENCE
    hurry = (
        "UPDATE dbanon.job SET not_before = NULL"
        " WHERE not_before IS NOT NULL AND state = 'waiting';"
        " SELECT pg_notify('dbanon_job', '');"
        " SELECT count(*) FROM dbanon.job WHERE state IN ('waiting', 'running')"
    )
    while time.monotonic() < deadline:
        with suppress(psycopg.OperationalError):
            if database.execute(hurry) == [(0,)]:
                return
        time.sleep(0.2)
    pytest.fail(f"a job is left: {database.execute('SELECT * FROM dbanon.job')}")


def idle(database: Database, question: str) -> psycopg.Connection:
    """Open a transaction that has read a release, and goes idle."""
    connection = psycopg.connect(database.dsn, application_name="bystander")
    connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    connection.execute(question)
    return connection
