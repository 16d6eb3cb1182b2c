"""A plan knows before any row is read whether classes are new, reused or extended."""

from dataclasses import FrozenInstanceError, replace

import pytest
from tables import patients_policy, publish_patients

import dbanon
from dbanon.actions import publish, refresh
from dbanon.domain.table import TableName
from dbanon.formats.support import Mode

TABLE = TableName("public", "patients")


@pytest.fixture
def plans(database, monkeypatch):
    """Return the plans of published patients, whom a reader may have seen, in order."""
    found, original = [], publish.carry_out

    def carry_out(session, plan, stages):
        found.append(plan)
        return original(session, plan, stages)

    for module in (publish, refresh):
        monkeypatch.setattr(module, "carry_out", carry_out)
    publish_patients(database)
    database.execute("GRANT SELECT ON anon.patients TO public")
    return found


def test_rows_of_a_first_release_form_new_classes(plans):
    assert (None, {}, ()) == (plans[0].mode, plans[0].obstacles, plans[0].present)


@pytest.mark.exhaustive
def test_a_second_publication_reuses_classes_and_a_refresh_extends_them(plans, database):
    dbanon.publish(TABLE, settings=database.settings)
    database.execute("DELETE FROM public.patients WHERE id < 9")
    (found,) = dbanon.refresh(TABLE, settings=database.settings)
    assert [None, Mode.REUSE, Mode.REFRESH] == [plan.mode for plan in plans]
    assert (2, None) == (plans[-1].present[0].id, found.regrouped)
    assert found.growth is not None


@pytest.mark.exhaustive
def test_a_refresh_by_another_policy_names_the_obstacle_and_reuses_classes(plans, database):
    policy = patients_policy(TABLE, k=4)
    dbanon.set_policy(TABLE, policy, settings=database.settings)
    (found,) = dbanon.refresh(TABLE, settings=database.settings)
    reason = "the policy has changed"
    assert (Mode.REUSE, {Mode.REFRESH: reason}) == (plans[-1].mode, plans[-1].obstacles)
    assert (True, None) == (found.changed, found.regrouped)
    assert found.release.sharing is not None


@pytest.mark.exhaustive
def test_a_new_series_has_new_classes_without_an_obstacle(plans, database):
    options = {"new_series": True, "recipients_changed": True}
    dbanon.publish(TABLE, name="others", settings=database.settings, **options)
    assert (None, {}) == (plans[-1].mode, plans[-1].obstacles)


@pytest.mark.exhaustive
def test_where_classes_can_neither_stay_nor_be_reused_both_reasons_are_known(plans, database):
    policy = replace(patients_policy(TABLE, k=None, l=2), anatomy=True, algorithm="auto")
    dbanon.set_policy(TABLE, policy, settings=database.settings)
    with pytest.raises(dbanon.CheckFailed, match="from scratch, as its buckets are dealt"):
        dbanon.refresh(TABLE, settings=database.settings)
    assert (None, [Mode.REFRESH, Mode.REUSE]) == (plans[-1].mode, [*plans[-1].obstacles])


@pytest.mark.exhaustive
def test_no_callee_changes_a_plan(plans):
    with pytest.raises(FrozenInstanceError):
        plans[0].mode = Mode.REUSE
