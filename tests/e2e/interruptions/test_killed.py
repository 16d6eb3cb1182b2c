"""A publication killed at any moment leaves the old release or the new one."""

import signal
import time
from contextlib import suppress

import pytest
from selection import exhaustive_after
from tables import publish_patients

import dbanon

PUBLISH = """
import sys
sys.argv = ["dbanon", "publish", "patients", *sys.argv[1:]]
from dbanon.cli import main
main()
"""
TRIES = 6
# Nothing is written, rows are, all is, all is proved, all but the commit is done; then the others.
MOMENTS = [
    ("read", "before"),
    ("publish", "before"),
    ("check", "before"),
    ("check", "after"),
    ("record", "after"),
    *((stage, "before") for stage in ("encode", "compare", "recode", "write", "record")),
]

# Runs the command, and stops for good when the stage begins or has just ended: a stage boundary
# is a moment that a timer would rarely hit.
STOPPER = """
import os, signal, sys
from dbanon.domain import outcomes as stages
original = stages.Stages.__call__
wanted, when = sys.argv[1], sys.argv[2]
from contextlib import contextmanager
@contextmanager
def stopping(self, name):
    if name == wanted and when == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    with original(self, name):
        yield
    if name == wanted and when == "after":
        os.kill(os.getpid(), signal.SIGKILL)
stages.Stages.__call__ = stopping
sys.argv = ["dbanon", "publish", "patients", "--k", "7"]
from dbanon.cli import main
main()
"""


@pytest.fixture
def published(copied, monkeypatch):
    """Patients published with k = 5, and the environment of a command line."""
    database = copied(publish_patients)
    monkeypatch.setenv("DBANON_DSN", database.dsn)
    return database


def served(database):
    """Return k of the release that readers see, having checked that it is whole."""
    report = dbanon.check("anon.patients", settings=database.settings)
    assert database.execute("SELECT count(*) FROM anon.patients") == [(200,)]
    ledger = dbanon.list_releases(settings=database.settings)
    (release,) = [release for release in ledger if release.served]
    found = database.execute(
        "SELECT relname FROM pg_class WHERE relnamespace = 'dbanon_data'::regnamespace"
        " AND relkind IN ('r', 'v') AND relname NOT LIKE 'places%' ORDER BY relname"
    )
    assert [(f"release_{release.data_id}",)] == found
    assert report.results[0].required == release.policy.k
    return release.policy.k


@pytest.mark.slow
@pytest.mark.parametrize(("stage", "when"), exhaustive_after(5, MOMENTS))
def test_killed_at_a_stage_the_old_release_stays_and_the_next_run_succeeds(
    published, fork, stage, when
):
    with fork(STOPPER, stage, when) as process:
        code, _, error = process.ended()
    assert code == -signal.SIGKILL, error
    assert served(published) == 5
    dbanon.publish("patients", k=7, settings=published.settings)
    assert served(published) == 7


@pytest.mark.slow
def test_killed_at_any_time_it_leaves_the_old_or_the_new_release(published, fork):
    start = time.perf_counter()
    with fork(PUBLISH, "--k", "5") as process:
        assert process.wait() == 0
    usual = time.perf_counter() - start
    for moment in range(TRIES):
        with fork(PUBLISH, "--k", "7") as process:
            time.sleep(usual * (moment + 1) / TRIES)
            with suppress(ProcessLookupError):  # it may have ended by then
                process.send_signal(signal.SIGKILL)
            process.wait()
        assert served(published) in {5, 7}
        dbanon.publish("patients", k=5, settings=published.settings)
        assert served(published) == 5
