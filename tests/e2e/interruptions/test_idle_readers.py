"""Readers of a release and what replaces or withdraws it keep out of each other's way."""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

import psycopg
import pytest
from psycopg import IsolationLevel
from selection import each_once, exhaustive_after
from tables import define_patients, patients_policy, publish_patients, serve_patients

import dbanon
from dbanon.db.metadata import ledger
from dbanon.db.releases import withdrawal
from dbanon.db.session import connect
from dbanon.domain.outcomes import Stages
from dbanon.domain.policy import Role

KINDS = pytest.mark.parametrize("kind", ["table", "view"])
LEVELS = [IsolationLevel.REPEATABLE_READ, IsolationLevel.SERIALIZABLE]
PAUSE = 0.002  # between two readings, so that the readers leave a core to those who publish
COUNT = "SELECT count(*) FROM anon.patients"
LONGEST = 1.0  # seconds that a reader may wait


@pytest.fixture
def patients(copied):
    return copied(define_patients)


@pytest.fixture
def published(copied, kind):
    """Patients who are published as a table or as a live view."""
    return copied({"table": publish_patients, "view": serve_patients}[kind])


@pytest.fixture
def published_table(copied):
    return copied(publish_patients)


def publish(database, kind="table", **options):
    return dbanon.publish("patients", kind=kind, settings=database.settings, **options)


def refresh(database):
    (refreshed,) = dbanon.refresh("patients", new_series=True, settings=database.settings)
    return refreshed.release


def publish_other_columns(database, kind="table"):
    """Publish without the notes, which needs another table and another view."""
    table = dbanon.TableName("public", "patients")
    policy = patients_policy(table)
    columns = [
        replace(c, role=Role.IDENTIFIER) if c.column == "note" else c for c in policy.columns
    ]
    policy = replace(policy, columns=tuple(columns))
    dbanon.set_policy(table, policy, settings=database.settings)
    return publish(database, kind)


def publish_all_columns(database, kind="table"):
    table = dbanon.TableName("public", "patients")
    policy = patients_policy(table)
    dbanon.set_policy(table, policy, settings=database.settings)
    return publish(database, kind)


def begin(database, *, level=IsolationLevel.READ_COMMITTED, read=True):
    """Open a transaction that has a snapshot, and has read the release, and goes idle."""
    connection = database.connect(autocommit=False)
    connection.isolation_level = level
    connection.execute(COUNT if read else "SELECT 1")
    return connection


@contextmanager
def reading_on(database):
    """Read again and again meanwhile; yield what was counted, and the waits, in seconds."""
    counted, waits, stopped = set(), [], []

    def read():
        with psycopg.connect(database.dsn, autocommit=True) as connection:
            while not stopped:
                start = time.monotonic()
                counted.add(connection.execute(COUNT).fetchone()[0])
                waits.append(time.monotonic() - start)
                time.sleep(PAUSE)

    with ThreadPoolExecutor(1) as pool:
        reader = pool.submit(read)
        try:
            yield counted, waits
        finally:
            stopped.append(True)
            reader.result()


def rows_of(connection):
    return sorted(connection.execute("SELECT p::text FROM anon.patients AS p").fetchall())


@KINDS
def test_a_refresh_waits_for_no_reader_and_no_reader_for_it(published, kind):
    idle = begin(published)
    start = time.monotonic()
    with reading_on(published) as (counted, waits):
        release = refresh(published)
    assert time.monotonic() - start < 30
    assert ({200}, 2) == (counted, release.id)
    assert max(waits) < LONGEST
    # READ COMMITTED: the next statement of the idle transaction sees the new release
    assert idle.execute(COUNT).fetchone() == (200,)
    assert [] == [f for f in dbanon.doctor(settings=published.settings) if f.level != "ok"]


@KINDS
def test_a_dump_that_has_begun_finds_every_relation_that_it_has_listed(published, kind):
    listed = (
        "SELECT c.oid FROM pg_class AS c WHERE c.relnamespace = 'dbanon_data'::regnamespace"
        " AND c.relkind IN ('r', 'v') ORDER BY c.oid"
    )
    before = published.execute(listed)
    refresh(published)
    assert len(before) >= 1
    assert before == published.execute(listed)


