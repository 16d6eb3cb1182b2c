"""A job that is ended says what it changed, if that is known."""

import signal
import time

import pytest

from dbanon.domain.outcomes import CommitOutcome, Operation, present
from dbanon.studio.jobs import Jobs

RELEASE = Operation("the release", "published")


def search(stages):
    with stages("search"):
        time.sleep(60)


def publish(stages):
    present().begin(RELEASE)
    present().settle(RELEASE, CommitOutcome.DONE)
    with stages("report"):
        time.sleep(60)


def commit(stages):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with stages("commit"):
        time.sleep(60)


@pytest.fixture
def start():
    jobs = Jobs()
    yield lambda action: jobs.start("a job", "public.patients", action)
    jobs.end()


def cancelled(job):
    """Cancel a job once its action is at work, and return what is said of it."""
    while not job.steps:
        time.sleep(0.01)
    job.cancel()
    return job.failure


def test_a_cancelled_job_says_what_it_changed(start):
    assert "cancelled; nothing was changed" == cancelled(start(search)).message
    assert "cancelled; the release was published" == cancelled(start(publish)).message


def test_a_killed_job_says_that_what_it_changed_is_unknown(start, monkeypatch):
    monkeypatch.setattr("dbanon.studio.jobs._PATIENCE", 0.1)
    failure = cancelled(start(commit))
    assert "unknown" in failure.message
    assert "dbanon release list" == failure.hint


def test_a_job_that_still_runs_is_not_started_again(start):
    first = start(search)
    assert first is start(search)
    first.cancel()
    assert first is not start(search)


def test_a_job_that_is_cancelled_before_it_begins_changed_nothing(start):
    job = start(search)
    job.cancel()
    assert "nothing was changed" in job.failure.message
