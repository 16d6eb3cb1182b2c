"""A refresh prints how much its result differs from the table, and from a new search."""

import json
from dataclasses import replace

import pytest
from tables import make_patients, patients_policy

import dbanon
from dbanon.domain.policy import Role
from dbanon.formats import policies

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
    assert found["new_ncp"] < 1.25 * found["release"]["loss"]["ncp"]
    assert found["advice"] is None


def test_a_better_policy_is_advised_to_start_a_series(patients, run):
    dbanon.set_policy("patients", better(patients), settings=patients.settings, warn=lambda _: None)
    printed = run("refresh", "patients").out
    assert "by a new search" in printed
    assert "dbanon publish public.patients --name NAME --new-series" in printed
    (found,) = dbanon.refresh("patients", settings=patients.settings)
    assert found.release.loss.ncp > 1.25 * found.new_ncp


def test_setting_a_policy_names_what_is_served_by_an_older_one(patients, run, tmp_path):
    same, other = tmp_path / "same.toml", tmp_path / "other.toml"
    same.write_text(run("policy", "export", "patients").out)
    other.write_text(policies.dump(better(patients)))
    assert "older policy" not in run("policy", "set", "--file", same).out
    told = "still served with classes of an older policy: anon.patients"
    assert told in run("policy", "set", "--file", other).out
    same.write_text(same.read_text().replace("algorithm", "pool_size = 100\nalgorithm"))
    assert "older policy" not in run("policy", "set", "--file", same).out
