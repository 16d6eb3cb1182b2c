"""Schedules become jobs by the clock of the database, and workers do these."""

import json
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from threading import Event, Thread, Timer
from time import monotonic

import psycopg
import pytest
from tables import serve_patients

import dbanon
from dbanon.db.jobs import queue
from dbanon.db.session import connect

TABLE = dbanon.TableName("public", "patients")
CLOCK = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)


@pytest.fixture
def published(copied, monkeypatch):
    database = copied(serve_patients)
    monkeypatch.setenv("DBANON_DSN", database.dsn)
    return database


@pytest.fixture
def clock(monkeypatch):
    """Let a test set the time of the database, in hours after noon."""

    def set_to(hours):
        monkeypatch.setattr(queue, "now", lambda _: CLOCK + timedelta(hours=hours))

    set_to(0)
    return set_to


def change(database):
    database.execute("UPDATE public.patients SET note = note || '.' WHERE id = 7")


def work(database):
    """Do what there is to do; return what became of each job."""
    done = []
    dbanon.work(once=True, on_job=done.append, settings=database.settings)
    return [str(one.outcome.result) for one in done]


def jobs(database):
    return database.execute("SELECT due_at, state, result FROM dbanon.job ORDER BY job_id")


@pytest.mark.exhaustive
def test_a_due_time_is_one_job_which_refreshes(published, clock):
    stored = dbanon.set_schedule("patients", "15 * * * *", settings=published.settings)
    assert (TABLE, CLOCK + timedelta(minutes=15)) == (stored.table, stored.next_due)
    assert [] == work(published)
    clock(0.5)
    change(published)
    assert ["refreshed"] == work(published)
    assert [] == work(published)
    clock(1.25)
    assert ["unchanged"] == work(published)
    due = [CLOCK + timedelta(minutes=15), CLOCK + timedelta(minutes=75)]
    assert [(due[0], "done", "refreshed"), (due[1], "done", "unchanged")] == jobs(published)
    assert [2, 1] == [one.id for one in dbanon.list_releases(settings=published.settings)]


def test_what_was_missed_while_nobody_worked_is_made_up_for_once(published, clock):
    dbanon.set_schedule("patients", "*/5 * * * *", settings=published.settings)
    clock(1000)
    assert ["unchanged"] == work(published)
    assert [] == work(published)


def test_nothing_that_was_due_before_a_schedule_was_stored_is_run(published, clock):
    dbanon.set_schedule("patients", "15 * * * *", settings=published.settings)
    clock(0.5)
    dbanon.set_schedule("patients", "10 * * * *", settings=published.settings)
    assert [] == work(published)
    clock(1.2)
    assert ["unchanged"] == work(published)


@pytest.mark.exhaustive
def test_a_clock_that_jumps_back_repeats_nothing_and_stops_nothing(published, clock):
    dbanon.set_schedule("patients", "0 * * * *", settings=published.settings)
    for hours in (1, 2, 3):
        clock(hours + 0.1)
        assert ["unchanged"] == work(published)
    for hours in (1.5, 2.5, 3.5):
        clock(hours)
        assert [] == work(published)
    clock(10_000.5)  # and one that was years ahead for a moment
    assert ["unchanged"] == work(published)
    clock(4.5)
    assert ["unchanged"] == work(published)
    due = [moment for moment, _, _ in jobs(published)]
    assert 5 == len(set(due)) == len(due)


def test_a_schedule_that_a_wrong_clock_has_stored_still_comes(published, clock):
    clock(10_000)
    dbanon.set_schedule("patients", "0 * * * *", settings=published.settings)
    clock(0)
    assert ["unchanged"] == work(published)


def test_a_pause_that_a_wrong_clock_has_set_ends(published, clock):
    published.execute(
        "INSERT INTO dbanon.job (table_schema, table_name, attempts, not_before)"
        " VALUES ('public', 'patients', 1, %s), ('public', 'other', 1, %s)",
        (CLOCK + timedelta(days=400), CLOCK + timedelta(minutes=5)),
    )
    assert ["unchanged"] == work(published)


