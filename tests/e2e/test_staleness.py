"""A refresh prints how much its result differs from the table, and from a new search."""

import json
from dataclasses import replace

import pytest
from tables import make_patients, patients_policy

import dbanon
from dbanon.domain.policy import Role
from dbanon.formats import policies
from dbanon.settings import Settings

COARSE = {"sex", "born", "weight"}


@pytest.fixture
def patients(database):
    """Patients who are published by four quasi-identifiers, of which a better policy needs one."""
    table = make_patients(database, rows=400)
    database.execute("DELETE FROM public.patients WHERE id >= 390")
    dbanon.set_policy(table, patients_policy(table), settings=database.settings)
    dbanon.publish(table, settings=database.settings)
    return database


def better(database):
    policy = dbanon.load_policy("patients", settings=database.settings)
    rules = [
        replace(rule, role=Role.IDENTIFIER if rule.column in COARSE else rule.role)
        for rule in policy.columns
    ]
    return replace(policy, columns=tuple(rules))


def change(database):
    database.execute("DELETE FROM public.patients WHERE id % 50 = 0")
    database.execute("UPDATE public.patients SET disease = 'flu' WHERE id % 50 = 1")


def test_a_refresh_prints_the_loss_of_a_new_search(patients, run):
    change(patients)
    printed = run("refresh", "patients").out
    assert "by a new search" in printed
    assert "new search would lose less" not in printed
    assert printed.count("\n") <= 4
    (found,) = json.loads(run("plan", "patients", "--refresh", "--json").out)
    assert 8 == found["growth"]["deferred"]
    assert 0 < found["growth"]["changed"] <= 8
    assert 0 == found["growth"]["waiting"]
    assert found["new_ncp"] <= found["release"]["loss"]["ncp"]
    assert found["advice"] is None


@pytest.mark.exhaustive
def test_a_better_policy_is_advised_to_start_a_series(patients, run):
    dbanon.set_policy("patients", better(patients), settings=patients.settings, warn=lambda _: None)
    printed = run("refresh", "patients").out
    assert "by a new search" in printed
    assert "dbanon publish public.patients --name NAME --new-series" in printed
    (found,) = dbanon.refresh("patients", settings=patients.settings)
    assert found.release.loss.ncp > 1.25 * found.new_ncp


@pytest.mark.exhaustive
def test_setting_a_policy_names_what_is_served_by_an_older_one(patients, run, tmp_path):
    same, other = tmp_path / "same.toml", tmp_path / "other.toml"
    same.write_text(run("policy", "export", "patients").out)
    other.write_text(policies.dump(better(patients)))
    assert "older policy" not in run("policy", "set", "--file", same).out
    told = "still served with classes of an older policy: anon.patients"
    assert told in run("policy", "set", "--file", other).out
    same.write_text(same.read_text().replace("algorithm", "pool_size = 100\nalgorithm"))
    assert "older policy" not in run("policy", "set", "--file", same).out


def limited(database, **changes):
    policy = replace(dbanon.load_policy("patients", settings=database.settings), **changes)
    dbanon.set_policy("patients", policy, settings=database.settings)


@pytest.mark.exhaustive
def test_classes_stay_if_warnings_are_acknowledged_or_a_budget_is_set(patients, run, tmp_path):
    policy = dbanon.load_policy("patients", settings=patients.settings)
    rules = tuple(
        replace(rule, allow=("near-unique: by hand",)) if rule.allow else rule
        for rule in policy.columns
    )
    assert rules != policy.columns
    same = tmp_path / "same.toml"
    same.write_text(policies.dump(replace(policy, columns=rules, allow=(), budget=2.0)))
    assert "older policy" not in run("policy", "set", "--file", same).out
    change(patients)
    (found,) = dbanon.refresh("patients", settings=patients.settings)
    assert (None, 8) == (found.regrouped, found.growth.deferred)


def test_rows_with_former_values_are_counted_by_column(patients, run):
    change(patients)
    (found,) = dbanon.refresh("patients", settings=patients.settings)
    growth = found.growth
    assert 0 < growth.changed <= 8
    assert {"disease": growth.changed / growth.shown} == growth.former
    assert f"(disease {growth.former['disease']:.1%})" in str(growth)
    told = f"of the rows show former values (disease {growth.former['disease']:.1%})"
    assert told in run("history", "patients").out
    assert f"disease: {growth.former['disease']:.1%} of" in run("describe", "anon.patients").out
    (chapter,) = dbanon.history("patients", settings=patients.settings).entries
    assert growth.former == chapter.growth.former
    patients.execute("UPDATE public.patients SET disease = NULL WHERE id % 10 = 3")
    (found,) = dbanon.refresh("patients", settings=patients.settings)
    (chapter,) = dbanon.history("patients", settings=patients.settings).entries
    assert growth.changed < chapter.growth.changed == found.growth.changed


