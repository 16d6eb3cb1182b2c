"""Workers, their connections and the server are killed at random; no job is lost or done twice."""

import signal
import time
from contextlib import ExitStack

import pytest
from faults.storms import PATIENCE, Workers, answered, enqueue, harm, idle, repeating, settle
from servers import Server
from tables import serve_patients

import dbanon
from dbanon.actions.init import init

pytestmark = [pytest.mark.one_server, pytest.mark.slow]

VIEW = "anon.patients"
SMALLEST = """
SELECT min(n)
  FROM (SELECT count(*) FROM anon.patients GROUP BY age, sex, born, weight) AS c (n)
"""


def write(connection):
    """Change notes, and let the last who came leave and somebody else come."""
    with connection.transaction():
        connection.execute("UPDATE public.patients SET note = note || '.' WHERE id % 50 = 7")
        connection.execute(
            "WITH gone AS (DELETE FROM public.patients WHERE id = (SELECT max(id)"
            " FROM public.patients) RETURNING *) INSERT INTO public.patients"
            " SELECT id + 1, age, sex, born, weight, disease, note FROM gone"
        )


def read(connection):
    assert connection.execute(SMALLEST).fetchone()[0] >= 5


def storm(database, times, *, crash=False):
    """Ask for refreshes, and do harm during each; look at all that is left."""
    done = []
    with ExitStack() as stack:
        workers = Workers(stack)
        stack.enter_context(repeating(database, write))
        stack.enter_context(repeating(database, read))
        reader = idle(database, SMALLEST)
        for _ in range(times):
            enqueue(database)
            done.append(harm(database, workers, crash=crash))
            settle(database)
            assert answered(lambda: dbanon.check(VIEW, settings=database.settings)).passed
            if done[-1] == "server":
                reader.close()
                reader = idle(database, SMALLEST)
        reader.close()
    print({way: done.count(way) for way in done})  # noqa: T201
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
        enqueue(database)
        settle(database)
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
        enqueue(database)
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