def test_a_job_may_be_asked_for_in_sql_and_is_one_while_it_waits(published):
    ask = "SELECT dbanon.enqueue('public.patients')"
    assert [[(True,)], [(False,)]] == [published.execute(ask), published.execute(ask)]
    assert ["unchanged"] == work(published)
    assert [(True,)] == published.execute(ask)


def test_a_time_that_comes_while_a_job_waits_is_done_by_that_job(published, clock):
    dbanon.set_schedule("patients", "0 * * * *", settings=published.settings)
    published.execute("SELECT dbanon.enqueue('public.patients')")
    clock(1.5)
    assert ["unchanged"] == work(published)
    assert [(None, "done", "unchanged"), (CLOCK + timedelta(hours=1), "done", "merged")] == jobs(
        published
    )


@pytest.mark.parametrize("waits", [False, True])
def test_no_worker_waits_for_a_load_that_has_asked_for_a_refresh(published, clock, waits):
    ask = "SELECT dbanon.enqueue('public.patients')"
    dbanon.set_schedule("patients", "0 * * * *", settings=published.settings)
    if waits:
        published.execute(ask)
    load = published.connect(autocommit=False)
    load.execute(ask)
    clock(1)
    assert [] == work(published)
    load.commit()
    assert ["unchanged"] == work(published)


def test_what_trying_again_does_not_help_against_has_failed_and_is_shown(published, clock, run_):
    dbanon.set_schedule("patients", "0 * * * *", settings=published.settings)
    published.execute("ALTER TABLE public.patients ADD hiv boolean DEFAULT true")
    clock(1)
    code, out, err = run_("worker", "--once")
    assert (4, "") == (code, out)
    assert "public.patients: failed: public.patients changed" in err
    ((_, state, result),) = jobs(published)
    assert ("failed", None) == (state, result)
    (listed,) = json.loads(run_("schedule", "list", "--json")[1])
    assert "column hiv is new" in listed["jobs"]["reason"]
    shown = run_("schedule", "list")[1]
    assert "is served on; column hiv is new" in shown
    assert "\\u000a" not in shown
    assert 1 == len(dbanon.list_releases(settings=published.settings))


def test_what_can_pass_is_tried_again_later_each_time_and_not_forever(
    published, clock, monkeypatch
):
    monkeypatch.setattr("dbanon.actions.jobs.worker.refresh", failing)
    published.execute("SELECT dbanon.enqueue('public.patients')")
    seconds, found, pauses = 0.0, [], []
    while found[-1:] != ["failed"]:
        clock(seconds / 3600)
        found += work(published)
        assert [] == work(published)
        ((pause, reason),) = published.execute(
            "SELECT extract(epoch FROM not_before - %s)::int, reason FROM dbanon.job",
            (CLOCK + timedelta(seconds=seconds),),
        )
        assert reason == "the disk of the server is full"
        pauses.append(pause)
        seconds += pause or 0
    assert [*["retried"] * 7, "failed"] == found
    assert [15, 30, 60, 120, 240, 480, 960, None] == pauses


def failing(*_, **__):
    raise dbanon.DatabaseError("the disk of the server is full")


def wait_no_more(database):
    database.execute("UPDATE dbanon.job SET not_before = NULL")


@pytest.mark.exhaustive
def test_what_is_asked_for_after_a_release_is_not_done_by_it(published, monkeypatch):
    ask = "SELECT dbanon.enqueue('public.patients')"
    published.execute(ask)
    with monkeypatch.context() as patched:
        patched.setattr("dbanon.actions.jobs.worker.refresh", failing)
        assert ["retried"] == work(published)
    change(published)
    dbanon.refresh("patients", settings=published.settings)
    change(published)
    assert [(False,)] == published.execute(ask)  # the job that is tried again does for this
    wait_no_more(published)
    assert ["refreshed"] == work(published)
    assert [3, 2, 1] == [one.id for one in dbanon.list_releases(settings=published.settings)]


