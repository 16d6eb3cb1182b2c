"""Attacks by whoever knows whose value changed between two views of the same persons."""

from collections import Counter
from dataclasses import replace

import pytest
from selection import exhaustive_after
from tables import make_patients, patients_policy

import dbanon
from dbanon.domain.errors import DbanonError
from dbanon.domain.policy import Role


def prepare(database, **changes):
    """Make patients with a policy that asks for k alone."""
    table = make_patients(database, rows=120)
    if changes:
        database.execute("ALTER TABLE public.patients ALTER id TYPE numeric")
    policy = patients_policy(table, k=5, l=None, algorithm="mondrian", **changes)
    rules = tuple(
        replace(rule, role=Role.IDENTIFIER, allow=()) if rule.column == "note" else rule
        for rule in policy.columns
    )
    dbanon.set_policy(table, replace(policy, columns=rules), settings=database.settings)


def publish(database, **options):
    return dbanon.publish("patients", settings=database.settings, **options)


def rows(database, relation):
    """Return the rows of each class and disease of a relation."""
    return Counter(
        database.execute(
            f"SELECT age::text, sex::text, born::text, weight::text, disease FROM anon.{relation}"
        )
    )


@pytest.mark.parametrize(
    ("changes", "options"),
    exhaustive_after(
        1,
        [
            ({}, {"new_series": True}),  # while something is served, it starts none
            ({"subject": "id"}, {}),
            ({"subject": "id", "rows_per_subject": 1}, {}),
        ],
    ),
    ids=["new-series", "number-as-subject", "rows-per-subject"],
)
def test_a_value_that_changed_between_two_relations_names_nobody(database, changes, options):
    prepare(database, **changes)
    publish(database)
    database.execute("UPDATE public.patients SET disease = 'plague' WHERE id = 17")
    try:
        second = publish(database, name="second", **options)
    except DbanonError:
        return
    found = rows(database, "second") - rows(database, "patients")
    assert not found or second.composition.warnings  # one row, of the one whose value changed
