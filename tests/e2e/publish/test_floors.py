"""Floors of quasi-identifiers, as PostgreSQL holds what is published."""

import re
import sys
from functools import partial

import pytest
from tables import make_patients, rows_proved

import dbanon
from dbanon import ColumnRule, ModelSpec, Policy, Role
from dbanon.cli import main


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


def define_patients(database):
    table = make_patients(database, rows=300)
    dbanon.set_policy(table, policy_of(table), settings=database.settings)


@pytest.fixture
def patients(copied):
    return copied(define_patients)


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


@pytest.mark.exhaustive
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


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", ["table", "view"])
def test_a_kept_column_is_published_as_it_is(patients, kind):
    policy = dbanon.load_policy("patients", settings=patients.settings)
    kept = policy_of(policy.table, sex={"keep": True}, age={"keep": True})
    dbanon.set_policy("patients", kept, settings=patients.settings)
    with pytest.raises(dbanon.Unsatisfiable, match="rows cannot keep their values of age, sex"):
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


@pytest.mark.exhaustive
def test_rare_values_are_left_out_within_the_budget(patients):
    policy = dbanon.load_policy("patients", settings=patients.settings)
    spent = []
    for rule in ({}, {"rare": "suppress"}):
        changed = policy_of(policy.table, k=10, age={}, born=rule)
        dbanon.set_policy("patients", changed, settings=patients.settings)
        others = {"new_series": True, "recipients_changed": True}
        release = dbanon.publish(
            "patients", max_suppressed=0.1, settings=patients.settings, **others
        )
        assert release.loss.n_suppressed == 300 - rows_proved(release)
        spent.append(release.loss.n_suppressed)
    assert spent[0] < 10 < spent[1] <= 30


def test_labels_are_levels_of_the_taxonomy_at_or_above_the_floor(patients):
    settings = patients.settings
    dbanon.derive_taxonomy("births", "born", table="patients", kind="dates", settings=settings)
    policy = dbanon.load_policy("patients", settings=settings)
    by_year = policy_of(policy.table, born={"taxonomy": "births", "at_least": 3})
    dbanon.set_policy("patients", by_year, settings=settings)
    release = dbanon.publish("patients", settings=settings)
    assert rows_proved(release) == 300
    labels = {label for (label,) in patients.execute("SELECT DISTINCT born FROM anon.patients")}
    assert all(re.fullmatch(r"\d{4}|\d{3}0-\d{3}9|\*", label) for label in labels)
    nothing = policy_of(policy.table, born={"taxonomy": "births", "at_least": 5})
    for use in (
        partial(dbanon.set_policy, "patients", nothing),
        partial(dbanon.plan, "patients", draft=nothing),
    ):
        with pytest.raises(dbanon.PolicyError, match="levels from 1 to 4 above the leaves"):
            use(settings=settings)
    assert by_year == dbanon.load_policy("patients", settings=settings)


def test_policy_show_says_what_is_the_finest(patients, monkeypatch, capsys):
    policy = dbanon.load_policy("patients", settings=patients.settings)
    changed = policy_of(
        policy.table, sex={"keep": True}, weight={"top": 82.5, "rare": "suppress", "bands": 2.5}
    )
    dbanon.set_policy("patients", changed, settings=patients.settings)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(
        sys, "argv", ["dbanon", "policy", "show", "patients", "--dsn", patients.dsn]
    )
    with pytest.raises(SystemExit) as ended:
        main()
    shown = capsys.readouterr().out
    assert ended.value.code == 0
    for text in (
        "at_least = decade",
        "bands = 10, top = 80, bottom = 20",
        "keep",
        "bands = 2.5, top = 82.5, rare = suppress",
    ):
        assert text in shown