@pytest.mark.exhaustive
def test_what_is_due_after_a_release_is_not_done_by_it(published, monkeypatch):
    published.execute("SELECT dbanon.enqueue('public.patients')")
    with monkeypatch.context() as patched:
        patched.setattr("dbanon.actions.jobs.worker.refresh", failing)
        assert ["retried"] == work(published)
    change(published)
    dbanon.refresh("patients", settings=published.settings)
    change(published)
    dbanon.set_schedule("patients", "0 * * * *", settings=published.settings)
    published.execute("UPDATE dbanon.schedule SET stored_at = stored_at - interval '1 hour'")
    wait_no_more(published)
    assert ["refreshed"] == work(published)
    assert ["merged"] == [result for due_at, _, result in jobs(published) if due_at is not None]
    assert 3 == len(dbanon.list_releases(settings=published.settings))


@pytest.mark.exhaustive
def test_what_is_asked_for_during_an_attempt_is_not_done_by_a_release_before(
    published, monkeypatch
):
    ask, refresh = "SELECT dbanon.enqueue('public.patients')", dbanon.refresh

    def publish_and_fail(*_, **__):
        change(published)
        refresh("patients", settings=published.settings)
        change(published)
        assert [(True,)] == published.execute(ask)
        failing()

    published.execute(ask)
    with monkeypatch.context() as patched:
        patched.setattr("dbanon.actions.jobs.worker.refresh", publish_and_fail)
        assert ["retried"] == work(published)
    wait_no_more(published)
    assert ["refreshed"] == work(published)
    assert 3 == len(dbanon.list_releases(settings=published.settings))


def test_no_worker_that_gives_a_job_back_waits_for_a_load(published, monkeypatch):
    ask = "SELECT dbanon.enqueue('public.patients')"
    load = published.connect(autocommit=False)

    def ask_and_fail(*_, **__):
        load.execute(ask)
        failing()

    published.execute(ask)
    with monkeypatch.context() as patched:
        patched.setattr("dbanon.actions.jobs.worker.refresh", ask_and_fail)
        start = monotonic()
        assert ["retried"] == work(published)
        assert monotonic() - start < 20
    found = "SELECT state, attempts, reason, not_before > now() FROM dbanon.job"
    assert [("running", 1, "the disk of the server is full", True)] == published.execute(found)
    load.commit()
    assert [] == work(published)
    wait_no_more(published)
    assert ["unchanged", "unchanged"] == work(published)
    assert ["unchanged"] * 2 == [result for _, _, result in jobs(published)]


@pytest.mark.exhaustive
def test_a_worker_that_is_told_of_jobs_all_the_time_looks_once_a_second(published, monkeypatch):
    loud = published.connect_as(published.role("loud"))
    taken, take, stop, done = [], queue.take, Event(), []

    def counted(*asked):
        taken.append(monotonic())
        return take(*asked)

    monkeypatch.setattr(queue, "take", counted)
    worker = Thread(
        target=dbanon.work,
        kwargs={"stop": stop, "on_job": done.append, "settings": published.settings},
    )
    worker.start()
    start, asked = monotonic(), []
    while monotonic() - start < 4 or not done:
        loud.execute("NOTIFY dbanon_job")
        if len(taken) == 2 and not asked:
            asked = published.execute("SELECT dbanon.enqueue('public.patients')")
    stop.set()
    loud.execute("NOTIFY dbanon_job")
    worker.join()
    assert ["unchanged"] == [str(one.outcome.result) for one in done]
    idle = [b - a for a, b in pairwise(taken)]
    assert len(idle) - sum(pause > 0.9 for pause in idle) <= 2  # after a job it looks at once


