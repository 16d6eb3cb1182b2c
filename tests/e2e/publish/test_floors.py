"""Floors of quasi-identifiers, as PostgreSQL holds what is published."""

import pytest
from tables import make_patients, rows_proved

import dbanon
from dbanon import ColumnRule, ModelSpec, Policy, Role


def policy_of(table, *, k=3, **changes):
    rules = {
        "age": {"bands": 10, "top": 80, "bottom": 20},
        "sex": {},
        "born": {"at_least": "decade"},
        "weight": {"bands": 2.5, "recoding": "interval-text"},
    }
    rules |= changes
    return Policy(
        table,
        (
            ColumnRule("id", Role.IDENTIFIER),
            *(ColumnRule(name, Role.QUASI, **rule) for name, rule in rules.items()),
            ColumnRule("disease", Role.INSENSITIVE),
            ColumnRule("note", Role.IDENTIFIER),
        ),
        (ModelSpec("k-anonymity", {"k": k}),),
        algorithm="mondrian",
    )


@pytest.fixture
def patients(database):
    table = make_patients(database, rows=300)
    dbanon.set_policy(table, policy_of(table), settings=database.settings)
    return database


@pytest.mark.parametrize("kind", ["table", "view"])
def test_published_ranges_are_whole_cells(patients, kind):
    release = dbanon.publish("patients", kind=kind, settings=patients.settings)
    (row,) = patients.execute(
        """
        SELECT count(*),
               count(*) FILTER (WHERE (lower(age) % 10 = 0 OR lower_inf(age))
                                  AND (upper(age) % 10 = 0 OR upper_inf(age))),
               bool_or(lower_inf(age)), bool_or(upper_inf(age)),
               max(lower(age)) <= 80 AND min(upper(age)) >= 20,
               count(*) FILTER (WHERE to_char(lower(born), 'YYYY-MM-DD') LIKE '___0-01-01'
                                  AND to_char(upper(born), 'YYYY-MM-DD') LIKE '___0-01-01'),
               count(*) FILTER (WHERE weight IS NULL OR weight = '*'
                                   OR weight ~ '^\\[[0-9]+([.]5)?, [0-9]+([.]5)?\\)$')
          FROM anon.patients
        """
    )
    assert (300, 300, True, True, True, 300, 300) == row
    if kind == "table":
        assert rows_proved(release) == 300


def test_a_refresh_sees_that_a_floor_changed(patients):
    dbanon.publish("patients", settings=patients.settings)
    (same,) = dbanon.refresh("patients", if_changed=True, settings=patients.settings)
    assert not same.changed
    policy = dbanon.load_policy("patients", settings=patients.settings)
    assert policy == policy_of(policy.table)
    finer = policy_of(policy.table, born={"at_least": "year"})
    dbanon.set_policy("patients", finer, settings=patients.settings)
    (other,) = dbanon.refresh("patients", if_changed=True, settings=patients.settings)
    assert other.changed


def test_a_live_view_hides_a_row_that_leaves_its_cell(patients):
    dbanon.publish("patients", kind="view", settings=patients.settings)
    patients.execute("UPDATE public.patients SET age = age + 40 WHERE id = 7")
    ((shown,),) = patients.execute("SELECT count(*) FROM anon.patients")
    assert shown < 300


@pytest.mark.parametrize("kind", ["table", "view"])
def test_a_kept_column_is_published_as_it_is(patients, kind):
    policy = dbanon.load_policy("patients", settings=patients.settings)
    kept = policy_of(policy.table, sex={"keep": True}, age={"keep": True})
    dbanon.set_policy("patients", kept, settings=patients.settings)
    with pytest.raises(dbanon.Unsatisfiable, match="rows have values of age, sex that too few"):
        dbanon.publish("patients", kind=kind, settings=patients.settings)
    dbanon.publish("patients", kind=kind, max_suppressed=0.9, settings=patients.settings)
    (row,) = patients.execute(
        """
        SELECT pg_typeof(max(age))::text, count(*) > 30, min(n) >= 3,
               count(*) FILTER (WHERE n > same)
          FROM (SELECT age, sex, count(*) OVER (PARTITION BY age, sex, born, weight) AS n,
                       (SELECT count(*) FROM public.patients AS p
                         WHERE (p.age, p.sex) = (s.age, s.sex)) AS same
                  FROM anon.patients AS s) AS found
        """
    )
    assert ("integer", True, True, 0) == row


def test_rare_values_are_left_out_within_the_budget(patients):
    policy = dbanon.load_policy("patients", settings=patients.settings)
    spent = []
    for rule in ({}, {"rare": "suppress"}):
        changed = policy_of(policy.table, k=10, age={}, born=rule)
        dbanon.set_policy("patients", changed, settings=patients.settings)
        release = dbanon.publish("patients", max_suppressed=0.1, settings=patients.settings)
        assert release.loss.n_suppressed == 300 - rows_proved(release)
        spent.append(release.loss.n_suppressed)
    assert spent[0] < 10 < spent[1] <= 30
