"""What is remembered of releases that serve nobody is deleted, and nothing goes on as before."""

import pytest
from tables import make_patients, patients_policy

import dbanon
from dbanon.domain.errors import ConfigError, NotPermitted
from dbanon.settings import Settings

TABLES = (
    "history_key",
    "history_member",
    "history_class",
    "history_figures",
    "history_value",
    "history_leaver",
)


def publish_and_refresh(database):
    """Make a table with two releases, of whose people one has left and others have come."""
    table = make_patients(database, rows=120)
    policy = patients_policy(table, k=4, l=2)
    dbanon.set_policy(table, policy, settings=database.settings)
    publish(database)
    database.execute(
        "DELETE FROM public.patients WHERE id = 17;"
        "INSERT INTO public.patients"
        " SELECT id + 1000, age, sex, born, weight, disease, note FROM public.patients"
    )
    dbanon.refresh("patients", settings=database.settings)


@pytest.fixture
def patients(copied):
    return copied(publish_and_refresh)


def publish(database, **options):
    return dbanon.publish("patients", settings=database.settings, **options)


def forget(database, number=1):
    return dbanon.forget_series(number, settings=database.settings)


def sizes(database):
    return {
        table: database.execute(f"SELECT count(*) FROM dbanon.{table}")[0][0] for table in TABLES
    }


@pytest.mark.exhaustive
def test_nothing_is_left_of_a_series_that_is_forgotten(patients):
    dbanon.drop_release(2, settings=patients.settings)
    assert sizes(patients)["history_member"] == 2
    found = forget(patients)
    assert ("public.patients", (1, 2)) == (str(found.table), found.releases)
    assert dict.fromkeys(TABLES, 0) == sizes(patients)
    assert [(2,)] == patients.execute("SELECT count(*) FROM dbanon.release")
    (left,) = dbanon.history("patients", settings=patients.settings).compositions
    assert ((), (1, 2)) == (left.releases, left.unknown)


def test_a_series_that_is_served_is_not_forgotten(patients):
    before = sizes(patients)
    with pytest.raises(ConfigError, match=r"anon\.patients serves release 2 of that series"):
        forget(patients)
    publish(patients, name="other", k=8)
    dbanon.drop_release(2, settings=patients.settings)
    with pytest.raises(ConfigError, match=r"anon\.other serves release 3 of that series"):
        forget(patients, 2)
    assert sizes(patients)["history_member"] == before["history_member"] + 1


def test_whoever_kept_a_forgotten_release_is_given_no_other_to_compare_it_with(patients):
    dbanon.drop_release(2, settings=patients.settings)
    forget(patients)
    for options in ({}, {"name": "second"}, {"series": "anon.patients"}):
        with pytest.raises(ConfigError, match="was deleted, so nothing can be compared") as error:
            publish(patients, **options)
        assert "--new-series --recipients-changed" in error.value.hint
    assert [(2,)] == patients.execute("SELECT count(*) FROM dbanon.release")
    fresh = publish(patients, new_series=True, recipients_changed=True)
    assert (1, 2) == fresh.composition.unknown
    patients.execute("DELETE FROM public.patients WHERE id < 3")
    (again,) = dbanon.refresh("patients", settings=patients.settings)
    assert (None, 3) == (again.regrouped, again.growth.deferred)
    (found,) = dbanon.check_history("anon.patients", settings=patients.settings)
    assert ((fresh.id,), ()) == (found.releases, found.unknown)


def test_another_series_of_the_table_is_remembered_as_it_was(patients):
    dbanon.drop_release(2, settings=patients.settings)
    other = publish(patients, name="other", new_series=True, recipients_changed=True)
    forget(patients)
    left = sizes(patients)
    assert (1, 1) == (left["history_key"], left["history_member"])
    patients.execute("DELETE FROM public.patients WHERE id < 3")
    (again,) = dbanon.refresh("patients", settings=patients.settings)
    assert (None, 3) == (again.regrouped, again.growth.deferred)
    (found,) = dbanon.check_history("anon.other", settings=patients.settings)
    assert found.holds
    with pytest.raises(ConfigError, match=f"serves release {other.id} of that series"):
        forget(patients, other.id)


def test_a_series_is_forgotten_once_and_one_that_is_unknown_never(patients):
    dbanon.drop_release(2, settings=patients.settings)
    forget(patients, 2)
    with pytest.raises(ConfigError, match="release 1 was forgotten before"):
        forget(patients, 1)
    with pytest.raises(ConfigError, match="release 9 does not exist"):
        forget(patients, 9)


def test_a_table_that_is_gone_is_forgotten(patients):
    dbanon.drop_release(2, settings=patients.settings)
    patients.execute("DROP TABLE public.patients")
    assert (1, 2) == forget(patients).releases


def test_the_role_that_publishes_forgets_nothing(patients):
    dbanon.drop_release(2, settings=patients.settings)
    before = sizes(patients)
    publisher = patients.role("publisher")
    patients.execute(
        f"GRANT USAGE ON SCHEMA dbanon TO {publisher};"
        f"GRANT SELECT ON ALL TABLES IN SCHEMA dbanon TO {publisher};"
        f"GRANT INSERT ON ALL TABLES IN SCHEMA dbanon TO {publisher};"
        f"GRANT UPDATE ON dbanon.publishing TO {publisher};"
        f"GRANT SELECT ON public.patients TO {publisher}"
    )
    with pytest.raises(NotPermitted) as refused:
        dbanon.forget_series(1, settings=Settings(dsn=patients.dsn_as(publisher)))
    assert "GRANT" not in refused.value.hint
    assert "owner of the schema dbanon" in refused.value.hint
    assert before == sizes(patients)
