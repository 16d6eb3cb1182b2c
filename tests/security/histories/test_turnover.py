"""Persons whose keys were made anew are not taken for others."""

import pytest
from tables import make_patients, patients_policy

import dbanon
from dbanon.domain.policy import Comparison, Condition
from dbanon.domain.release import CheckFailed

ANEW = "UPDATE public.patients SET id = id + 100000"
MESSAGE = r"of the 60 persons of release 1, \d+ are found in public.patients by id, and"


@pytest.fixture
def patients(database):
    table = make_patients(database, rows=60)
    policy = patients_policy(table, algorithm="mondrian")
    dbanon.set_policy(table, policy, settings=database.settings)
    dbanon.publish(table, settings=database.settings)
    return database


def refresh(database, **options):
    return lambda: dbanon.refresh("patients", settings=database.settings, **options)


def publish(database, **options):
    return lambda: dbanon.publish("patients", settings=database.settings, **options)


def test_keys_that_are_made_anew_are_refused_by_refresh_and_publish(patients):
    patients.execute(ANEW)
    for attempt in (
        refresh(patients),
        publish(patients),
        publish(patients, name="second"),
        publish(patients, name="second", new_series=True),
    ):
        with pytest.raises(CheckFailed, match=MESSAGE) as failed:
            attempt()
        assert "--new-series --recipients-changed" in failed.value.hint
    assert [(1,)] == patients.execute("SELECT count(*) FROM dbanon.release")
    refresh(patients, new_series=True, recipients_changed=True)()


@pytest.mark.exhaustive
def test_a_table_that_grows_or_shrinks_is_refreshed(patients):
    patients.execute(
        "INSERT INTO public.patients SELECT id + 1000, age + 3, sex, born, weight, disease, note"
        " FROM public.patients; DELETE FROM public.patients WHERE id < 20"
    )
    (found,) = refresh(patients)()
    assert found.growth.inserted > 0
    patients.execute("DELETE FROM public.patients WHERE id < 1000")
    assert refresh(patients)()


def test_persons_whom_a_policy_leaves_out_are_found_in_the_table(patients):
    patients.execute(
        "INSERT INTO public.patients SELECT id + 1000, age + 3, sex, born, weight, disease, note"
        " FROM public.patients"
    )
    table = dbanon.TableName("public", "patients")
    condition = Condition("id", Comparison.AT_LEAST, 1000)
    other = patients_policy(table, name="others", where=(condition,))
    dbanon.set_policy(table, other, settings=patients.settings)
    found = publish(patients, policy="others")()
    assert (0, True) == (found.sharing.kept, found.sharing.inserted > 0)