@pytest.mark.parametrize(
    ("kind", "level", "read"), each_once(["table", "view"], LEVELS, [True, False])
)
def test_a_snapshot_sees_the_one_release_of_its_time(published, kind, level, read):
    before = rows_of(published.connect())
    old = begin(published, level=level, read=read)
    published.execute("UPDATE public.patients SET note = 'other ' || note")
    refresh(published)
    assert before == rows_of(old)
    promised = "SELECT dbanon.promise('anon.patients') ->> 'release'"
    assert ("1",) == old.execute(promised).fetchone()
    verdicts = old.execute("SELECT verdict FROM dbanon.verify('anon.patients')").fetchall()
    assert {("passed",)} == set(verdicts)
    now = rows_of(published.connect())
    assert len(before) == len(now)
    assert [] == [row for row in now if row in before]


QUESTIONS = {
    "count": COUNT,
    "rows": "SELECT * FROM anon.patients",
    "filter": "SELECT disease FROM anon.patients WHERE sex = 'F'",
    "group": "SELECT sex, count(*) FROM anon.patients GROUP BY sex",
    "join": "SELECT FROM public.patients AS s LEFT JOIN anon.patients AS p USING (note)",
    "exists": "SELECT EXISTS (SELECT FROM anon.patients)",
    "copy": "COPY (SELECT * FROM anon.patients) TO STDOUT",
    "verify": "SELECT verdict FROM dbanon.verify('anon.patients')",
    "check": "SELECT verdict FROM dbanon.check_k_anonymity('anon.patients', '{sex}', 5)",
    "cursor": "DECLARE c CURSOR FOR SELECT * FROM anon.patients; FETCH c",
}


def answer(connection, question):
    """Ask within a transaction that goes on; return the rows, or the SQLSTATE."""
    try:
        with connection.transaction(), connection.cursor() as cursor:
            if question.startswith("COPY"):
                with cursor.copy(question) as copy:
                    return list(copy)
            cursor.execute(question)
            while cursor.nextset():
                pass
            return cursor.fetchall()
    except psycopg.Error as error:
        return error.sqlstate


@KINDS
@pytest.mark.parametrize("before", exhaustive_after(2, ["other columns", "nothing"]))
def test_a_snapshot_older_than_the_tables_of_a_release_gets_an_error(patients, kind, before):
    if before == "other columns":
        publish_other_columns(patients, kind)
    old = begin(patients, level=IsolationLevel.REPEATABLE_READ, read=False)
    publish_all_columns(patients, kind)
    found = {name: answer(old, question) for name, question in QUESTIONS.items()}
    if before == "nothing":
        # to this snapshot the view is not there yet, nor its comment
        assert ("22023", "42601") == (found.pop("verify"), found.pop("check"))
    assert dict.fromkeys(found, "40001") == found
    old.rollback()
    assert [(200,)] == answer(old, COUNT)


@KINDS
def test_a_change_of_columns_gives_up_in_time_and_names_who_is_in_the_way(
    published, kind, monkeypatch
):
    monkeypatch.setattr("dbanon.db.releases.relations.PATIENCE", 1.0)
    idle = begin(published)
    pid = idle.info.backend_pid
    failure = pytest.raises(dbanon.DatabaseError, match="release 1 is served on")
    with reading_on(published) as (counted, waits), failure as raised:
        publish_other_columns(published, kind)
    assert f"process {pid} ({published.server.owner})" in str(raised.value)
    assert f"SELECT pg_terminate_backend({pid})" in raised.value.hint
    assert raised.value.hint.endswith("run the command again")
    assert ({200}, True) == (counted, max(waits) < LONGEST)
    idle.rollback()
    with reading_on(published) as (counted, waits):
        release = publish(published, kind)
    assert ({200}, True) == (counted, max(waits) < LONGEST)
    found = published.execute("SELECT * FROM anon.patients LIMIT 1")
    assert 5 == len(found[0])
    assert [release.id] == [
        r.id for r in dbanon.list_releases(settings=published.settings) if r.served
    ]