def test_a_worker_that_is_told_to_stop_while_its_job_fails_ends_in_peace(published, monkeypatch):
    stop, done = Event(), []

    def stop_and_fail(*_, **__):
        stop.set()
        failing()

    monkeypatch.setattr("dbanon.actions.jobs.worker.refresh", stop_and_fail)
    published.execute("SELECT dbanon.enqueue('public.patients')")
    dbanon.work(stop=stop, on_job=done.append, settings=published.settings)
    assert ["stopped"] == [str(one.outcome.result) for one in done]
    assert [("waiting", 0)] == published.execute("SELECT state, attempts FROM dbanon.job")


def test_an_unforeseen_error_is_kept_without_what_it_says(published, monkeypatch):
    def fail(*_, **__):
        raise ValueError("could not convert 'Smith'")

    monkeypatch.setattr("dbanon.actions.jobs.worker.refresh", fail)
    published.execute("SELECT dbanon.enqueue('public.patients')")
    assert ["retried"] == work(published)
    assert [("unforeseen ValueError",)] == published.execute("SELECT reason FROM dbanon.job")


LOST = """
INSERT INTO dbanon.job (table_schema, table_name, state, attempts, begun_at, begun_after)
VALUES ('public', 'patients', 'running', %s, now(), 1)
"""


@pytest.mark.exhaustive
def test_a_job_that_its_worker_has_done_but_not_entered_is_not_done_again(published):
    published.execute(LOST, (1,))
    change(published)
    dbanon.refresh("patients", settings=published.settings)
    change(published)
    assert ["refreshed"] == work(published)
    assert [2, 1] == [one.id for one in dbanon.list_releases(settings=published.settings)]


def test_a_job_that_was_done_already_leaves_nothing_that_hangs_on_its_table(published):
    private = "SELECT relname FROM pg_class WHERE relnamespace = 'dbanon_data'::regnamespace"
    before = published.execute(private)
    published.execute(LOST.replace("now(), 1", "now() - interval '1 hour', 0"), (1,))
    assert ["refreshed"] == work(published)
    assert before == published.execute(private)


@pytest.mark.exhaustive
def test_a_job_whose_worker_was_lost_before_it_had_done_it_is_done(published):
    change(published)
    dbanon.refresh("patients", settings=published.settings)
    published.execute(LOST, (1,))
    change(published)
    published.execute("UPDATE dbanon.job SET begun_after = 2")
    assert ["refreshed"] == work(published)
    assert 3 == len(dbanon.list_releases(settings=published.settings))


def test_a_job_that_has_a_worker_is_left_to_it(published):
    published.execute(LOST, (1,))
    published.execute("SELECT dbanon.enqueue('public.patients')")
    holder = published.connect(autocommit=False)
    holder.execute("SELECT FROM dbanon.job WHERE state = 'running' FOR UPDATE")
    assert [] == work(published)
    holder.rollback()
    assert ["unchanged", "unchanged"] == work(published)


def test_a_job_whose_worker_seems_lost_waits_while_its_table_is_being_published(published):
    published.execute(LOST, (1,))
    publication = published.connect(autocommit=False)
    publication.execute("UPDATE dbanon.publishing SET turns = turns + 1")
    assert [] == work(published)
    publication.rollback()
    assert ["unchanged"] == work(published)


def test_a_job_that_was_taken_a_moment_ago_is_left_to_who_took_it(published, clock):
    published.execute("SELECT dbanon.enqueue('public.patients')")
    with connect(published.settings) as session, session.transaction():
        assert 1 == queue.take(session, queue.now(session)).attempts
    assert [] == work(published)
    clock(0.01)
    assert ["unchanged"] == work(published)


def test_a_job_that_another_worker_locks_while_it_looks_for_one_is_done_at_once(
    published, monkeypatch
):
    """PostgreSQL locks a row before it sees that it was taken, until the end of the transaction."""
    held, hold = [], queue.hold

    def holding(session, job):
        other = published.connect(autocommit=False)
        other.execute("SELECT FROM dbanon.job FOR UPDATE")
        held.append(Timer(0.4, other.rollback))
        held[-1].start()
        return hold(session, job)

    monkeypatch.setattr(queue, "hold", holding)
    published.execute("SELECT dbanon.enqueue('public.patients')")
    assert ["unchanged"] == work(published)
    assert [(1,)] == published.execute("SELECT attempts FROM dbanon.job")
    assert 1 == len(held)


