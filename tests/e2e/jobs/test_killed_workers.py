"""Workers, their connections and the server are killed at random; no job is lost or done twice."""

import signal
import time
from collections import Counter
from contextlib import ExitStack

import pytest
from faults.storms import (
    PATIENCE,
    STEADY,
    Workers,
    answered,
    enqueue,
    harm,
    idle,
    own_server,
    repeating,
    settle,
)
from tables import serve_patients

import dbanon

pytestmark = pytest.mark.slow

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
    print(Counter(done))  # noqa: T201


def jobs(database):
    """Return how each job ended."""
    found = database.execute("SELECT state, result, attempts FROM dbanon.job ORDER BY job_id")
    print("attempts", sorted(job[2] for job in found))  # noqa: T201
    return [job[:2] for job in found]


def releases(database):
    """Return how many releases there are, and those that are served, from the newest on."""
    ledger = dbanon.list_releases(settings=database.settings)
    return len(ledger), [i for i, one in enumerate(ledger) if one.served]


def failures(database):
    return [f for f in dbanon.doctor(settings=database.settings) if f.level == "failure"]


@pytest.mark.exhaustive
def test_no_job_is_lost_or_done_twice_when_workers_and_connections_are_killed(copied, monkeypatch):
    database = copied(serve_patients)
    monkeypatch.setenv("DBANON_DSN", database.dsn)
    storm(database, 4)
    assert [("done", "refreshed")] * 4 == jobs(database)
    assert (5, [0]) == releases(database)
    assert [] == failures(database)


@pytest.mark.exhaustive
def test_no_job_is_lost_or_done_twice_in_fifty_refreshes_when_the_server_crashes_too(
    request, monkeypatch, server
):
    with own_server(request) as database:
        serve_patients(database)
        monkeypatch.setenv("DBANON_DSN", database.dsn)
        storm(database, 50, crash=True)
        assert [("done", "refreshed")] * 50 == jobs(database)
        assert (51, [0]) == releases(database)
        assert [] == failures(database)


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
            " AND backend_type = 'client backend'"
        )
        deadline = time.monotonic() + PATIENCE
        while [(4, 0)] != database.execute(sessions):  # both listen, none in a transaction
            assert time.monotonic() < deadline
            time.sleep(0.1)
        for process in workers.processes:
            process.send_signal(signal.SIGTERM)
        assert [(0, "")] * 2 == [process.ended()[:2] for process in workers.processes]
    assert [("done", "refreshed")] == jobs(database)
    assert (2, [0]) == releases(database)
    assert [] == failures(database)


@pytest.mark.exhaustive
def test_sigterm_during_a_job_puts_it_back_for_the_next_worker(copied, monkeypatch):
    database = copied(serve_patients)
    monkeypatch.setenv("DBANON_DSN", database.dsn)
    database.execute("UPDATE public.patients SET note = note || '.'")
    blocker = database.connect(autocommit=False)
    blocker.execute("LOCK public.patients IN ROW EXCLUSIVE MODE")  # as who writes does
    with ExitStack() as stack:
        workers = Workers(stack, STEADY)
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
    assert [("done", "refreshed")] == jobs(database)
    assert (2, [0]) == releases(database)
    assert [] == failures(database)
