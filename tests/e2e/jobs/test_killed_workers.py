"""Workers, their connections and the server are killed at random; no job is lost or done twice."""

import os
import random
import signal
import time
from contextlib import ExitStack, contextmanager, suppress
from threading import Event, Thread

import psycopg
import pytest
from forked import forking
from servers import Server
from tables import serve_patients

import dbanon
from dbanon.actions.init import init

pytestmark = [pytest.mark.one_server, pytest.mark.slow]

WORKER = """
import sys
sys.argv = ["dbanon", "worker", "--quiet"]
from dbanon.cli import main
main()
"""
SMALLEST = """
SELECT min(n)
  FROM (SELECT count(*) FROM anon.patients GROUP BY age, sex, born, weight) AS c (n)
"""
BACKENDS = """
SELECT pid FROM pg_stat_activity
 WHERE datname = current_database() AND backend_type = 'client backend'
   AND application_name <> 'bystander' AND pid <> pg_backend_pid()
 ORDER BY pid
"""
PATIENCE = 120.0


@contextmanager
def repeating(database, act, seen):
    """Do something over a connection of its own, again and again, whatever ends the connection."""
    stop = Event()

    def run():
        while not stop.is_set():
            with (
                suppress(psycopg.OperationalError, psycopg.errors.SerializationFailure),
                psycopg.connect(
                    database.dsn, autocommit=True, application_name="bystander"
                ) as connection,
            ):
                while not stop.is_set():
                    seen.append(act(connection))
                    stop.wait(0.02)
            stop.wait(0.1)

    thread = Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def write(connection):
    """Change notes, and let somebody leave and somebody else come."""
    with connection.transaction():
        connection.execute("UPDATE public.patients SET note = note || '.' WHERE id % 50 = 7")
        connection.execute(
            "WITH gone AS (DELETE FROM public.patients WHERE id = (SELECT min(id)"
            " FROM public.patients) RETURNING *) INSERT INTO public.patients"
            " SELECT (SELECT max(id) + 1 FROM public.patients), age, sex, born, weight, disease,"
            " note FROM gone"
        )


def read(connection):
    return connection.execute(SMALLEST).fetchone()[0]


class Workers:
    """Two worker processes that are started again when they are gone, as a supervisor does."""

    def __init__(self, stack):
        self.forks = [stack.enter_context(forking()) for _ in range(2)]
        self.stacks = [ExitStack() for _ in self.forks]
        stack.callback(self.close)
        self.processes = [self.begin(i) for i in range(2)]

    def begin(self, i):
        return self.stacks[i].enter_context(self.forks[i](WORKER))

    def kill(self, i):
        self.stacks[i].close()
        self.processes[i] = self.begin(i)

    def close(self):
        for stack in self.stacks:
            stack.close()


def one_of_the_backends(database):
    with suppress(psycopg.OperationalError), psycopg.connect(database.dsn) as connection:
        found = [pid for (pid,) in connection.execute(BACKENDS).fetchall()]
        return random.choice(found) if found else None  # noqa: S311
    return None


def harm(database, workers, *, crash):
    """Kill a worker or what it is connected to, most often while it is at work."""
    time.sleep(random.uniform(0.0, 1.5))  # noqa: S311
    ways = ["worker", "worker", "connection", "connection", *["server"] * crash]
    way = random.choice(ways)  # noqa: S311
    if way == "worker":
        workers.kill(random.randrange(2))  # noqa: S311
    elif (pid := one_of_the_backends(database)) is not None:
        with suppress(psycopg.OperationalError, ProcessLookupError):
            if way == "server":  # which ends all its sessions when one of them crashes
                os.kill(pid, signal.SIGKILL)
            else:
                database.execute("SELECT pg_terminate_backend(%s)", (pid,))
    return way


def settled(database):
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