def test_a_job_that_loses_every_worker_is_given_up(published):
    published.execute(LOST, (8,))
    assert ["failed"] == work(published)
    found = published.execute("SELECT state, reason FROM dbanon.job")
    assert [("failed", "attempt 8 has lost its worker")] == found


def test_only_the_last_thousand_jobs_of_a_table_are_kept(published):
    published.execute(
        "INSERT INTO dbanon.job (table_schema, table_name, due_at, state)"
        " SELECT 'public', 'patients', now() - make_interval(mins => 1501 - i), 'done'"
        " FROM generate_series(1, 1500) AS i"
    )
    published.execute("SELECT dbanon.enqueue('public.patients')")
    work(published)
    assert [(1000,)] == published.execute("SELECT count(*) FROM dbanon.job")


def test_a_time_that_was_due_long_before_the_last_thousand_jobs_is_not_repeated(published, clock):
    dbanon.set_schedule("patients", "0 13 * * *", settings=published.settings)
    clock(1)
    assert ["unchanged"] == work(published)
    published.execute(
        "INSERT INTO dbanon.job (table_schema, table_name, state)"
        " SELECT 'public', 'patients', 'done' FROM generate_series(1, 1500)"
    )
    published.execute("SELECT dbanon.enqueue('public.patients')")
    assert ["unchanged"] == work(published)
    assert [] == work(published)
    assert [(1001,)] == published.execute("SELECT count(*) FROM dbanon.job")