def test_an_idle_reader_of_the_source_does_not_keep_a_live_view_from_being_replaced(patients):
    publish_other_columns(patients, "view")
    idle = patients.connect(autocommit=False)
    idle.execute("SELECT count(*) FROM public.patients")
    guards = (
        "SELECT DISTINCT substring(tgname FROM '[0-9]+') FROM pg_trigger"
        " WHERE tgname ~ '^dbanon_guard'"
    )
    with reading_on(patients) as (counted, waits):
        publish_all_columns(patients, "view")
    assert ({200}, True) == (counted, max(waits) < LONGEST)
    assert [("1",), ("2",)] == sorted(patients.execute(guards))
    warnings = [f.hint for f in dbanon.doctor(settings=patients.settings) if f.level != "ok"]
    assert ["dbanon release drop 1"] == warnings
    # the old guards look at nothing by now, those of the new release hide what it does not hold
    patients.execute("UPDATE public.patients SET disease = 'flu'")
    assert [(0,)] == patients.execute(COUNT)
    idle.rollback()
    patients.execute("UPDATE public.patients SET disease = (ARRAY['a', 'b', 'c'])[1 + id % 3]")
    refresh(patients)
    assert [("2",)] == patients.execute(guards)
    assert [] == [f for f in dbanon.doctor(settings=patients.settings) if f.level != "ok"]


@KINDS
@pytest.mark.parametrize(
    "level", exhaustive_after(1, [IsolationLevel.REPEATABLE_READ, IsolationLevel.READ_COMMITTED])
)
def test_a_release_is_withdrawn_whoever_reads_it(patients, kind, level, monkeypatch):
    monkeypatch.setattr("dbanon.db.releases.withdrawal.PATIENCE", 0.5)
    analyst = patients.role(f"analyst_{kind}")
    release = publish(patients, kind, grants=[analyst])
    idle = patients.connect_as(analyst, autocommit=False)
    idle.isolation_level = level
    idle.execute(COUNT)
    start = time.monotonic()
    dbanon.drop_release(release.id, settings=patients.settings)
    assert time.monotonic() - start < 30
    stages = Stages()
    dbanon.drop_release(release.id, settings=patients.settings, stages=stages)
    (remark,) = stages.remarks
    assert f"process {idle.info.backend_pid} ({analyst})" in remark
    assert f"dbanon release drop {release.id}" in remark
    if level is IsolationLevel.READ_COMMITTED:
        assert isinstance(answer(idle, COUNT), str)
    for connection in (patients.connect_as(analyst), patients.admin()):
        assert isinstance(answer(connection, COUNT), str)
    findings = dbanon.doctor(settings=patients.settings)
    assert [f"dbanon release drop {release.id}"] == [f.hint for f in findings if f.level != "ok"]
    patients.execute("UPDATE public.patients SET sex = 'F' WHERE id < 9")
    idle.rollback()
    dbanon.drop_release(release.id, settings=patients.settings, stages=stages)
    assert 1 == len(stages.remarks)
    left = "SELECT relname FROM pg_class WHERE relnamespace = 'dbanon_data'::regnamespace"
    assert [] == patients.execute(left)
    assert [] == patients.execute("SELECT tgname FROM pg_trigger WHERE tgname ~ '^dbanon_guard'")
    with pytest.raises(dbanon.ConfigError, match="is not served any more"):
        dbanon.drop_release(release.id, settings=patients.settings)


@KINDS
def test_after_an_unfinished_withdrawal_the_name_can_be_published_again(
    published, kind, monkeypatch
):
    monkeypatch.setattr("dbanon.db.releases.withdrawal.PATIENCE", 0.0)
    idle = begin(published)
    dbanon.drop_release(1, settings=published.settings)
    idle.rollback()
    publish(published, kind)
    assert published.execute(COUNT) == [(200,)]
    assert [] == [f for f in dbanon.doctor(settings=published.settings) if f.level != "ok"]


