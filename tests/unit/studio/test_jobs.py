"""A job that is ended says what it changed, if that is known."""

import ast
import signal
import time
from pathlib import Path

import pytest

import dbanon
from dbanon.actions.publication.steps import STEPS
from dbanon.domain.errors import DbanonError
from dbanon.domain.outcomes import CommitOutcome, Operation, present
from dbanon.studio.jobs import Jobs
from dbanon.studio.pages import template

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


def count(stages):
    with stages("count"):
        yield from (1, 2, 3)


def search_twice(stages):
    for _ in range(2):
        with stages("cluster"):
            stages.step("search")
        with stages("recode"):
            pass


def fail_at_last(stages):
    yield 1
    raise DbanonError("no more")


def wait_for(_options, stages):
    with stages("cluster"):
        time.sleep(60)


@pytest.fixture
def start():
    jobs = Jobs()
    yield lambda action, **more: jobs.start("a job", "public.patients", action, **more)
    jobs.end()


def over(job):
    """Wait for a job, and return it."""
    job.listener.join(60)
    return job


def test_a_step_that_comes_again_is_named_once(start):
    assert ["cluster: search", "recode"] == over(start(search_twice)).steps


def steps(*names):
    """Return what a page shows of a job after some stages."""
    return str(template("parts.html").module.steps(names))


def names_in_the_code():
    """Return the names of all stages and of their parts, without those that are computed."""
    found = {one.name for one in STEPS}
    for path in Path(dbanon.__file__).parent.rglob("*.py"):
        for one in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(one, ast.Call) and one.args and isinstance(one.args[0], ast.Constant):
                called = ast.unparse(one.func).rpartition(".")[2]
                found |= {one.args[0].value} if called in {"stages", "step"} else set()
    return found


def test_a_page_has_words_for_every_stage_of_a_job_and_lists_what_was_done():
    names = names_in_the_code() - {"install", "load", "prove again", "count"}  # of no job
    assert {"prove", "cluster", "record", "search"} <= names
    assert [] == [name for name in sorted(names) if steps(name) == f"Now: {name}."]
    assert "Now: starting." == steps()
    now = "Now: looking for groups that lose less."
    assert f"{now} Done: reading the rows." == steps("auto: read", "cluster: search")
    assert "Now: trying attacks: homogeneity." == steps("attacks: homogeneity")


def test_each_result_of_a_job_replaces_the_one_before(start):
    done = []
    job = over(start(count, on_success=lambda: done.append("counted")))
    assert (3, 3, True, None) == (job.result, job.version, job.is_over, job.failure)
    assert ["counted"] == done


def test_a_job_that_fails_has_not_succeeded_but_keeps_its_last_result(start):
    done = []
    job = over(start(fail_at_last, on_success=lambda: done.append("counted")))
    assert (1, "no more", []) == (job.result, job.failure.message, done)


def test_a_job_stands_in_for_an_equal_request_alone():
    jobs = Jobs()
    first = jobs.start("a job", "public.patients", wait_for, {"public": False})
    assert first is jobs.start("a job", "public.patients", wait_for, {"public": False})
    other = jobs.start("a job", "public.patients", wait_for, {"public": True})
    assert first is not other
    jobs.end()


def test_a_process_that_is_prepared_takes_the_next_job_and_another_follows():
    jobs = Jobs(prepare=print)
    jobs.prepare()
    waiting = jobs.waiting[0]
    job = over(jobs.start("a job", "public.patients", count))
    assert (3, waiting) == (job.result, job.process)
    assert jobs.waiting[0] not in {None, waiting}
    next_one = jobs.waiting[0]
    jobs.end()
    next_one.join(20)
    assert not next_one.is_alive()


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
    assert "it was cancelled before it began: nothing was changed" == job.failure.message
