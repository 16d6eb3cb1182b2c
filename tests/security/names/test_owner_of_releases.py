"""The owner of a release wants code to run as another role that looks at it or drops it."""

from contextlib import suppress
from threading import Thread

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from selection import exhaustive_after
from tables import make_patients, patients_policy, publish_patients, serve_patients

import dbanon
from dbanon.domain.errors import DbanonError
from dbanon.settings import Settings

# The spy notes that somebody else than the owner runs it, also if all is rolled back.
SPY = """
CREATE SEQUENCE public.caught;
GRANT ALL ON SEQUENCE public.caught TO PUBLIC;
CREATE FUNCTION public.spy() RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF current_user <> '{owner}' THEN RAISE WARNING 'caught'; END IF;
    IF current_user <> '{owner}' AND current_setting('transaction_read_only') = 'off'
    THEN PERFORM nextval('public.caught'); END IF;
    RETURN true;
END $$;
CREATE FUNCTION public.fired() RETURNS trigger LANGUAGE plpgsql AS
 $$ BEGIN PERFORM public.spy(); RETURN NULL; END $$;
CREATE FUNCTION public.checked(text) RETURNS boolean LANGUAGE sql IMMUTABLE AS
 'SELECT public.spy()';
"""
ALTERED = """
CREATE OR REPLACE FUNCTION dbanon_data.altered_1()
RETURNS TABLE (kind text, relation oid, name text) LANGUAGE plpgsql AS
 $$ BEGIN PERFORM public.spy(); RETURN {}; END $$;
ALTER FUNCTION dbanon_data.altered_1() SECURITY {};
"""
MARKS = """
DROP TABLE dbanon_data.marks_1;
CREATE VIEW dbanon_data.marks_1 AS
 SELECT 0::oid AS relation, ''::text AS kind, ''::text AS name, ''::text AS state
  WHERE public.spy()
"""
REPLACED = {
    "the function that names changes": ALTERED.format("", "INVOKER"),
    "the table of marks": ALTERED.format("QUERY SELECT 'table'::text, 0::oid, ''::text", "DEFINER")
    + MARKS,
}


def spied(database, make):
    make(database)
    database.execute(SPY.format(owner=database.server.owner))
    return database


def member(database):
    """Return settings of a role that may act as the owner of the release."""
    other = database.role(f"member_{database.name[-8:]}")
    with database.admin() as admin:
        admin.execute(f"GRANT {database.server.owner} TO {other}")
    return Settings(dsn=database.dsn_as(other))


@pytest.fixture
def caught(database, monkeypatch):
    """Return what tells if the spy was run by somebody else."""
    told, connect = [], psycopg.connect

    def telling(*words, **options):
        connection = connect(*words, **options)
        connection.add_notice_handler(lambda found: told.append(found.message_primary))
        return connection

    monkeypatch.setattr(psycopg, "connect", telling)
    return lambda: (
        "caught" in told or database.execute("SELECT is_called FROM public.caught") == [(True,)]
    )


@pytest.mark.parametrize("what", exhaustive_after(1, REPLACED))
def test_who_looks_at_a_live_view_runs_nothing_of_its_owner(database, caught, what):
    spied(database, serve_patients).execute(REPLACED[what])
    superuser = Settings(dsn=make_conninfo(database.server.admin_dsn, dbname=database.name))
    for settings in (superuser, member(database)):
        found = [one.message for one in dbanon.doctor(settings=settings) if one.exit_code]
        assert any("what would notice it" in message for message in found)
        with suppress(DbanonError):
            dbanon.refresh("patients", if_changed=True, settings=settings)
        with suppress(DbanonError):
            dbanon.check("anon.patients", settings=settings)
    assert not caught()


def publish_labels(database):
    table = make_patients(database)
    policy = patients_policy(table, labels=True)
    dbanon.set_policy(table, policy, settings=database.settings)
    dbanon.publish(table, settings=database.settings)


def test_who_drops_a_release_does_not_run_a_trigger_that_its_owner_adds_meanwhile(database, caught):
    spied(database, publish_labels)
    settings, owner = member(database), database.connect(autocommit=False)
    owner.execute(
        "CREATE TRIGGER t AFTER DELETE ON anon.patients_labels EXECUTE FUNCTION public.fired()"
    )

    def drop():
        with suppress(DbanonError):
            dbanon.drop_release(1, settings=settings)

    dropping = Thread(target=drop)
    dropping.start()
    waiting = (
        "SELECT FROM pg_locks WHERE NOT granted AND relation = 'anon.patients_labels'::regclass"
    )
    with database.admin() as admin:
        while dropping.is_alive() and not admin.execute(waiting).fetchall():
            dropping.join(0.02)
    owner.commit()
    dropping.join()
    assert not caught()
    assert not dbanon.list_releases(settings=database.settings)[0].served


@pytest.mark.exhaustive
def test_who_refreshes_a_release_does_not_run_a_check_that_its_owner_added(database, caught):
    spied(database, publish_patients)
    database.execute(
        "ALTER TABLE dbanon_data.release_1 ADD CHECK (public.checked(disease));"
        "INSERT INTO public.patients"
        " SELECT 1000 + id, age, sex, born, weight, disease, note FROM public.patients"
    )
    with suppress(DbanonError):
        dbanon.refresh("patients", settings=member(database))
    assert not caught()