@KINDS
def test_an_idle_reader_keeps_nobody_from_granting_and_revoking(patients, kind):
    analyst = patients.role(f"analyst_revoked_{kind}")
    publish(patients, kind, grants=[analyst])
    idle = begin(patients)
    (taken,) = dbanon.revoke("anon.patients", [analyst], settings=patients.settings)
    (given,) = dbanon.grant("anon.patients", [analyst], settings=patients.settings)
    assert (True, True) == (taken.changed, given.changed)
    assert [(200,)] == answer(idle, COUNT)


def test_a_dry_run_keeps_nobody_waiting_and_leaves_nothing(published_table):
    state = "SELECT count(*), max(xmin::text) FROM dbanon_data.release_1"
    before, idle = published_table.execute(state), begin(published_table)
    with reading_on(published_table) as (counted, waits):
        publish(published_table, dry_run=True)
    assert ({200}, True) == (counted, max(waits) < LONGEST)
    assert before == published_table.execute(state)
    assert [(200,)] == answer(idle, COUNT)
    assert [] == [f for f in dbanon.doctor(settings=published_table.settings) if f.level != "ok"]


@KINDS
def test_readers_need_no_right_on_what_tells_an_old_snapshot(patients, kind):
    patients.execute("ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC")
    analyst = patients.role(f"analyst_plain_{kind}")
    publish(patients, kind)
    patients.execute(
        f"GRANT USAGE ON SCHEMA anon TO {analyst}; GRANT SELECT ON anon.patients TO {analyst}"
    )
    assert [(200,)] == answer(patients.connect_as(analyst), COUNT)


def test_queries_of_readers_still_run_in_parallel(published_table):
    connection = published_table.connect()
    connection.execute(
        "SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0;"
        "SET min_parallel_table_scan_size = 0"
    )
    plan = "\n".join(row[0] for row in answer(connection, f"EXPLAIN {COUNT} WHERE sex = 'F'"))
    assert "Parallel Seq Scan" in plan
    assert "One-Time Filter: dbanon_data.seen_1()" in plan


@pytest.mark.parametrize("level", LEVELS)
def test_a_writer_with_a_snapshot_older_than_a_refresh_cannot_slip_past_the_guards(patients, level):
    patients.execute("DELETE FROM public.patients WHERE id >= 190")
    publish(patients, "view")
    patients.execute(
        "INSERT INTO public.patients SELECT id + 190, age, sex, born, weight, disease, note"
        "  FROM public.patients WHERE id < 10"
    )
    writer = begin(patients, level=level)
    refresh(patients)
    assert [(200,)] == patients.execute(COUNT)
    # in its snapshot these rows are in no class; in the release that is served by now they are
    for statement in (
        "UPDATE public.patients SET disease = 'flu' WHERE id >= 190",
        "DELETE FROM public.patients WHERE id >= 190",
        "TRUNCATE public.patients",
    ):
        assert "40001" == answer(writer, statement)


@KINDS
def test_rows_that_no_snapshot_needs_are_freed(published, kind):
    for _ in range(2):
        refresh(published)
    table = "release_1" if kind == "table" else "rows_1"
    pages = f"SELECT pg_relation_size('dbanon_data.{table}') / 8192"
    before = published.execute(pages)
    for _ in range(2):
        refresh(published)
    assert before == published.execute(pages)


def test_what_is_published_while_leftovers_are_looked_for_is_none_of_them(patients, monkeypatch):
    served_entries = ledger.served_entries

    def publish_after(session, **asked):
        found = served_entries(session, **asked)
        monkeypatch.setattr(ledger, "served_entries", served_entries)
        publish(patients, keep_assignment=True)
        return found

    with connect(patients.settings) as session:
        monkeypatch.setattr(ledger, "served_entries", publish_after)
        withdrawal.tidy(session)
    assert [(200,)] == patients.execute("SELECT count(*) FROM dbanon_data.rows_1")
