"""Ctrl-C in a real process: nothing is published, or what was found so far, and always proved."""

import signal
import time

import pytest
from tables import publish_patients

import dbanon

pytestmark = pytest.mark.slow

# Runs the command, tells when the stage has begun, and waits there for the signal. The search
# waits until it is asked to stop, as a search does that would improve its groups for hours.
WAITER = """
import select, signal, socket, sys, time
from contextlib import contextmanager
signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever the parent ignores
heard, bell = socket.socketpair()
bell.setblocking(False)
signal.set_wakeup_fd(bell.fileno())
from dbanon.anonymization.algorithms.partitioning.mondrian import RelaxedMondrian
from dbanon.anonymization.registry import ALGORITHMS
from dbanon.domain import outcomes as stages
stage, when = sys.argv[1:3]
original = stages.Stages.__call__

def ready():
    print("ready", flush=True)
    select.select([heard], [], [], 60)
    heard.recv(1)

@contextmanager
def waiting(self, name):
    if (name, when) == (stage, "begins"):
        ready()
    with original(self, name):
        yield
    if (name, when) == (stage, "ended"):
        ready()

def proposals(self, table, requirement, *, seed):
    if stage == "search" and table.n_rows == 200:
        print("ready", flush=True)
        while not self.stages.stopped:
            time.sleep(0.01)
        heard.recv(1)
        if when == "twice":
            ready()
    return [RelaxedMondrian().assign(table, requirement, seed=seed)]

def fetch(query, names, **options):
    query.set_sql_query("SELECT pg_sleep(60)")
    print("ready", flush=True)
    return original_fetch(query, names, **options)

if stage == "reading":
    from dbanon.db import transfer
    original_fetch, transfer._fetch = transfer._fetch, fetch
stages.Stages.__call__ = waiting
ALGORITHMS["auto"].proposals = proposals
sys.argv = ["dbanon", *sys.argv[3:]]
from dbanon.cli import main
main()
"""
ANEW = ("--new-series", "--recipients-changed")
PUBLISH = ("publish", "patients", "--k", "7", "--algorithm", "auto", *ANEW)


@pytest.fixture
def published(copied, monkeypatch):
    """Patients published with k = 5, and the environment of a command line."""
    database = copied(publish_patients)
    monkeypatch.setenv("DBANON_DSN", database.dsn)
    return database


@pytest.fixture
def interrupt(fork):
    def interrupt(stage, when, *words, times=1, until=lambda: True):
        """Run a command, press Ctrl-C each time it is ready; return its code and its output."""
        with fork(WAITER, stage, when, *words) as process:
            for _ in range(times):
                assert "ready\n" == process.stdout.readline()
                deadline = time.monotonic() + 30
                while not until():
                    assert time.monotonic() < deadline
                    time.sleep(0.01)
                process.send_signal(signal.SIGINT)
            code, out, err = process.ended(timeout=60)
        assert "Traceback" not in err, err
        return code, out, err

    return interrupt


def served(database):
    report = dbanon.check("anon.patients", settings=database.settings)
    assert database.execute("SELECT count(*) FROM anon.patients") == [(200,)]
    assert report.passed
    return report.results[0].required


@pytest.mark.parametrize("stage", ["read", "cluster", "record"])
def test_ctrl_c_publishes_nothing_and_leaves_no_lock(published, interrupt, stage):
    code, out, err = interrupt(stage, "begins", *PUBLISH)
    assert (130, "") == (code, out)
    assert err.endswith("interrupted; nothing was published\n")
    assert served(published) == 5
    dbanon.publish("patients", k=7, settings=published.settings)
    assert served(published) == 7


def test_ctrl_c_ends_a_query_that_the_server_is_running(published, interrupt):
    def is_reading():
        query = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
        return published.execute(query) != [(0,)]

    code, _, err = interrupt("reading", "", *PUBLISH, until=is_reading)
    assert 130 == code
    assert err.endswith("interrupted; nothing was published\n")
    assert not is_reading()
    assert served(published) == 5


def test_ctrl_c_ends_a_search_that_would_not_end_by_itself(published, interrupt):
    code, _, err = interrupt("search", "once", *PUBLISH)
    assert 130 == code
    assert "nothing was published" in err
    assert served(published) == 5


def test_ctrl_c_publishes_what_was_found_if_that_was_asked_for(published, interrupt):
    code, out, err = interrupt("search", "once", *PUBLISH, "--on-interrupt", "publish")
    assert 0 == code
    assert "what was found so far is used" in err
    assert "served as anon.patients" in out
    assert out.count("passed") == 2
    assert served(published) == 7


def test_a_second_ctrl_c_gives_up(published, interrupt):
    code, _, err = interrupt("search", "twice", *PUBLISH, "--on-interrupt", "publish", times=2)
    assert 130 == code
    assert "nothing was published" in err
    assert served(published) == 5


def test_what_an_interrupted_search_found_is_proved_like_any_other(published, interrupt):
    failing = (*PUBLISH, "--l", "50", "--on-interrupt", "publish")
    code, _, err = interrupt("read", "begins", *failing)
    assert 1 == code
    assert "fewer than l = 50" in err
    assert served(published) == 5


def test_the_commit_is_not_cut_off(published, interrupt):
    code, out, err = interrupt("record", "ended", *PUBLISH)
    assert 0 == code
    assert "too late to stop" in err
    assert "served as anon.patients" in out
    assert served(published) == 7


def test_a_plan_shows_what_was_found(published, interrupt):
    anew = ("--new-series", "--recipients-changed")  # or classes stay, and nothing is searched
    plan = ("plan", "patients", "--k", "7", "--algorithm", "auto", *anew)
    code, out, _ = interrupt("search", "once", *plan, "--on-interrupt", "publish")
    assert 0 == code
    assert "all (NCP)" in out
    code, out, err = interrupt("search", "once", *plan)
    assert (130, "") == (code, out)
    assert err.endswith("interrupted; nothing was changed\n")


def test_a_comparison_leaves_out_what_comes_after(published, interrupt):
    words = ("plan", "patients", "--algorithms", "auto,mondrian", "--on-interrupt", "publish")
    code, out, _ = interrupt("search", "once", *words)
    assert 0 == code
    assert "auto" in out
    assert "mondrian, k = 5: not run" in out


def test_a_refresh_publishes_nothing_either(published, interrupt):
    code, _, err = interrupt("read", "begins", "refresh", "--all")
    assert 130 == code
    assert err.endswith("interrupted; nothing was published\n")
    assert served(published) == 5
