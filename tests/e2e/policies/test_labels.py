"""Readers look up what is above the labels of a release, and learn of no other value."""

from dataclasses import replace

import psycopg
import pytest
from selection import exhaustive_after
from tables import make_patients, patients_policy

import dbanon
from dbanon.domain.outcomes import Stages
from dbanon.domain.policy import ColumnRule

SOURCE = "public.patients"
LABELS = "SELECT column_name, label, parent, level FROM anon.patients_labels"
THERE = "SELECT to_regclass('anon.patients_labels') IS NOT NULL"
TOWNS = {"Ayr": "West", "Bute": "West", "Crail": "East", "Dunbar": "East"}
KNOWN = {
    "*": (None, 0),
    "West": ("*", 1),
    "East": ("*", 1),
    **{town: (part, 2) for town, part in TOWNS.items()},
}


@pytest.fixture
def patients(database, tmp_path):
    """The patients of three of four towns; nobody lives in Dunbar."""
    table = make_patients(database)
    database.execute("ALTER TABLE public.patients ADD town text")
    database.execute(
        "UPDATE public.patients SET town = (ARRAY['Ayr', 'Ayr', 'Bute', 'Crail'])[1 + id % 4]"
    )
    file = tmp_path / "town.csv"
    file.write_text("".join(f"{town};{part};*\n" for town, part in TOWNS.items()))
    dbanon.import_taxonomy("town", file, settings=database.settings)
    policy = patients_policy(table, labels=True)
    town = ColumnRule("town", dbanon.Role.QUASI, taxonomy="town")
    policy = replace(policy, columns=(*policy.columns, town))
    dbanon.set_policy(table, policy, settings=database.settings)
    return database


def publish(database, **options):
    return dbanon.publish(SOURCE, settings=database.settings, **options)


def labels(database):
    return {row[1]: row[2:] for row in database.execute(LABELS) if row[0] == "town"}


def below(label):
    """Return the towns that a label stands for."""
    return {town for town, part in TOWNS.items() if label in {town, part, "*"}}


def can_read(database, role):
    ((found,),) = database.execute(
        f"SELECT has_table_privilege('{role}', 'anon.patients_labels', 'SELECT')"
    )
    return found


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", ["table", "view"])
def test_published_labels_and_those_above_them_are_there_and_no_other(patients, kind):
    publish(patients, kind=kind)
    found = labels(patients)
    expected = {town for (town,) in patients.execute("SELECT DISTINCT town FROM anon.patients")}
    for label in [*expected]:
        while (label := KNOWN[label][0]) is not None:
            expected.add(label)
    assert {label: KNOWN[label] for label in expected} == found
    assert "Dunbar" not in found
    assert [] == [f for f in dbanon.doctor(settings=patients.settings) if f.level == "failure"]


def test_labels_come_and_go_with_the_rights_on_the_release(patients):
    analyst, other = patients.role("labels_analyst"), patients.role("labels_other")
    publish(patients, grants=[analyst])
    assert can_read(patients, analyst)
    dbanon.refresh(SOURCE, settings=patients.settings)
    assert can_read(patients, analyst)
    dbanon.grant("anon.patients", [other], settings=patients.settings)
    assert can_read(patients, other)
    (taken,) = dbanon.revoke("anon.patients", [other], settings=patients.settings)
    assert taken.remarks == ()
    assert not can_read(patients, other)
    ((use,),) = patients.execute(f"SELECT has_schema_privilege('{other}', 'anon', 'USAGE')")
    assert not use
    patients.execute(f"REVOKE SELECT ON anon.patients FROM {analyst}")
    dbanon.refresh(SOURCE, settings=patients.settings)
    assert not can_read(patients, analyst)


@pytest.mark.exhaustive
def test_a_refresh_fills_them_anew_while_others_read(patients):
    publish(patients)
    patients.execute("UPDATE public.patients SET town = 'Dunbar' WHERE town = 'Crail'")
    with psycopg.connect(patients.dsn) as reader:
        assert reader.execute(LABELS).fetchall()
        dbanon.refresh(SOURCE, settings=patients.settings)
    assert "Crail" not in labels(patients)


def test_they_go_with_the_release_and_with_the_key_of_the_policy(patients):
    publish(patients)
    policy = dbanon.load_policy(SOURCE, settings=patients.settings)
    dbanon.set_policy(SOURCE, replace(policy, labels=False), settings=patients.settings)
    dbanon.refresh(SOURCE, settings=patients.settings)
    assert [(False,)] == patients.execute(THERE)
    dbanon.set_policy(SOURCE, policy, settings=patients.settings)
    (again,) = dbanon.refresh(SOURCE, settings=patients.settings)
    assert [(True,)] == patients.execute(THERE)
    dbanon.drop_release(again.release.id, settings=patients.settings)
    assert [(False,)] == patients.execute(THERE)


