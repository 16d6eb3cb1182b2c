"""Attacks on what is served, against its table as it is now: counts, and of nobody by name."""

import json
import re
from dataclasses import replace

import pytest
from data.schemas.clinic import make_clinic
from psycopg import sql
from tables import make_patients, patients_policy, publish_patients, serve_patients

import dbanon
from dbanon.domain.report import CONFIDENTIAL


@pytest.fixture
def patients(copied):
    return copied(publish_patients)


@pytest.fixture
def run(patients, run, monkeypatch):
    monkeypatch.setenv("DBANON_DSN", patients.dsn)
    return run


def named(found):
    return {(one["name"], one["column"]): one for one in found["attacks"]}


def test_what_is_ours_is_attacked_and_no_bound_is_broken(patients, run):
    found = json.loads(run("attack", "anon.patients", "--json").out)
    assert ("anon.patients", "public.patients", 1) == (
        found["relation"],
        found["table"],
        found["release"],
    )
    attacks = named(found)
    prosecutor = attacks["re-identification, prosecutor", None]
    assert 200 == prosecutor["tried"]
    assert 0.2 == prosecutor["expected"]
    assert 0 < prosecutor["rate"] <= 0.2
    assert prosecutor["candidates"] >= 5
    assert 0 == attacks["homogeneity", "disease"]["rate"]
    assert ("deFinetti", "disease") in attacks
    for one in attacks.values():
        assert one["low"] <= one["rate"] <= one["high"]
        assert one["expected"] is None or one["low"] <= one["expected"]


@pytest.mark.parametrize("attacker", ["journalist", "marketer"])
def test_other_attackers_look_for_anybody(run, attacker):
    found = json.loads(run("attack", "anon.patients", "--as", attacker, "--json").out)
    assert attacker == found["attacker"]
    one = named(found)[f"re-identification, {attacker}", None]
    assert 0 < one["rate"] <= one["expected"] == 0.2


@pytest.mark.exhaustive
def test_the_same_seed_draws_the_same_persons(patients, run):
    words = ("attack", "anon.patients", "--samples", "50", "--json")
    first, again = (run(*words, "--seed", "3").out for _ in range(2))
    assert first == again
    assert 50 == named(json.loads(first))["skewness", "disease"]["tried"]
    assert first != run(*words, "--seed", "4").out


def test_a_table_for_people_tells_bounds_and_what_was_not_tried(run):
    shown = run("attack", "anon.patients").out
    assert "anon.patients (release 1), attacked by a prosecutor" in shown
    assert re.search(r"re-identification, prosecutor\s+-\s+200\s.*20\.00%", shown)
    assert "skewness: guesses the most likely value" in shown
    assert "not tried: similarity, as no sensitive column has an order" in shown


def test_what_there_is_no_time_for_is_told(run):
    found = json.loads(run("attack", "anon.patients", "--time-limit", "1ms", "--json").out)
    assert [] == found["attacks"]
    assert {"there was no time left"} == set(found["not_tried"].values())


# Two relations


@pytest.mark.exhaustive
def test_relations_that_were_judged_together_are_attacked_within_their_bound(patients, run):
    dbanon.publish("patients", name="coarse", k=10, settings=patients.settings)
    found = json.loads(run("attack", "anon.patients", "--with", "anon.coarse", "--json").out)
    assert ("anon.coarse", 2, None) == (found["other"], found["other_release"], found["attacker"])
    attacks = named(found)
    certain = attacks["intersection to one value", "disease"]
    assert (0.0, 0.0) == (certain["rate"], certain["expected"])
    assert attacks["join", None]["tried"] > 0