@pytest.fixture
def run_(published, monkeypatch, capsys):
    """Run the command line; return its exit code and what it printed."""
    import sys

    from dbanon.cli import main

    def command(*words):
        monkeypatch.setattr(sys, "argv", ["dbanon", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        return ended.value.code or 0, printed.out, printed.err

    return command


def test_the_command_line_keeps_schedules(published, run_):
    code, out, _ = run_("schedule", "patients", "--cron", " 15  3 * * * ", "--json")
    assert (0, "15 3 * * *") == (code, json.loads(out)["schedule"]["cron"])
    zone = ("--zone", "Europe/Berlin")
    assert 0 == run_("schedule", "set", "public.patients", "--cron", "15 4 * * *", *zone)[0]
    (listed,) = json.loads(run_("schedule", "list", "--json")[1])
    assert ("15 4 * * *", "Europe/Berlin") == (
        listed["schedule"]["cron"],
        listed["schedule"]["zone"],
    )
    assert "public.patients" in run_("schedule", "list")[1]
    assert 0 == run_("schedule", "remove", "patients")[0]
    assert [] == json.loads(run_("schedule", "list", "--json")[1])
    code, _, err = run_("schedule", "remove", "patients")
    assert (1, True) == (code, "patients is not scheduled" in err)
    code, _, err = run_("schedule", "patients", "--cron", "often")
    assert (1, True) == (code, "five fields" in err)


def test_only_what_is_published_can_be_scheduled(published):
    published.execute("CREATE TABLE public.other (id int)")
    with pytest.raises(dbanon.ConfigError, match="is not published"):
        dbanon.set_schedule("other", "0 * * * *", settings=published.settings)


def test_a_worker_says_what_it_did_as_json(published, run_):
    published.execute("SELECT dbanon.enqueue('public.patients')")
    code, out, _ = run_("worker", "--once", "--json")
    found = json.loads(out)
    assert (0, "public.patients", 1) == (code, found["table"], found["attempt"])
    assert "unchanged" == found["outcome"]["result"]
    assert ["anon.patients"] == [one["relation"] for one in found["outcome"]["refreshed"]]


def test_hostile_names_and_times_are_only_data(published, run_):
    name = 'p"; DROP SCHEMA dbanon CASCADE; --\x1b[2J'
    published.execute(
        "INSERT INTO dbanon.schedule (table_schema, table_name, cron, zone)"
        " VALUES ('public', %s, '* * * * *; SELECT 1', '../../etc/passwd')",
        (name,),
    )
    published.execute(
        "INSERT INTO dbanon.job (table_schema, table_name) VALUES ('public', %s)", (name,)
    )
    code, out, err = run_("worker", "--once")
    assert 1 == code
    assert "the schedule of " in err
    assert "\x1b" not in out + err + run_("schedule", "list")[1]
    assert [("failed",)] == published.execute("SELECT state FROM dbanon.job")


def test_a_worker_does_not_start_on_a_schema_that_is_out_of_date(published):
    published.execute("COMMENT ON SCHEMA dbanon IS 'dbanon metadata: revision 0008'")
    with pytest.raises(dbanon.SchemaOutOfDate):
        work(published)


def test_who_may_publish_may_schedule_and_nobody_else(published):
    from dbanon.actions.init import init

    publisher, analyst = published.role("a_publisher"), published.role("an_analyst")
    init(published.settings, role=publisher, schema="anon")
    published.execute(f"GRANT USAGE ON SCHEMA dbanon TO {analyst}")
    assert [(True,)] == published.connect_as(publisher).execute(
        "SELECT dbanon.enqueue('public.patients')"
    ).fetchall()
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        published.connect_as(analyst).execute("SELECT dbanon.enqueue('public.patients')")


def test_a_reader_who_may_touch_the_jobs_is_named(published):
    analyst = published.role("analyst_of_jobs")
    dbanon.grant("anon.patients", [analyst], settings=published.settings)
    published.execute(f"GRANT INSERT ON dbanon.job TO {analyst}")
    found = [f for f in dbanon.doctor(settings=published.settings) if f.level != "ok"]
    assert any(analyst in f.message for f in found)


def test_only_what_is_due_is_entered(published, clock, monkeypatch):
    entered, original = [], vars(queue)["_enter"]
    monkeypatch.setattr(
        queue, "_enter", lambda *a, **kw: entered.append(str(a[1])) or original(*a, **kw)
    )
    for i in range(6):
        published.execute(
            "INSERT INTO dbanon.schedule (table_schema, table_name, cron, zone, stored_at)"
            " VALUES ('public', %s, %s, 'UTC', %s)",
            (f"t{i}", f"{10 * i} * * * *", CLOCK - timedelta(hours=9)),
        )

    def looks(agenda):
        entered.clear()
        with connect(published.settings, writes=True) as session, session.transaction():
            assert [] == agenda.enter_due(session, queue.now(session))
        return list(entered)

    agenda = queue.Agenda()
    assert [f"public.t{i}" for i in range(6)] == looks(agenda)
    assert CLOCK + timedelta(minutes=10) == agenda.coming
    assert [] == looks(agenda)
    assert [] == looks(queue.Agenda())  # nor does another worker enter them again
    clock(0.25)
    assert ["public.t1"] == looks(agenda)
    published.execute("UPDATE dbanon.schedule SET cron = '12 * * * *' WHERE table_name = 't5'")
    assert ["public.t5"] == looks(agenda)
    clock(-1)
    assert [f"public.t{i}" for i in range(6)] == sorted(looks(agenda))


BAD = {
    "a schedule of no time": (
        (
            "INSERT INTO dbanon.schedule (table_schema, table_name, cron, zone, stored_at)"
            " VALUES ('public', 'other', '* * * * *', 'UTC', '{}')"
        ),
        ("infinity", "-infinity", "0044-03-15 BC", "9999-12-31"),
    ),
    "a job of no time": (
        (
            "INSERT INTO dbanon.job"
            " (table_schema, table_name, due_at, not_before, begun_at, ended_at)"
            " VALUES ('public', 'other', '{0}', '{0}', '{0}', '{0}')"
        ),
        ("infinity", "-infinity", "0044-03-15 BC", "9999-12-31"),
    ),
    "a job of many attempts": (
        "INSERT INTO dbanon.job (table_schema, table_name, attempts) VALUES ('public', 'p', {})",
        ("2147483647", "-1"),
    ),
}
EACH = [(statement, value) for statement, values in BAD.values() for value in values]


@pytest.mark.parametrize(("statement", "value"), EACH)
def test_no_row_has_what_a_worker_cannot_read(published, statement, value):
    with pytest.raises(psycopg.errors.CheckViolation):
        published.execute(statement.format(value))


@pytest.mark.parametrize("attempts", [99, 100])
def test_a_job_of_the_most_attempts_fails_by_itself(published, attempts):
    published.execute(
        "INSERT INTO dbanon.job (table_schema, table_name, attempts)"
        " VALUES ('public', 'other', %s), ('public', 'patients', 0)",
        (attempts,),
    )
    assert ["failed", "unchanged"] == work(published)


def test_a_schedule_that_breaks_is_named_and_keeps_no_job_from_its_turn(
    published, clock, monkeypatch
):

    def last(self, now):
        raise OverflowError("secret")

    dbanon.set_schedule("patients", "15 * * * *", settings=published.settings)
    published.execute("SELECT dbanon.enqueue('public.patients')")
    clock(0.5)
    monkeypatch.setattr(queue.Cron, "last", last)
    notes, done = [], []
    dbanon.work(once=True, on_job=done.append, on_note=notes.append, settings=published.settings)
    assert ["unchanged"] == [str(one.outcome.result) for one in done]
    assert ["the schedule of public.patients: unforeseen OverflowError"] == notes


def wait_until(holds):
    end = monotonic() + 60
    while not holds():
        assert monotonic() < end
        time.sleep(0.1)


def resident():
    """Return the memory of this process, of which the worker is a thread, in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


FLOOD = """
import psycopg, sys
with psycopg.connect(sys.argv[1], autocommit=True) as connection:
    while True:
        connection.execute(
            "SELECT count(pg_notify('dbanon_job', repeat('x', 7900) || i))"
            " FROM generate_series(1, 10000) AS i"
        )
"""


def test_a_flood_neither_blocks_nor_fills_a_worker_that_begins_to_listen(database):
    bell, before, rung = queue.Bell(database.settings), resident(), 0
    with subprocess.Popen([sys.executable, "-c", FLOOD, database.dsn]) as flood:
        try:
            end = monotonic() + 60
            while rung < 3:  # it may be listening before the flood comes
                assert flood.poll() is None
                started = monotonic()
                bell.listen()
                rung += bell._pg is None  # noqa: SLF001
                bell.wait(0.05, Event())
                bell.close()
                assert monotonic() - started < 10
                assert monotonic() < end
                assert resident() - before < 60_000_000
        finally:
            flood.kill()


def test_notifications_of_any_number_and_size_take_no_memory_of_a_worker(published):
    stop, seen = Event(), []

    def serve():
        dbanon.work(stop=stop, settings=published.settings)

    worker = Thread(target=serve)
    worker.start()
    try:
        listening = "SELECT 1 FROM pg_stat_activity WHERE query LIKE %s AND pid <> pg_backend_pid()"
        wait_until(lambda: published.execute(listening, ("%LISTEN dbanon_job%",)))
        before = resident()
        for _ in range(4):
            published.connect().execute(
                "SELECT pg_notify('dbanon_job', repeat('x', 7900) || i)"
                " FROM generate_series(1, 10000) AS i"
            )
            seen.append(resident() - before)
        time.sleep(2)
        seen.append(resident() - before)
        assert worker.is_alive()
        published.execute("SELECT dbanon.enqueue('public.patients')")
        wait_until(lambda: published.execute("SELECT 1 FROM dbanon.job WHERE state = 'done'"))
    finally:
        stop.set()
        worker.join()
    assert max(seen) < 60_000_000, seen
