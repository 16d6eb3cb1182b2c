import json
import sys

import psycopg
import pytest
from tables import publish_patients

import dbanon
from dbanon.cli import main


@pytest.fixture
def patients(copied):
    """A table that is published, and read by nobody."""
    return copied(publish_patients)


@pytest.fixture
def twice(patients):
    """The same, published as a live view too."""
    dbanon.publish("patients", name="live", kind="view", settings=patients.settings)
    return patients


@pytest.fixture
def run(patients, monkeypatch, capsys):
    monkeypatch.setenv("DBANON_DSN", patients.dsn)

    def command(*words, code=0):
        monkeypatch.setattr(sys, "argv", ["dbanon", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        assert (ended.value.code or 0) == code
        return capsys.readouterr()

    return command


def can_read(database, role, relation="anon.patients"):
    try:
        database.connect_as(role).execute(f"SELECT FROM {relation}")
    except psycopg.errors.InsufficientPrivilege:
        return False
    return True


def usage(database, role, schema):
    return database.execute("SELECT has_schema_privilege(%s, %s, 'USAGE')", (role, schema))[0][0]


@pytest.mark.exhaustive
def test_a_relation_is_granted_checked_and_revoked(patients, run):
    analyst = patients.role("grant_analyst")
    assert "grant_analyst can read it\n" in run("grant", "anon.patients", analyst).out
    assert can_read(patients, analyst)
    auditor = dbanon.Settings(dsn=patients.dsn_as(analyst))
    assert dbanon.check("anon.patients", settings=auditor).passed
    assert "it was so already" in run("grant", "anon.patients", analyst).out
    assert "has no right on it\n" in run("revoke", "anon.patients", analyst).out
    assert not can_read(patients, analyst)
    assert not usage(patients, analyst, "anon")
    assert not usage(patients, analyst, "dbanon")
    assert "it was so already" in run("revoke", "anon.patients", analyst).out


def test_a_table_stands_for_all_that_is_served_of_it(twice, patients, run):
    analyst = patients.role("grant_table")
    document = json.loads(run("grant", "patients", analyst, "--json").out)
    assert {"anon.patients", "anon.live"} == {one["relation"] for one in document}
    assert [True, True] == [one["changed"] for one in document]
    kept = run("revoke", "anon.live", analyst)
    assert not can_read(patients, analyst, "anon.live")
    assert "grant_table keeps USAGE on anon, for anon.patients" in kept.err
    assert "grant_table keeps USAGE on dbanon, for anon.patients" in kept.err
    assert can_read(patients, analyst)
    (gone,) = json.loads(run("revoke", "anon.patients", analyst, "--json").out)
    assert gone["remarks"] == []
    assert not usage(patients, analyst, "anon")


def test_what_is_not_there_is_looked_up_among_the_releases(patients, run):
    analyst = patients.role("grant_nothing")
    assert "try: dbanon release list" in run("grant", "anon.nothing", analyst, code=1).err
    assert "try: dbanon release list" in run("revoke", "anon.nothing", analyst, code=1).err
    near = run("grant", 'anon."Patients"', analyst, code=1).err
    assert "did you mean public.patients?" in near


@pytest.mark.parametrize("option", ["--dry-run", "--print-sql"])
def test_a_dry_run_changes_nothing(patients, run, option):
    analyst = patients.role("grant_dry")
    out = run("grant", "anon.patients", analyst, option).out
    assert ("GRANT SELECT ON " in out) == (option == "--print-sql")
    assert not can_read(patients, analyst)
    run("grant", "anon.patients", analyst)
    assert ("REVOKE USAGE" in run("revoke", "patients", analyst, option).out) == (
        option == "--print-sql"
    )
    assert can_read(patients, analyst)


def test_a_grant_that_would_reach_what_is_hidden_is_undone(patients, run):
    honest, leaky = patients.role("grant_honest"), patients.role("grant_leaky")
    patients.execute(f"GRANT SELECT (age) ON public.patients TO {leaky}")
    error = run("grant", "anon.patients", honest, leaky, code=1).err
    assert "grant_leaky can read public.patients" in error
    assert not can_read(patients, honest)
    assert not usage(patients, honest, "dbanon")


def test_everybody_can_be_granted_and_revoked(patients, run):
    anyone = patients.role("grant_anyone")
    run("grant", "anon.patients", "public")
    run("grant", "anon.patients", anyone)
    told = run("revoke", "anon.patients", anyone).err
    assert "grant_anyone can still read anon.patients" in told
    assert can_read(patients, anyone)
    run("revoke", "anon.patients", "public")
    assert not can_read(patients, anyone)


def test_what_a_role_gave_to_others_goes_with_it(patients, run):
    giver, taker = patients.role("grant_giver"), patients.role("grant_taker")
    run("grant", "anon.patients", giver)
    patients.execute(f"GRANT SELECT ON anon.patients TO {giver} WITH GRANT OPTION")
    patients.connect_as(giver).execute(f"GRANT SELECT ON anon.patients TO {taker}")
    error = run("revoke", "anon.patients", taker, code=1).err
    assert "grant_taker still has SELECT on anon.patients, given by grant_giver" in error
    run("revoke", "anon.patients", giver)
    found = patients.execute(
        "SELECT has_table_privilege(r, 'anon.patients', 'SELECT') FROM unnest(%s::name[]) AS r",
        ([giver, taker],),
    )
    assert found == [(False,), (False,)]


def test_a_schema_that_holds_more_than_releases_stays_usable(patients, run):
    analyst = patients.role("grant_schema")
    patients.execute("CREATE TABLE anon.theirs (x integer)")
    run("grant", "anon.patients", analyst)
    assert "keeps USAGE on anon, for anon.theirs" in run("revoke", "patients", analyst).err
    assert usage(patients, analyst, "anon")


@pytest.mark.parametrize("command", ["grant", "revoke"])
def test_what_is_not_published_and_who_is_no_role_is_told(patients, run, command):
    patients.execute("CREATE TABLE public.plain (x integer)")
    assert "public.plain is not published" in run(command, "plain", "public", code=1).err
    assert "there is no role nobody_there" in run(command, "patients", "nobody_there", code=1).err
    patients.execute("ALTER VIEW anon.patients RENAME TO gone")
    patients.execute("CREATE VIEW anon.patients AS SELECT 1 AS age")
    error = run(command, "anon.patients", "public", code=1).err
    assert "is not what was published" in error
