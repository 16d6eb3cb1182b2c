"""Deleted rows that are published are counted, with their deadline."""

import pytest
from tables import make_patients, patients_policy

import dbanon


@pytest.fixture
def patients(database):
    """Return a table that is published, of whom two have left since."""
    table = make_patients(database, rows=120)
    policy = patients_policy(table, k=4, l=2, erase_within="30d")
    dbanon.set_policy(table, policy, settings=database.settings)
    dbanon.publish(table, settings=database.settings)
    database.execute("DELETE FROM public.patients WHERE id IN (17, 18)")
    dbanon.refresh("patients", settings=database.settings)
    return database


def code_of_doctor(database):
    found = dbanon.doctor(settings=database.settings)
    return max(one.exit_code for one in found if one.subject == "anon.patients")


def test_what_is_due_and_overdue_is_reported(patients, run):
    def told():
        return " ".join(run("history", "patients").out.split())

    (shown,) = dbanon.history("patients", settings=patients.settings).retained
    assert (2, 0, 30) == (shown.rows, shown.overdue, (shown.due - shown.since).days)
    text = f"missing since {shown.since:%Y-%m-%d} and due on {shown.due:%Y-%m-%d}"
    assert f"2 rows of deleted persons are published, the first {text}" in told()
    until = f"2 published although deleted, the first of them until {shown.due:%Y-%m-%d}"
    assert until in run("plan", "patients", "--refresh").out
    assert 0 == code_of_doctor(patients)
    patients.execute("UPDATE dbanon.history_leaver SET missed_at = missed_at - interval '31 days'")
    assert "; 2 are overdue" in told()
    assert 1 == code_of_doctor(patients)
    assert "2 of these overdue" in run("plan", "patients", "--refresh").out
    dbanon.refresh("patients", settings=patients.settings)
    assert "rows of deleted persons" not in told()
    assert 0 == code_of_doctor(patients)