@pytest.mark.exhaustive
def test_who_reads_them_keeps_no_publication_waiting(patients):
    analyst = patients.role("labels_reader")
    publish(patients, grants=[analyst])
    policy = dbanon.load_policy(SOURCE, settings=patients.settings)
    dbanon.set_policy(SOURCE, replace(policy, labels=False), settings=patients.settings)
    with psycopg.connect(patients.dsn) as reader:
        assert reader.execute(LABELS).fetchall()
        (done,) = dbanon.refresh(SOURCE, settings=patients.settings)
        assert done.changed
        assert reader.execute(THERE).fetchall() == [(True,)]
    assert patients.execute(LABELS) == []
    assert not can_read(patients, analyst)
    dbanon.refresh(SOURCE, new_series=True, settings=patients.settings)
    assert [(False,)] == patients.execute(THERE)


def test_labels_that_a_view_of_others_needs_are_emptied_and_stay(patients):
    release = publish(patients)
    patients.execute("CREATE VIEW public.towns AS SELECT label FROM anon.patients_labels")
    policy = dbanon.load_policy(SOURCE, settings=patients.settings)
    dbanon.set_policy(SOURCE, replace(policy, labels=False), settings=patients.settings)
    (done,) = dbanon.refresh(SOURCE, settings=patients.settings)
    assert (True, []) == (done.changed, patients.execute("SELECT label FROM public.towns"))
    stages = Stages()
    dbanon.drop_release(release.id + 1, settings=patients.settings, stages=stages)
    assert "other objects depend on anon.patients_labels: drop these" in stages.remarks[0]
    patients.execute("DROP VIEW public.towns")
    dbanon.drop_release(release.id + 1, settings=patients.settings)
    assert [(False,)] == patients.execute(THERE)


def test_a_relation_of_somebody_else_is_left_alone(patients):
    patients.execute("CREATE SCHEMA IF NOT EXISTS anon")
    patients.execute("CREATE TABLE anon.patients_labels AS SELECT 1 AS mine")
    with pytest.raises(dbanon.ConfigError, match="is no relation of labels"):
        publish(patients)
    assert [(1,)] == patients.execute("SELECT mine FROM anon.patients_labels")


WANTED = [
    *([label] for label in KNOWN),
    ["Ayr", "Crail"],
    ["West", "Ayr"],
    ["West", "Dunbar"],
    [*TOWNS],
    ["Elsewhere"],
    [],
]


def test_labels_are_counted_by_what_they_may_stand_for(patients):
    publish(patients)
    shown = labels(patients)
    for wanted in WANTED:
        asked = set().union(*map(below, wanted))
        found = patients.execute(
            "SELECT * FROM dbanon.shares_of_labels('anon.patients_labels', 'town', %s)", (wanted,)
        )
        assert shown.keys() == {label for label, *_ in found}
        for label, at_least, share, at_most in found:
            towns = below(label)
            assert at_least <= share <= at_most
            assert at_least <= (towns <= asked)
            assert bool(towns & asked) <= at_most
            if shown.keys() >= set(wanted):
                assert (towns <= asked, bool(towns & asked)) == (at_least, at_most)
                assert len(towns & asked) / len(towns) == pytest.approx(share)


def test_shares_of_a_column_that_has_no_labels_are_refused(patients):
    publish(patients)
    shares = "SELECT * FROM dbanon.shares_of_labels(%s, %s, '{Crail}')"
    with pytest.raises(psycopg.errors.UndefinedColumn, match="has no labels of column towns"):
        patients.execute(shares, ("anon.patients_labels", "towns"))
    with pytest.raises(psycopg.errors.WrongObjectType, match="is no relation of labels"):
        patients.execute(shares, ("anon.patients", "town"))


@pytest.mark.parametrize(
    "change",
    exhaustive_after(
        1,
        [
            "DROP TABLE anon.patients_labels",
            "GRANT INSERT ON anon.patients_labels TO PUBLIC",
            "COMMENT ON TABLE anon.patients_labels IS 'mine'",
        ],
    ),
)
def test_doctor_names_what_was_done_to_them(patients, change):
    publish(patients)
    patients.execute(change)
    failures = [f for f in dbanon.doctor(settings=patients.settings) if f.level == "failure"]
    assert ["its labels are gone, or others can change them"] == [f.message for f in failures]


def test_a_plan_prints_the_statement(patients):
    script = dbanon.plan(SOURCE, settings=patients.settings).script
    assert 'CREATE TABLE "anon"."patients_labels"' in script