@pytest.mark.exhaustive
def test_readers_are_not_told_of_former_values(patients):
    change(patients)
    dbanon.refresh("patients", settings=patients.settings)
    reader = patients.role("reader")
    dbanon.grant("anon.patients", [reader], settings=patients.settings)
    found = dbanon.describe("anon.patients", settings=Settings(dsn=patients.dsn_as(reader)))
    assert {} == found.former
    assert dbanon.describe("anon.patients", settings=patients.settings).former


def test_too_many_former_values_are_warned_of(patients, run):
    limited(patients, max_stale=0.05)
    change(patients)
    assert "max_stale" not in run("refresh", "patients").err
    patients.execute("UPDATE public.patients SET disease = 'ebola' WHERE id % 10 = 3")
    told = "of rows show former values; max_stale is 0.05"
    assert told in run("plan", "patients", "--refresh").err
    assert told in run("refresh", "patients", "--quiet").err
    assert told in run("refresh", "patients", "--if-changed").err
    (stale,) = [one for one in dbanon.doctor(settings=patients.settings) if one.level != "ok"]
    assert told in stale.message
    assert "--new-series --recipients-changed" in stale.hint
    limited(patients, max_stale=0.5)
    assert "max_stale" not in run("refresh", "patients").err


@pytest.mark.exhaustive
def test_reused_classes_are_as_stale(patients):
    change(patients)
    dbanon.set_policy("patients", better(patients), settings=patients.settings)
    release = dbanon.publish("patients", k=10, settings=patients.settings)
    assert release.sharing.frozen == release.growth.changed > 0


def test_independent_releases_are_grouped_from_scratch(patients, run):
    reader = patients.role("reader")
    dbanon.grant("anon.patients", [reader], settings=patients.settings)
    limited(patients, refresh="independent")
    change(patients)
    printed = run("refresh", "patients").out
    assert "no person may have two of them" in printed
    history = dbanon.history("patients", settings=patients.settings)
    assert [2, 0] == [one.series for one in history.entries]
    assert "no person may have two of them" in run("release", "show", 2).out
    assert "no person may have two of them" in run("report", "anon.patients").out
    (found,) = dbanon.refresh("patients", if_changed=True, settings=patients.settings)
    assert not found.changed
    limited(patients, refresh="compatible")
    patients.execute("DELETE FROM public.patients WHERE id % 50 = 2")
    (found,) = dbanon.refresh("patients", settings=patients.settings)
    assert found.growth is not None


def test_independent_relations_have_readers_of_their_own(patients):
    reader = patients.role("reader")
    dbanon.grant("anon.patients", [reader], settings=patients.settings)
    dbanon.publish("patients", name="others", grants=[reader], settings=patients.settings)
    limited(patients, refresh="independent")
    change(patients)
    with pytest.raises(dbanon.NotPermitted, match="another series"):
        dbanon.publish("patients", settings=patients.settings)


def test_a_policy_whose_pools_are_large_is_warned_of(patients, run, tmp_path):
    file = tmp_path / "policy.toml"
    file.write_text(run("policy", "export", "patients").out)
    assert "pools of" not in run("policy", "set", "--file", file).err
    patients.execute("DELETE FROM public.patients WHERE id >= 100")
    assert "pools of" in run("policy", "set", "--file", file).err
    patients.execute("UPDATE public.patients SET disease = 'flu' WHERE id > 1")
    patients.execute("UPDATE public.patients SET disease = NULL WHERE id < 2")
    assert "would publish no new persons" in run("policy", "set", "--file", file).err
    patients.execute("TRUNCATE public.patients")
    assert "" == run("policy", "set", "--file", file).err


@pytest.mark.exhaustive
def test_the_next_pool_and_a_deadline_are_planned(patients, run):
    limited(patients, erase_within="30d")
    patients.execute("DELETE FROM public.patients WHERE id = 5")
    patients.execute(
        "INSERT INTO public.patients SELECT id + 1000, age, sex, born, weight, disease, note"
        " FROM public.patients LIMIT 5"
    )
    patients.execute("UPDATE dbanon.release SET created_at = created_at - interval '10 days'")
    (found,) = dbanon.refresh("patients", dry_run=True, settings=patients.settings)
    growth = found.growth
    lacking = (growth.pool - 5) / 5
    assert pytest.approx(10 * lacking, rel=0.01) == growth.days
    assert 5 <= growth.bound < 50
    printed = run("plan", "patients", "--refresh").out
    assert f"pool 5 of {growth.pool}, in about {growth.days:.0f} days" in printed
    assert f"in classes of {growth.bound} rows" in printed