def checked(database):
    """Check what is served, once the server has recovered."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return dbanon.check("anon.patients", settings=database.settings)
        except dbanon.DatabaseError:
            assert time.monotonic() < deadline
            time.sleep(0.2)


def ask(database):
    for _ in range(600):
        with suppress(psycopg.OperationalError):
            assert [(True,)] == database.execute("SELECT dbanon.enqueue('public.patients')")
            return
        time.sleep(0.1)
    pytest.fail("the server did not come back")


def idle(database):
    """Open a transaction that has read the release, and goes idle."""
    connection = psycopg.connect(database.dsn, application_name="bystander")
    connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    connection.execute("SELECT count(*) FROM anon.patients")
    return connection


def storm(database, times, *, crash=False):
    """Ask for refreshes, and do harm during each; look at all that is left."""
    seen, done = [], []
    with ExitStack() as stack:
        workers = Workers(stack)
        stack.enter_context(repeating(database, write, []))
        stack.enter_context(repeating(database, read, seen))
        reader = idle(database)
        for _ in range(times):
            ask(database)
            done.append(harm(database, workers, crash=crash))
            settled(database)
            assert checked(database).passed
            if done[-1] == "server":
                reader.close()
                reader = idle(database)
        reader.close()
    assert min(seen) >= 5
    print({way: done.count(way) for way in done}, len(seen), "readings")  # noqa: T201
    return done


def ended(database, times):
    """Every job was done by one release, and the ledger has no other."""
    jobs = database.execute("SELECT state, result, attempts FROM dbanon.job ORDER BY job_id")
    assert [("done", "refreshed")] * times == [job[:2] for job in jobs]
    ledger = dbanon.list_releases(settings=database.settings)
    assert 1 + times == len(ledger)
    assert [ledger[0].id] == [one.id for one in ledger if one.served]
    assert [] == [f for f in dbanon.doctor(settings=database.settings) if f.level == "failure"]
    print("attempts", sorted(job[2] for job in jobs))  # noqa: T201


def test_no_job_is_lost_or_done_twice_when_workers_and_connections_are_killed(copied, monkeypatch):
    database = copied(serve_patients)
    monkeypatch.setenv("DBANON_DSN", database.dsn)
    storm(database, 4)
    ended(database, 4)


@pytest.mark.exhaustive
def test_no_job_is_lost_or_done_twice_in_fifty_refreshes_when_the_server_crashes_too(
    request, monkeypatch, server
):
    choice = request.node.callspec.params["server"]
    if not choice.id.endswith(("embedded", "debian")):
        pytest.skip("the processes of this server are elsewhere")
    with ExitStack() as stack:
        own = Server(stack.enter_context(choice.open()), choice.major)
        database = stack.enter_context(stack.enter_context(own.prepared()).database())
        init(database.settings)
        serve_patients(database)
        monkeypatch.setenv("DBANON_DSN", database.dsn)
        storm(database, 50, crash=True)
        ended(database, 50)


def test_two_workers_do_one_job_once_and_sigterm_ends_them_in_peace(copied, monkeypatch):
    database = copied(serve_patients)
    monkeypatch.setenv("DBANON_DSN", database.dsn)
    database.execute("UPDATE public.patients SET note = note || '.'")
    with ExitStack() as stack:
        workers = Workers(stack)
        ask(database)
        settled(database)
        sessions = (
            "SELECT count(*), count(xact_start) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        deadline = time.monotonic() + PATIENCE
        while [(2, 0)] != database.execute(sessions):  # none in a transaction
            assert time.monotonic() < deadline
            time.sleep(0.1)
        for process in workers.processes:
            process.send_signal(signal.SIGTERM)
        assert [(0, "")] * 2 == [process.ended()[:2] for process in workers.processes]
    ended(database, 1)


def test_sigterm_during_a_job_puts_it_back_for_the_next_worker(copied, monkeypatch):
    database = copied(serve_patients)
    monkeypatch.setenv("DBANON_DSN", database.dsn)
    database.execute("UPDATE public.patients SET note = note || '.'")
    blocker = database.connect(autocommit=False)
    blocker.execute("LOCK public.patients IN ROW EXCLUSIVE MODE")  # as who writes does
    with ExitStack() as stack:
        workers = Workers(stack)
        ask(database)
        running = "SELECT count(*) FROM dbanon.job WHERE state = 'running'"
        while database.execute(running) != [(1,)]:
            time.sleep(0.05)
        time.sleep(1.0)
        for process in workers.processes:
            process.send_signal(signal.SIGTERM)
        assert [0, 0] == [process.ended()[0] for process in workers.processes]
    found = database.execute("SELECT state, attempts, not_before > now() FROM dbanon.job")
    assert [("waiting", 0, False)] == found
    blocker.rollback()
    dbanon.work(once=True, settings=database.settings)
    ended(database, 1)