def test_relations_of_other_readers_and_of_other_tables(patients, run):
    asked = {"new_series": True, "recipients_changed": True, "settings": patients.settings}
    dbanon.publish("patients", name="coarse", k=10, **asked)
    found = json.loads(run("attack", "anon.patients", "--with", "anon.coarse", "--json").out)
    # Nobody held one against the other, so that nothing bounds what both tell.
    assert {None} == {one["expected"] for one in found["attacks"]}
    certain = named(found)["intersection to one value", "disease"]
    told = "named fewer than k persons"
    if certain["named"] is not None:
        told = "named {persons:,} persons, right {right:,}, by chance {usual:,}".format(
            **certain["named"]
        )
    assert told in run("attack", "anon.patients", "--with", "anon.coarse").out
    make_patients(patients, name="others")
    policy = patients_policy(dbanon.TableName("public", "others"))
    dbanon.set_policy("others", policy, settings=patients.settings)
    dbanon.publish("others", settings=patients.settings)
    told = run("attack", "anon.patients", "--with", "anon.others", code=1).err
    assert "anon.patients is of public.patients, and anon.others of public.others" in told
    assert (
        "is one relation" in run("attack", "anon.patients", "--with", "anon.patients", code=1).err
    )
    assert "--as" in run("attack", "x", "--with", "y", "--as", "marketer", code=2).err


def test_a_live_view_is_remembered_by_nobody_and_attacked_without_a_bound(patients, run):
    dbanon.publish("patients", name="live", kind="view", k=10, settings=patients.settings)
    found = json.loads(run("attack", "anon.patients", "--with", "anon.live", "--json").out)
    assert {None} == {one["expected"] for one in found["attacks"]}
    join = named(found)["join", None]
    assert 0 < join["rate"] <= 1
    assert "upper bound" in join["words"]


# What it reads, and of whom


@pytest.mark.exhaustive
def test_live_views_are_attacked_as_they_are_now(copied, run, monkeypatch):
    database = copied(serve_patients)
    monkeypatch.setenv("DBANON_DSN", database.dsn)
    database.execute("DELETE FROM public.patients WHERE id < 100")
    found = named(json.loads(run("attack", "anon.patients", "--json").out))
    assert 0 < found["re-identification, prosecutor", None]["rate"] <= 0.2
    database.execute("DELETE FROM public.patients")
    found = json.loads(run("attack", "anon.patients", "--json").out)
    assert [] == found["attacks"]
    assert {"no person of the table can be in the relation as it is"} == set(
        found["not_tried"].values()
    )


def test_who_came_since_is_not_tried_unless_a_class_covers_them(patients, run):
    patients.execute("UPDATE public.patients SET age = 150 WHERE id < 50")
    found = named(json.loads(run("attack", "anon.patients", "--json").out))
    assert 150 == found["skewness", "disease"]["tried"]
    # Nobody knows who of them is in the relation, so that no bound is told of their values.
    assert found["skewness", "disease"]["expected"] is None


def test_a_column_of_another_type_is_named(patients, run):
    patients.execute("ALTER TABLE public.patients ALTER age TYPE bigint")
    told = run("attack", "anon.patients", code=4).err
    assert "column age of public.patients has another type than when anon.patients was" in told
    assert "try: dbanon refresh" in told


def test_a_role_without_rights_is_refused_and_told_nothing(patients, run, monkeypatch):
    reader = patients.role("reader")
    dbanon.grant("anon.patients", [reader], settings=patients.settings)
    monkeypatch.setenv("DBANON_DSN", patients.dsn_as(reader))
    finished = run("attack", "anon.patients", "--json", code=1)
    assert "this role may not read the metadata" in finished.err
    assert {"error"} == set(json.loads(finished.out))
    # Nor is one that reads the metadata, and not the table.
    for table in ("ALL TABLES IN SCHEMA dbanon", "anon.patients"):
        patients.execute(f"GRANT SELECT ON {table} TO {reader}")
    patients.execute(f"GRANT USAGE ON SCHEMA dbanon TO {reader}")
    finished = run("attack", "anon.patients", "--json", code=1)
    assert "permission denied for table patients" in finished.err
    assert {"error"} == set(json.loads(finished.out))


