"""``plan --refresh`` shows what a refresh would do, and keeps nothing of it."""

import json

import pytest
from psycopg.conninfo import make_conninfo
from tables import make_patients, patients_policy

import dbanon


@pytest.fixture
def patients(database):
    """Patients of whom 120 are published and 60 have come since."""
    table = make_patients(database, rows=180)
    database.execute("CREATE TABLE public.others AS SELECT * FROM public.patients WHERE id >= 120")
    database.execute("DELETE FROM public.patients WHERE id >= 120")
    policy = patients_policy(table, k=4, l=2, algorithm="mdav")
    dbanon.set_policy(table, policy, settings=database.settings)
    dbanon.publish(table, settings=database.settings)
    database.execute("INSERT INTO public.patients SELECT * FROM public.others")
    return database


def state(database):
    shown = database.execute("SELECT age::text, disease, note FROM anon.patients ORDER BY note")
    return shown, database.execute("SELECT release_id FROM dbanon.history ORDER BY 1")


@pytest.mark.exhaustive
def test_what_a_refresh_would_do_is_shown_and_not_done(patients, run):
    before = state(patients)
    printed = run("plan", "patients", "--refresh").out
    for words in (
        "would be refreshed",
        "120 rows unchanged, ",
        " new",
        "% before, ",
        "l-diversity",
    ):
        assert words in printed, words
    (found,) = json.loads(run("plan", "patients", "--refresh", "--json").out)
    assert before == state(patients)
    (done,) = dbanon.refresh("patients", settings=patients.settings)
    assert done.growth.inserted == found["growth"]["inserted"] > 0
    assert pytest.approx(done.release.loss.ncp) == found["release"]["loss"]["ncp"]
    assert found["former_ncp"] > 0


def test_each_of_several_relations_is_planned_by_itself_and_that_is_said(patients, run):
    assert "by itself" not in run("plan", "patients", "--refresh").out
    dbanon.publish("patients", name="larger", k=6, settings=patients.settings)
    patients.execute("DELETE FROM public.patients WHERE id < 2")
    printed = run("plan", "patients", "--refresh").out
    assert "each relation is planned alone" in printed


@pytest.mark.exhaustive
def test_nothing_to_do_is_shown_as_well(patients, run):
    patients.execute("DELETE FROM public.patients WHERE id >= 122")
    printed = run("plan", "patients", "--refresh").out
    assert "would stay as it is" in printed
    assert "2 pending (pool 2 of " in printed


def test_a_superuser_is_refused_unless_that_is_meant(patients, run, monkeypatch):
    superuser = make_conninfo(patients.server.admin_dsn, dbname=patients.name)
    monkeypatch.setenv("DBANON_DSN", superuser)
    dbanon.drop_release(1, settings=patients.settings)
    run("publish", "patients", "--allow-superuser")
    assert "--allow-superuser" in run("plan", "patients", "--refresh", code=1).err
    assert "would stay" in run("plan", "patients", "--refresh", "--allow-superuser").out


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "words",
    [
        ("--refresh",),
        ("patients", "--refresh", "--k", 7),
        ("patients", "--refresh", "--compare"),
        ("patients", "--allow-superuser"),
    ],
)
def test_what_would_mean_nothing_is_refused(patients, run, words):
    assert "--refresh" in run("plan", *words, code=2).err
