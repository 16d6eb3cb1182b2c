"""Only rows that meet the conditions of a policy are read, counted and published."""

from dataclasses import replace

import pytest
from tables import make_patients, patients_policy, rows_proved

import dbanon
from dbanon.domain.policy import Comparison, Condition

SOURCE = "public.patients"
HOSTILE = "x' OR true; DROP TABLE public.patients; --"


def define_patients(database):
    table = make_patients(database)
    database.execute(
        "ALTER TABLE public.patients ADD ward text, ADD seen timestamptz, ADD alive boolean,"
        " ADD share real, ADD cost numeric"
    )
    database.execute(
        "UPDATE public.patients SET ward = CASE id % 4 WHEN 0 THEN 'A' WHEN 1 THEN 'b' WHEN 2"
        " THEN E'it''s \\\\ %s' END, seen = '2020-01-01 00:00Z'::timestamptz + id * interval '1 h',"
        " alive = id % 2 = 0, share = 0.1 * (id % 5), cost = id * 1.5"
    )
    dbanon.set_policy(table, patients_policy(table, rest="drop"), settings=database.settings)


@pytest.fixture
def patients(copied):
    return copied(define_patients)


def published(database, *conditions):
    """Publish the rows that meet the conditions; return the release."""
    policy = dbanon.load_policy(SOURCE, settings=database.settings)
    policy = replace(policy, where=conditions)
    assert policy == dbanon.set_policy(SOURCE, policy, settings=database.settings)
    assert policy == dbanon.load_policy(SOURCE, settings=database.settings)
    return dbanon.publish(SOURCE, settings=database.settings)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ([("age", ">=", 40), ("age", "<", 60)], "age >= 40 AND age < 60"),
        ([("age", "between", (30, 69.5))], "age BETWEEN 30 AND 69"),
        ([("ward", "=", "it's \\ %s")], "id % 4 = 2"),
        ([("ward", "in", ("A", "b"))], "id % 4 < 2"),
        ([("ward", "<>", "A")], "id % 4 IN (1, 2)"),
        ([("ward", "is null", None)], "id % 4 = 3"),
        ([("ward", "is not null", None), ("alive", "=", False)], "id % 4 = 1"),
        ([("seen", "<", "2020-01-05T01:00:00+01:00")], "id < 96"),
        ([("born", ">=", "1960-01-01")], "born >= '1960-01-01'"),
        ([("share", "in", (0.1, 0.4))], "id % 5 IN (1, 4)"),
        ([("cost", "<=", 150), ("id", "<>", 3)], "id <= 100 AND id <> 3"),
    ],
)
def test_rows_that_meet_every_condition_are_published_and_no_other(patients, conditions, expected):
    asked = [Condition(column, Comparison(word), value) for column, word, value in conditions]
    release = published(patients, *asked)
    ((n,),) = patients.execute(f"SELECT count(*) FROM public.patients WHERE {expected}")
    assert 0 < n < 200
    assert (n, 200 - n) == (release.loss.n_rows, release.loss.n_filtered)
    assert n == rows_proved(release)
    left = patients.execute(
        f"SELECT note FROM public.patients WHERE {expected} EXCEPT SELECT note FROM anon.patients"
    )
    more = patients.execute(
        f"SELECT note FROM anon.patients EXCEPT SELECT note FROM public.patients WHERE {expected}"
    )
    assert ([], []) == (left, more)


@pytest.mark.exhaustive
def test_a_value_is_a_value_whatever_it_looks_like(patients):
    with pytest.raises(dbanon.Unsatisfiable):
        published(patients, Condition("ward", Comparison.EQUAL, HOSTILE))
    release = published(patients, Condition("ward", Comparison.DIFFERENT, HOSTILE))
    assert 150 == release.loss.n_rows


@pytest.mark.exhaustive
def test_a_refresh_sees_who_comes_to_meet_a_condition_and_who_no_longer_does(patients):
    published(patients, Condition("ward", Comparison.IN, ("A", "b")))
    (same,) = dbanon.refresh(SOURCE, if_changed=True, settings=patients.settings)
    assert not same.changed
    patients.execute("UPDATE public.patients SET ward = 'A' WHERE id = 2")
    patients.execute("UPDATE public.patients SET ward = NULL WHERE id = 4")
    others = {"new_series": True, "recipients_changed": True}
    options = {**others, "if_changed": True, "settings": patients.settings}
    (again,) = dbanon.refresh(SOURCE, **options)
    assert again.changed
    notes = {note for (note,) in patients.execute("SELECT note FROM anon.patients")}
    assert ("note 2" in notes, "note 4" in notes) == (True, False)


def test_a_live_view_refuses_conditions(patients):
    policy = dbanon.load_policy(SOURCE, settings=patients.settings)
    where = (Condition("age", Comparison.ABOVE, 20),)
    dbanon.set_policy(SOURCE, replace(policy, where=where), settings=patients.settings)
    with pytest.raises(dbanon.ConfigError, match="a live view cannot keep where"):
        dbanon.publish(SOURCE, kind="view", settings=patients.settings)


@pytest.mark.exhaustive
def test_persons_are_counted_among_the_rows_that_are_left(patients):
    patients.execute("ALTER TABLE public.patients ADD person int NOT NULL DEFAULT 0")
    patients.execute("UPDATE public.patients SET person = id / 2, sex = 'F', born = '2000-01-01'")
    patients.execute("UPDATE public.patients SET age = person % 60, weight = 70")
    policy = dbanon.load_policy(SOURCE, settings=patients.settings)
    where = (Condition("alive", Comparison.EQUAL, True),)  # noqa: FBT003 - one row of each person
    policy = replace(policy, subject="person", models=policy.models[:1], where=where)
    dbanon.set_policy(SOURCE, policy, settings=patients.settings)
    release = dbanon.publish(SOURCE, settings=patients.settings)
    assert (100, 100) == (release.loss.n_rows, release.loss.n_filtered)
    assert release.loss.smallest_class >= 5
