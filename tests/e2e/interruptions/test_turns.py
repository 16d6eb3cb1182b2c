"""One publication of a table at a time, which nobody else can hold up; rights change at once."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

import psycopg
import pytest
from tables import define_patients, patients_policy

import dbanon
from dbanon.actions.preparation import prepare
from dbanon.actions.publication import group_reuse
from dbanon.actions.publication import steps as publishing
from dbanon.db import catalog
from dbanon.db.releases import publication_lock
from dbanon.db.session import LOCK_TIMEOUT, connect
from dbanon.domain.errors import DatabaseError
from dbanon.domain.outcomes import Operation

LOCK = "SELECT pg_advisory_lock(hashtext('dbanon'), 'public.patients'::regclass::oid::integer)"


def publish_for_an_analyst(database):
    define_patients(database)
    analyst = database.role("turns_analyst")
    dbanon.publish("patients", grants=[analyst], settings=database.settings)


@pytest.fixture
def patients(copied):
    """A table that is published, and granted to an analyst."""
    database = copied(publish_for_an_analyst)
    assert can_read(database)
    return database


def can_read(database):
    try:
        database.connect_as("turns_analyst").execute("SELECT FROM anon.patients")
    except psycopg.errors.InsufficientPrivilege:
        return False
    return True


def served(database):
    ledger = dbanon.list_releases(settings=database.settings)
    return [release.id for release in ledger if release.served]


@contextmanager
def in_flight(patch, module, name, work):
    """Run a publication in a thread up to a function of it; go on after the block."""
    original = getattr(module, name)
    reached, go_on = threading.Event(), threading.Event()
    with ThreadPoolExecutor(1) as pool:
        runner = []

        def waiting(*arguments, **options):
            if threading.get_ident() in runner:
                reached.set()
                assert go_on.wait(60)
            return original(*arguments, **options)

        def run():
            runner.append(threading.get_ident())
            return work()

        with patch.context() as during:
            during.setattr(module, name, waiting)
            future = pool.submit(run)
            while not reached.wait(0.05):
                assert not future.done(), future.result()
            try:
                yield future
            finally:
                go_on.set()
            future.exception(timeout=60)


def test_an_advisory_lock_of_anybody_blocks_no_publication_and_no_revocation(patients, monkeypatch):
    monkeypatch.setattr(publication_lock, "PATIENCE_SECONDS", 1.0)
    stranger = patients.connect_as(patients.role("turns_stranger"))
    stranger.execute(LOCK)
    stranger.execute("SELECT pg_advisory_lock(1), pg_advisory_lock(hashtext('dbanon'))")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        stranger.execute("BEGIN; LOCK TABLE dbanon.publishing IN ACCESS SHARE MODE")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        stranger.execute("ROLLBACK; SELECT FROM dbanon.publishing FOR UPDATE")
    dbanon.refresh("patients", new_series=True, settings=patients.settings)
    assert [2] == served(patients)
    dbanon.revoke("patients", ["turns_analyst"], settings=patients.settings)
    assert not can_read(patients)


def test_a_revocation_does_not_wait_for_a_search_and_outlives_it(patients, monkeypatch):
    def refresh():
        return dbanon.refresh("patients", new_series=True, settings=patients.settings)

    with in_flight(monkeypatch, prepare.LinkedSource, "solve", refresh) as future:
        start = time.monotonic()
        dbanon.revoke("patients", ["turns_analyst"], settings=patients.settings)
        assert time.monotonic() - start < 10
        assert not can_read(patients)
        assert not future.done()
    assert [2] == served(patients)
    assert not can_read(patients)


def publish_without_note(patients):
    """Drop a column and publish again, which makes the view anew."""
    policy = patients_policy(dbanon.TableName("public", "patients"))
    rules = tuple(rule for rule in policy.columns if rule.column != "note")
    patients.execute("ALTER TABLE public.patients DROP COLUMN IF EXISTS note")
    policy = replace(policy, columns=rules)
    dbanon.set_policy("patients", policy, settings=patients.settings)
    return lambda: dbanon.publish("patients", settings=patients.settings)


@pytest.mark.parametrize("columns", ["", " (age)"])
def test_a_view_is_not_made_anew_with_rights_that_were_taken_meanwhile(
    patients, monkeypatch, columns
):
    publish = publish_without_note(patients)
    patients.execute(f"GRANT SELECT{columns} ON anon.patients TO turns_analyst")
    with in_flight(monkeypatch, group_reuse, "solve", publish) as future:
        patients.execute(f"REVOKE SELECT{columns} ON anon.patients FROM turns_analyst")
        dbanon.revoke("patients", ["turns_analyst"], settings=patients.settings)
    assert "rights on anon.patients were changed" in str(future.exception())
    assert [1] == served(patients)
    publish()
    assert [3] == served(patients)
    assert not can_read(patients)


@pytest.mark.parametrize("anew", [False, True])
def test_a_revocation_holds_after_a_publication_under_way(patients, monkeypatch, anew):
    def publish():
        return dbanon.publish("patients", settings=patients.settings)

    publish = publish_without_note(patients) if anew else publish

    def revoke():
        return dbanon.revoke("patients", ["turns_analyst"], settings=patients.settings)

    with ThreadPoolExecutor(1) as pool:
        with in_flight(monkeypatch, publishing, "_prove", publish):
            revoking = pool.submit(revoke)
            time.sleep(1)
        (taken,) = revoking.result(timeout=60)
    assert taken.changed
    # A view that would be made anew with the rights of before is not made.
    assert [1 if anew else 2] == served(patients)
    assert not can_read(patients)


def test_a_refresh_gives_back_no_right_that_was_taken(patients):
    dbanon.revoke("patients", ["turns_analyst"], settings=patients.settings)
    (refreshed,) = dbanon.refresh("patients", new_series=True, settings=patients.settings)
    assert refreshed.changed
    assert not can_read(patients)
    (again,) = dbanon.refresh("patients", if_changed=True, settings=patients.settings)
    assert not again.changed


def test_a_refresh_keeps_readers_and_knows_what_was_published_with_a_grant(patients):
    (unchanged,) = dbanon.refresh("patients", if_changed=True, settings=patients.settings)
    assert not unchanged.changed
    dbanon.refresh("patients", new_series=True, settings=patients.settings)
    assert can_read(patients)


@pytest.mark.parametrize("kind", ["table", "view"])
def test_publications_of_a_table_wait_for_each_other(patients, monkeypatch, kind):
    def refresh():
        return dbanon.refresh("patients", new_series=True, settings=patients.settings)

    def publish():
        return dbanon.publish("patients", k=7, kind=kind, name="other", settings=patients.settings)

    with ThreadPoolExecutor(1) as pool:
        with in_flight(monkeypatch, prepare.LinkedSource, "solve", refresh):
            second = pool.submit(publish)
            time.sleep(1)
            assert not second.done()
            assert [1] == served(patients)
        assert 3 == second.result(timeout=60).id
    assert [3, 2] == served(patients)


def test_a_publication_that_waited_sees_what_was_committed_meanwhile(patients, monkeypatch):
    def refresh():
        return dbanon.refresh("patients", new_series=True, settings=patients.settings)

    with ThreadPoolExecutor(3) as pool:
        with in_flight(monkeypatch, prepare.LinkedSource, "solve", refresh):
            others = [pool.submit(refresh) for _ in range(3)]
            time.sleep(1)
            assert not any(other.done() for other in others)
        ids = {other.result(timeout=60)[0].release.id for other in others}
    assert {3, 4, 5} == ids
    assert [5] == served(patients)


def test_a_publication_is_patient_once_it_has_its_turn(patients):
    operation = Operation("anon.patients", "published")
    with connect(patients.settings, writes=True) as session:
        source = catalog.describe(session, dbanon.TableName("public", "patients"))
        with publication_lock.alone(
            session, [source], exclude_writers=True, keep=False, operation=operation
        ):
            (patience,) = session.pg.execute(
                "SELECT setting::int / 1000 FROM pg_settings WHERE name = 'lock_timeout'"
            ).fetchone()
    assert f"{patience}s" == LOCK_TIMEOUT


def test_who_waits_in_vain_is_told_for_whom(patients, monkeypatch):
    monkeypatch.setattr(publication_lock, "PATIENCE_SECONDS", 0.5)
    other = patients.connect(autocommit=False)
    oid = patients.execute("SELECT 'public.patients'::regclass::oid")[0][0]
    other.execute("SELECT FROM dbanon.publishing WHERE source = %s FOR UPDATE", (oid,))
    holder = rf"{patients.server.owner} in another session \(pid {other.info.backend_pid}\)"
    with pytest.raises(DatabaseError, match=f"public.patients is being published by {holder}"):
        dbanon.refresh("patients", new_series=True, settings=patients.settings)
    other.rollback()
    dbanon.refresh("patients", new_series=True, settings=patients.settings)
    assert [2] == served(patients)


def test_a_writer_that_does_not_end_stops_a_live_publication_in_time(patients, monkeypatch):
    """The writer ends later than the publication, so that one without patience would succeed."""
    monkeypatch.setattr(publication_lock, "PATIENCE_SECONDS", 1.0)
    writer = patients.connect(autocommit=False)
    writer.execute("UPDATE public.patients SET note = note")
    end = threading.Timer(10, writer.rollback)
    end.start()
    holder = rf"process {writer.info.backend_pid} \({patients.server.owner}\)"
    with pytest.raises(
        DatabaseError, match=f"public.patients cannot be locked, because of {holder}"
    ):
        dbanon.publish("patients", kind="view", name="live", settings=patients.settings)
    end.cancel()
    writer.rollback()
    assert [1] == served(patients)


def test_who_is_overtaken_waits_for_the_turn_without_the_lock_on_the_source(patients, monkeypatch):
    """Between the wait for the turn and its use, another publication takes it and keeps it."""
    monkeypatch.setattr(publication_lock, "PATIENCE_SECONDS", 3.0)
    lock, other = publication_lock._lock, patients.connect(autocommit=False)  # noqa: SLF001
    source = "(SELECT 'public.patients'::regclass::oid)"

    def overtaken(*arguments, **options):
        lock(*arguments, **options)
        other.execute(f"SELECT FROM dbanon.publishing WHERE source = {source} FOR UPDATE")

    monkeypatch.setattr(publication_lock, "_lock", overtaken)
    with ThreadPoolExecutor(1) as pool:
        publishing = pool.submit(
            dbanon.publish, "patients", kind="view", name="live", settings=patients.settings
        )
        try:
            time.sleep(1.5)
            with patients.connect() as writer:
                writer.execute("SET lock_timeout = '500ms'")
                writer.execute("UPDATE public.patients SET note = note")
            with pytest.raises(DatabaseError, match=r"public\.patients is being published by"):
                publishing.result(timeout=30)
        finally:
            other.rollback()
    assert [1] == served(patients)


@pytest.mark.parametrize(
    ("errors", "attempts", "is_done"),
    [
        (["tuple concurrently updated"] * 2, 3, True),
        (["tuple concurrently updated"] * 9, 5, False),
        (["another error"], 1, False),
    ],
)
def test_only_what_another_change_of_rights_overtook_is_tried_again(
    patients, errors, attempts, is_done
):
    tried = []
    with connect(patients.settings, writes=True) as session:

        def work():
            tried.append(None)
            for error in errors[len(tried) - 1 : len(tried)]:
                session.pg.execute(f"DO $$ BEGIN RAISE EXCEPTION '{error}'; END $$")
            return True

        operation = Operation("anon.patients", "granted")
        try:
            done = publication_lock.with_retry(session, operation, keep=False, work=work)
        except psycopg.Error:
            done = False
    assert (attempts, is_done) == (len(tried), done)