def test_only_what_serves_a_release_is_attacked(patients, run):
    told = run("attack", "public.patients", code=1).err
    assert "public.patients serves no release" in told
    assert "try: dbanon release list" in run("attack", "anon.nothing", code=1).err
    for verb in ("attack", "report"):
        told = run(verb, "anon.patient", code=1).err
        assert "try: did you mean anon.patients?" in told
    told = run("attack", "anon.patients", "--as", "nobody", code=1).err
    assert "error: there is no attacker nobody, but prosecutor, journalist, marketer" in told
    assert "try: dbanon attack anon.patients --as prosecutor" in told
    patients.execute("DROP VIEW anon.patients; CREATE VIEW anon.patients AS SELECT 1 AS age")
    assert "is not what was published" in run("attack", "anon.patients", code=1).err


def test_nothing_that_it_tells_is_a_value_of_anybody(patients, run):
    dbanon.publish("patients", name="coarse", k=10, settings=patients.settings)
    values = {
        str(value)
        for row in patients.execute("SELECT id, born, weight, disease, note FROM patients")
        for value in row
        if value is not None and len(str(value)) > 3
    }
    told = "".join(
        "".join(run("attack", "anon.patients", *words))
        for more in ((), ("--as", "journalist"), ("--with", "anon.coarse"))
        for words in (more, (*more, "--json"))
    )
    assert "skewness" in told
    assert {value for value in values if re.search(rf"\b{re.escape(value)}\b", told)} == set()


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ['"; DROP TABLE patients; --', "{0}", "%s", "line\nend", "[red]"])
def test_hostile_names_are_names(patients, run, name):
    table = dbanon.TableName("public", name)
    patients.execute(
        sql.SQL("CREATE TABLE {} (id int PRIMARY KEY, {} int, {} text)").format(
            sql.Identifier("public", name),
            sql.Identifier(f"a{name}"),
            sql.Identifier(f"s{name}"),
        )
    )
    patients.execute(
        sql.SQL(
            "INSERT INTO {} SELECT i, i % 20, 'v' || i % 4 FROM generate_series(1, 80) i"
        ).format(sql.Identifier("public", name))
    )
    columns = (
        dbanon.ColumnRule("id", dbanon.Role.IDENTIFIER),
        dbanon.ColumnRule(f"a{name}", dbanon.Role.QUASI),
        dbanon.ColumnRule(f"s{name}", dbanon.Role.SENSITIVE),
    )
    models = (dbanon.ModelSpec("k-anonymity", {"k": 4}),)
    policy = dbanon.Policy(table, columns, models, algorithm="mondrian")
    dbanon.set_policy(table, policy, settings=patients.settings)
    release = dbanon.publish(table, settings=patients.settings)
    found = json.loads(run("attack", str(release.relation), "--json").out)
    assert 80 == named(found)["skewness", f"s{name}"]["tried"]
    assert "skewness" in run("attack", str(release.relation)).out


@pytest.mark.exhaustive
def test_the_persons_of_a_dataset_are_attacked(database, tmp_path, run, monkeypatch):
    monkeypatch.setenv("DBANON_DSN", database.dsn)
    dbanon.publish_dataset(make_clinic(database, tmp_path), k=3, settings=database.settings)
    document = json.loads(run("attack", "anon.persons", "--json").out)
    assert CONFIDENTIAL == document["confidential"]
    assert run("attack", "anon.persons").out.startswith(f"{CONFIDENTIAL}\n")
    found = named(document)
    one = found["re-identification, prosecutor", None]
    assert 0 < one["rate"] <= one["expected"] == pytest.approx(1 / 3)
    for other in ("encounters", "conditions"):
        told = run("attack", f"anon.{other}", code=1).err
        assert "with the quasi-identifiers of public.persons" in told
    told = run("report", "anon.persons", code=1).err
    assert "together with public.encounters and public.conditions, in which its persons" in told
    assert "try: dbanon report --dataset FILE" in told


def test_anatomy_is_refused(patients, run):
    policy = patients_policy(dbanon.TableName("public", "patients"), k=None, anatomy=True)
    policy = replace(policy, name="buckets", algorithm="auto")
    dbanon.set_policy("patients", policy, settings=patients.settings)
    asked = {"new_series": True, "recipients_changed": True, "settings": patients.settings}
    dbanon.publish("patients", policy="buckets", **asked)
    assert "by anatomy" in run("attack", "anon.patients_buckets", code=1).err
