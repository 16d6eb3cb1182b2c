"""A plan groups rows as a publication would, in the classes of earlier releases if they stay."""

import pytest
from tables import make_patients, patients_policy

import dbanon

OTHERS = {"new_series": True, "recipients_changed": True}
CHANGE = "UPDATE public.patients SET age = 100 - age WHERE id % 7 = 0"


@pytest.fixture
def served(database):
    """A published table of which some rows have changed since."""
    table = make_patients(database)
    dbanon.set_policy(table, patients_policy(table), settings=database.settings)
    dbanon.publish(table, settings=database.settings)
    database.execute(CHANGE)
    return database


REFUSALS = {
    "a role that is missing": ({"grants": ["nobody_at_all"]}, "no role nobody_at_all"),
    "a relation of somebody": ({"name": "theirs"}, "was not published by dbanon"),
    "a relation of another table": ({"name": "others"}, "serves release 2 of public.others"),
}


def planned(database, **options):
    return dbanon.plan("patients", settings=database.settings, **options)


def published(database, **options):
    return dbanon.publish("patients", dry_run=True, settings=database.settings, **options)


@pytest.mark.exhaustive
def test_a_plan_keeps_the_classes_that_a_publication_keeps(served):
    plan, release = planned(served), published(served)
    assert plan.sharing == release.sharing
    assert plan.sharing.kept > 0
    assert plan.loss.ncp == release.loss.ncp
    assert plan.loss.ncp > planned(served, **OTHERS).loss.ncp


@pytest.mark.exhaustive
def test_a_plan_for_other_readers_groups_all_rows_anew(served):
    plan, release = planned(served, **OTHERS), published(served, **OTHERS)
    assert plan.sharing is release.sharing is None
    assert plan.loss.ncp == release.loss.ncp


def test_a_plan_writes_nothing_where_classes_are_kept(served):
    before = served.execute("SELECT count(*) FROM dbanon.release")
    planned(served)
    assert served.execute("SELECT count(*) FROM dbanon.release") == before
    assert served.execute("SELECT count(*) FROM pg_class WHERE relname LIKE 'rows\\_%'") == [(0,)]


@pytest.mark.exhaustive
def test_a_plan_says_what_it_keeps(served, run):
    assert "200 rows in the" in run("plan", "patients").out
    assert (
        "groups of earlier releases"
        not in run("plan", "patients", "--new-series", "--recipients-changed").out
    )
    assert (
        "publish then runs: write, publish, check, compare, record" in run("plan", "patients").out
    )


@pytest.mark.exhaustive
@pytest.mark.parametrize("way", REFUSALS)
def test_a_plan_refuses_what_a_publication_refuses(served, way):
    served.execute("CREATE VIEW anon.theirs AS SELECT 1 AS one")
    served.execute("CREATE TABLE public.others AS TABLE public.patients")
    served.execute("ALTER TABLE public.others ADD PRIMARY KEY (id)")
    others = dbanon.TableName.parse("public.others")
    dbanon.set_policy(others, patients_policy(others), settings=served.settings)
    dbanon.publish(others, settings=served.settings)
    options, reason = REFUSALS[way]
    for act in (planned, published):
        with pytest.raises(dbanon.ConfigError, match=reason):
            act(served, **options)
