"""What `refresh --if-changed` leaves alone: rows that were compared before, newcomers included."""

import pytest
from selection import exhaustive_after
from tables import make_patients, patients_policy

import dbanon


def publish_most(database):
    table = make_patients(database, rows=43)
    database.execute("CREATE TABLE public.others AS SELECT * FROM public.patients WHERE id >= 40")
    database.execute("DELETE FROM public.patients WHERE id >= 40")
    dbanon.set_policy(table, patients_policy(table, k=4, l=2), settings=database.settings)
    dbanon.publish(table, settings=database.settings)


@pytest.fixture
def patients(copied):
    """Return a table of 40 people who are published, and 3 more who are not in it yet."""
    return copied(publish_most)


def arrive(database, number):
    database.execute(
        "INSERT INTO public.patients SELECT * FROM public.others WHERE id = %s", (number,)
    )


def growth(database, **options):
    """Refresh if something changed; return what was found, None if nothing was looked for."""
    (found,) = dbanon.refresh("patients", if_changed=True, settings=database.settings, **options)
    assert not found.changed
    return found.growth


@pytest.mark.exhaustive
def test_newcomers_who_wait_are_compared_once(patients):
    assert growth(patients) is None
    arrive(patients, 40)
    assert [1, None, None] == [getattr(growth(patients), "waiting", None) for _ in range(3)]
    arrive(patients, 41)
    assert [2, None] == [getattr(growth(patients), "waiting", None) for _ in range(2)]


@pytest.mark.exhaustive
def test_who_is_gone_and_shown_is_compared_once(patients):
    patients.execute("DELETE FROM public.patients WHERE id = 7")
    assert 1 == growth(patients).deferred
    assert growth(patients) is None


OPENED = (
    "ALTER TABLE dbanon_data.release_1 DISABLE TRIGGER ALL",
    "CREATE OR REPLACE VIEW anon.patients WITH (security_barrier) AS TABLE dbanon_data.release_1",
    "DROP VIEW anon.patients",
)


@pytest.mark.parametrize("opened", exhaustive_after(1, OPENED))
def test_a_release_that_was_opened_or_dropped_is_published_again(patients, opened):
    patients.execute(opened)
    (found,) = dbanon.refresh("patients", if_changed=True, settings=patients.settings)
    assert found.changed
    assert [(40,)] == patients.execute("SELECT count(*) FROM anon.patients")
    assert growth(patients) is None


@pytest.mark.exhaustive
def test_a_live_view_that_shows_something_else_is_published_again(patients):
    dbanon.publish("patients", kind="view", new_series=True, settings=patients.settings)
    assert growth(patients) is None
    shown = "NULL::int4range AS age, sex, NULL::daterange AS born, NULL::numrange AS weight"
    where = "FROM patients WHERE id IN (SELECT k1 FROM dbanon_data.rows_2)"
    for change in (
        f"CREATE OR REPLACE VIEW anon.patients AS SELECT {shown}, disease, note {where}",
        "ALTER VIEW anon.patients RESET (security_barrier)",
        "DROP VIEW anon.patients",
    ):
        patients.execute(change)
        (found,) = dbanon.refresh("patients", if_changed=True, settings=patients.settings)
        assert found.changed, change
        assert dbanon.check("anon.patients", settings=patients.settings).passed
        assert growth(patients) is None


@pytest.mark.exhaustive
def test_what_is_only_tried_leaves_no_trace(patients):
    arrive(patients, 40)
    assert 1 == growth(patients, dry_run=True).waiting
    assert 1 == growth(patients).waiting


@pytest.mark.exhaustive
def test_who_waits_is_grouped_anew_with_all_others_when_that_is_asked(patients):
    arrive(patients, 40)
    assert 1 == growth(patients).waiting
    (anew,) = dbanon.refresh(
        "patients",
        if_changed=True,
        new_series=True,
        recipients_changed=True,
        settings=patients.settings,
    )
    assert anew.changed


@pytest.mark.exhaustive
def test_what_a_refresh_left_waiting_is_compared_once(patients):
    patients.execute(
        "DELETE FROM public.patients WHERE id = 7;"
        "INSERT INTO public.patients"
        " SELECT id + 100, age, sex, born, weight, disease, note FROM public.patients"
    )
    (grown,) = dbanon.refresh("patients", settings=patients.settings)
    assert (True, 1) == (grown.changed, grown.growth.deferred)
    assert growth(patients) is None
