import re
import socket
from datetime import UTC, datetime
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from dbanon.actions.jobs import worker as module
from dbanon.actions.jobs.worker import Health, Metrics
from dbanon.db.jobs.queue import JobCounts
from dbanon.domain.errors import ConfigError
from dbanon.domain.table import TableName

HOSTILE = TableName("public", 'p"} 1\ndbanon_jobs_total{table="other')
SUCCEEDED = datetime(2026, 11, 23, tzinfo=UTC)


@pytest.fixture
def port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@pytest.fixture
def later(monkeypatch):
    """Let time pass."""
    passed = [0.0]
    monkeypatch.setattr(module, "monotonic", lambda: passed[0])

    def let(seconds):
        passed[0] += seconds

    return let


def asked(port, path):
    try:
        with urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_metrics_count_jobs_and_show_how_those_of_each_table_stand(port):
    metrics = Metrics(Health())
    table = TableName("public", "patients")
    for result in ("refreshed", "refreshed", "failed"):
        metrics.count(table, result=result, seconds=2.0)
    state = ("failed", None, "k is not met", SUCCEEDED)
    metrics.show([JobCounts(table, 1, 0, None, SUCCEEDED, *state)])
    with metrics.served(port):
        status, text = asked(port, "/metrics")
    assert 200 == status
    name = 'table="public.patients"'
    assert f'dbanon_jobs_total{{result="refreshed",{name}}} 2.0' in text
    assert f"dbanon_job_seconds_sum{{{name}}} 6.0" in text
    (succeeded,) = re.findall(rf"dbanon_last_success_timestamp_seconds{{{name}}} (.+)", text)
    assert SUCCEEDED.timestamp() == float(succeeded)
    assert f"dbanon_last_job_failed{{{name}}} 1.0" in text
    assert f"dbanon_jobs_waiting{{{name}}} 1.0" in text
    assert "k is not met" not in text


def test_a_table_that_is_gone_is_not_shown_any_more(port):
    metrics = Metrics(Health())
    metrics.show([JobCounts(HOSTILE, 1, 0, None, None, None, None, None, None)])
    metrics.show([])
    with metrics.served(port):
        assert "other" not in asked(port, "/metrics")[1]


def test_the_name_of_a_table_adds_no_line(port):
    metrics = Metrics(Health())
    metrics.count(HOSTILE, result="refreshed", seconds=1.0)
    with metrics.served(port):
        lines = asked(port, "/metrics")[1].splitlines()
    assert [] == [line for line in lines if line.startswith('dbanon_jobs_total{table="other')]


def test_a_worker_is_well_while_it_reaches_the_database_or_its_job_moves_on(port, later):
    health = Health()
    with Metrics(health).served(port):

        def healthy():
            return asked(port, "/healthz")

        assert (503, "the database is not reached\n") == healthy()
        health.reach()
        assert (200, "well\n") == healthy()
        later(120)
        assert (503, "the database is not reached\n") == healthy()
        with health.working() as stages:
            later(3000)
            assert 200 == healthy()[0]
            with stages("check"):
                later(3000)
                assert 200 == healthy()[0]
                later(3000)
                assert (503, "the job does not move on\n") == healthy()
        assert 200 == healthy()[0]


def test_only_this_machine_is_answered_and_only_what_there_is(port):
    with Metrics(Health()).served(port):
        assert 404 == asked(port, "/")[0]
        with socket.socket() as other, pytest.raises(OSError, match="refused"):
            other.connect(("127.0.0.2", port))


def test_a_port_that_is_in_use_is_an_error_in_words(port):
    metrics = Metrics(Health())
    refused = pytest.raises(ConfigError, match=f"port {port}")
    with metrics.served(port), refused, metrics.served(port):
        pass
