"""Which sensitive values are remembered of a table: those that were published, each once."""

from dataclasses import replace

import pytest
from tables import make_patients, patients_policy

import dbanon


@pytest.fixture
def patients(database):
    """Return a table of patients, one of whom can be in no class."""
    table = make_patients(database)
    database.execute("UPDATE public.patients SET sex = 'X', disease = 'plague' WHERE id = 17")
    policy = patients_policy(table, max_suppressed=0.5)
    rules = tuple(replace(rule, keep=rule.column == "sex") for rule in policy.columns)
    dbanon.set_policy(table, replace(policy, columns=rules), settings=database.settings)
    return database


def remembered(database):
    """Return the diseases that are remembered."""
    return {
        row[0] for row in database.execute("SELECT value ->> 'disease' FROM dbanon.history_value")
    }


def test_no_value_of_a_row_that_is_left_out_is_remembered(patients):
    release = dbanon.publish("patients", settings=patients.settings)
    published = {row[0] for row in patients.execute("SELECT disease FROM anon.patients")}
    assert release.loss.n_suppressed > 0
    assert "plague" not in published
    assert published == remembered(patients)


@pytest.mark.exhaustive
def test_a_value_that_is_published_again_takes_no_other_number(patients):
    for _ in range(3):
        dbanon.publish("patients", settings=patients.settings)
    patients.execute("UPDATE public.patients SET disease = 'measles' WHERE id < 15")
    patients.execute("DELETE FROM dbanon.history")  # else it is refused: values changed
    dbanon.publish("patients", settings=patients.settings)
    sequence = "pg_get_serial_sequence('dbanon.history_value', 'value_id')::regclass"
    ((numbers, values),) = patients.execute(
        f"SELECT pg_sequence_last_value({sequence}), (SELECT count(*) FROM dbanon.history_value)"
    )
    assert numbers == values
