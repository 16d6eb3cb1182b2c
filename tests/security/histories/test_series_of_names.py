"""Attacks by whoever is given releases of two series without anybody having said so."""

import pytest
from tables import make_patients, patients_policy

import dbanon
from dbanon.domain.errors import DbanonError, NotPermitted

OTHERS = {"new_series": True, "recipients_changed": True}


@pytest.fixture
def patients(database):
    table = make_patients(database)
    policy = patients_policy(table, k=5, l=3, algorithm="mdav")
    dbanon.set_policy(table, policy, settings=database.settings)
    return database


def publish(database, **options):
    return dbanon.publish("patients", settings=database.settings, **options)


@pytest.mark.exhaustive
def test_a_relation_of_a_new_name_is_not_of_a_series_that_was_made_for_others(patients):
    analyst, registry = patients.role("analyst"), patients.role("registry")
    first = publish(patients, grants=[analyst])  # the analyst keeps it
    dbanon.drop_release(first.id, settings=patients.settings)
    publish(patients, name="for_registry", grants=[registry], algorithm="mondrian", **OTHERS)
    try:
        third = publish(patients, name="second", grants=[analyst])
    except DbanonError:
        return
    assert first.id in third.composition.releases


@pytest.mark.exhaustive
def test_doctor_names_who_reads_two_series(patients):
    analyst, registry = patients.role("analyst"), patients.role("registry")
    publish(patients, grants=[analyst])
    publish(patients, name="others", grants=[registry], algorithm="mondrian", **OTHERS)
    with patients.admin() as admin:
        admin.execute(f"GRANT {registry} TO {analyst}")
    findings = [found.message for found in dbanon.doctor(settings=patients.settings)]
    assert any(analyst in found and "series" in found for found in findings), findings


def test_a_role_that_is_granted_one_series_while_another_is_published_reads_one(
    patients, monkeypatch
):
    from dbanon.db.releases import relations

    role = patients.role("analyst")
    publish(patients)
    put_in_place = relations.put_in_place
    refused = []

    def granted_meanwhile(*arguments, **options):
        try:
            dbanon.grant("anon.patients", [role], settings=patients.settings)
        except DbanonError as error:
            refused.append(error)
        return put_in_place(*arguments, **options)

    monkeypatch.setattr(relations, "put_in_place", granted_meanwhile)
    try:
        publish(patients, name="others", grants=[role], algorithm="mondrian", **OTHERS)
    except DbanonError as error:
        refused.append(error)
    both = patients.execute(
        "SELECT has_table_privilege(%s, oid, 'SELECT') FROM pg_class"
        " WHERE oid = ANY (ARRAY[to_regclass('anon.patients'), to_regclass('anon.others')])",
        (role,),
    )
    assert refused or (False,) in both


@pytest.mark.exhaustive
def test_a_role_that_may_take_on_a_reader_is_no_other_recipient(patients):
    analyst, registry = patients.role("analyst"), patients.role("registry")
    with patients.admin() as admin:
        admin.execute(f"ALTER ROLE {analyst} NOINHERIT")
        admin.execute(f"GRANT {registry} TO {analyst}")
    publish(patients, grants=[analyst])
    with pytest.raises(NotPermitted, match="another series"):  # SET ROLE is all it takes
        publish(patients, name="others", grants=[registry], algorithm="mondrian", **OTHERS)
