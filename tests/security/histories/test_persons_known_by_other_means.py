"""Attacks by whoever kept a release, where keys, names or roles of columns changed since."""

from dataclasses import replace

import pytest
from tables import make_patients, patients_policy

import dbanon
from dbanon.domain.errors import DbanonError
from dbanon.domain.policy import K_ANONYMITY, ColumnRule, ModelSpec, Policy, Role
from dbanon.domain.table import TableName

COLUMNS = ("id", "age", "sex", "born", "weight", "disease", "note")


@pytest.fixture
def patients(database):
    table = make_patients(database)
    policy = patients_policy(table, k=5, l=3, algorithm="mdav")
    rules = tuple(
        replace(rule, role=Role.IDENTIFIER, allow=()) if rule.column == "note" else rule
        for rule in policy.columns
    )
    dbanon.set_policy(table, replace(policy, columns=rules), settings=database.settings)
    return database


def publish(database, table="patients", **options):
    return dbanon.publish(table, settings=database.settings, **options)


def other_policy(database, name, *, quasi, sensitive):
    table = dbanon.load_policy("patients", settings=database.settings).table
    roles = dict.fromkeys(COLUMNS, Role.IDENTIFIER) | dict.fromkeys(quasi, Role.QUASI)
    roles |= dict.fromkeys(sensitive, Role.SENSITIVE)
    rules = tuple(ColumnRule(column, role) for column, role in roles.items())
    models = (ModelSpec(K_ANONYMITY, {"k": 5}),)
    policy = Policy(table, rules, models, algorithm="mdav", name=name)
    dbanon.set_policy(table, policy, settings=database.settings)
    return name


def test_a_table_that_was_renamed_is_the_same_table(patients):
    publish(patients)
    patients.execute("ALTER TABLE public.patients RENAME TO people")
    table = TableName("public", "people")
    policy = patients_policy(table, k=5, l=3, algorithm="mondrian")
    dbanon.set_policy(table, policy, settings=patients.settings)
    try:
        second = publish(patients, "people")
    except DbanonError:
        return
    assert second.warnings or second.composition.warnings or second.sharing is not None


@pytest.mark.exhaustive
def test_a_view_of_merged_classes_is_refreshed_when_all_of_an_atom_have_left(patients):
    publish(patients)
    publish(patients, name="larger", k=9)
    age, born = patients.execute(
        "SELECT age, born FROM anon.patients GROUP BY age, sex, born, weight LIMIT 1"
    )[0]
    patients.execute(
        "DELETE FROM public.patients WHERE age <@ %s::int4range AND born <@ %s::daterange",
        (age, born),
    )
    found = dbanon.refresh(all_tables=True, settings=patients.settings)
    assert [None, None] == [one.error for one in found]


@pytest.mark.exhaustive
def test_newcomers_are_as_many_together_as_any_release_of_the_series_promised(patients):
    publish(patients)
    larger = publish(patients, name="larger", k=10)
    dbanon.drop_release(larger.id, settings=patients.settings)
    patients.execute(
        "INSERT INTO public.patients"
        " SELECT 1000 + id, age, sex, born, weight, disease, note FROM public.patients"
        "  WHERE id < 60"
    )
    (found,) = dbanon.refresh("patients", settings=patients.settings)
    assert found.growth.inserted > 0
