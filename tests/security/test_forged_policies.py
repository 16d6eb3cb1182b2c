"""Whoever may publish writes the metadata: what is written past the commands is found out."""

import json
from functools import partial

import pytest
from tables import publish_patients

import dbanon

FORGED = "is not its newest version: it was written past dbanon policy set"
TO_ALL = (
    "GRANT USAGE ON SCHEMA dbanon TO {0}; GRANT SELECT ON ALL TABLES IN SCHEMA dbanon TO {0};"
    "GRANT INSERT, UPDATE, DELETE ON dbanon.policy, dbanon.schedule, dbanon.release TO {0};"
    "GRANT INSERT ON dbanon.policy_version, dbanon.verification, dbanon.spending TO {0};"
    "GRANT USAGE ON ALL SEQUENCES IN SCHEMA dbanon TO {0}"
)


@pytest.fixture
def patients(copied):
    database = copied(publish_patients)
    database.execute(TO_ALL.format(database.role("neighbour")))
    return database


def weaken(database):
    """Let a neighbour, who may read no table, ask less of the policy of another."""
    ((document,),) = database.execute("SELECT document FROM dbanon.policy")
    document["models"] = (
        {"k": 2} if isinstance(document["models"], dict) else document["models"][:1]
    )
    database.connect_as("neighbour").execute(
        "UPDATE dbanon.policy SET document = %s", (json.dumps(document),)
    )
    return document


@pytest.mark.exhaustive
def test_a_policy_that_was_written_past_the_command_publishes_nothing(patients):
    weaken(patients)
    before = patients.execute("SELECT * FROM anon.patients")
    for act in (dbanon.refresh, dbanon.publish, dbanon.plan):
        with pytest.raises(dbanon.PolicyError, match=FORGED):
            act("patients", settings=patients.settings)
    assert before == patients.execute("SELECT * FROM anon.patients")
    found = [f for f in dbanon.doctor(settings=patients.settings) if FORGED in f.message]
    assert {"failure"} == {f.level.value for f in found}
    assert all("dbanon policy history" in f.hint for f in found)


def test_a_version_says_who_stored_it_whatever_that_role_says(patients):
    document = weaken(patients)
    neighbour = patients.connect_as("neighbour")
    neighbour.execute(
        "INSERT INTO dbanon.policy_version"
        " (table_schema, table_name, name, version, document, stored_at, stored_by)"
        " VALUES ('public', 'patients', 'default', 2, %s, '2001-01-01', %s)",
        (json.dumps(document), patients.server.owner),
    )
    newest, *_ = dbanon.policy_history("patients", settings=patients.settings)
    assert ("neighbour", 2) == (newest.by, newest.version)
    assert 2020 < newest.at.year


SIGNED = {
    "a release": (
        "UPDATE dbanon.release SET created_by = 'somebody'",
        "SELECT created_by FROM dbanon.release",
    ),
    "the relation of a release": (
        "UPDATE dbanon.release SET relation_name = 'forged'",
        "SELECT created_by FROM dbanon.release",
    ),
    "the time of a release": (
        "UPDATE dbanon.release SET created_at = '2001-01-01'",
        "SELECT created_by FROM dbanon.release",
    ),
    "a schedule": (
        "INSERT INTO dbanon.schedule VALUES ('public', 'p', '1 1 * * *', 'UTC', now(), 'me')",
        "SELECT stored_by FROM dbanon.schedule",
    ),
    "a check": (
        (
            "INSERT INTO dbanon.verification (release_id, verdict, results, verified_by)"
            " VALUES (1, 'passed', '[]', 'auditor')"
        ),
        "SELECT verified_by FROM dbanon.verification",
    ),
    "what was spent": (
        (
            "INSERT INTO dbanon.spending"
            " (table_oid, table_schema, table_name, epsilon, columns, spent_by)"
            " VALUES (0, 'public', 'patients', 0.1, '{}', 'auditor')"
        ),
        "SELECT spent_by FROM dbanon.spending",
    ),
}


@pytest.mark.parametrize("what", SIGNED)
def test_nobody_writes_in_the_name_of_another(patients, what):
    forge, look = SIGNED[what]
    patients.connect_as("neighbour").execute(forge)
    assert [("neighbour",)] == patients.execute(look)


@pytest.mark.parametrize("change", ["table_name = 'p'", "stored_at = '2001-01-01'"])
def test_who_changes_a_schedule_is_who_stored_it(patients, change):
    patients.execute(
        "INSERT INTO dbanon.schedule VALUES ('public', 'patients', '1 1 * * *', 'UTC')"
    )
    neighbour = patients.connect_as("neighbour")
    neighbour.execute(f"UPDATE dbanon.schedule SET {change}")
    assert [("neighbour",)] == patients.execute("SELECT stored_by FROM dbanon.schedule")


def test_who_ends_a_release_has_not_made_it(patients):
    patients.connect_as("neighbour").execute("UPDATE dbanon.release SET served = false")
    made = patients.execute("SELECT created_by, served FROM dbanon.release")
    assert [(patients.server.owner, False)] == made


DAMAGED = ["null", "[]", '"text"', "5", "{}", '{"columns": 5}', '{"models": [1]}']


@pytest.mark.parametrize(
    ("column", "document"),
    [*(("document", one) for one in DAMAGED), *(("baseline", one) for one in DAMAGED[1:])],
)
def test_a_damaged_policy_is_one_finding_of_the_doctor_s(patients, column, document):
    patients.execute(f"UPDATE dbanon.policy SET {column} = %s", (document,))
    found = [f for f in dbanon.doctor(settings=patients.settings) if f.level != "ok"]
    assert all("patients" in f.message for f in found)
    assert {"dbanon policy set public.patients"} == {
        f.hint[:33].split(", then ")[-1] for f in found
    }
    with pytest.raises(dbanon.PolicyError, match="patients"):
        dbanon.refresh("patients", settings=patients.settings)


@pytest.mark.parametrize(
    ("column", "document"),
    [
        ("overrides", "[]"),
        ("overrides", '{"dataset": 5}'),
        ("overrides", '{"dataset": ["public.nobody"]}'),
        ("policy", "[]"),
        ("policy", '{"columns": 5}'),
        ("loss", "{}"),
        ("checks", "[1]"),
    ],
)
def test_a_damaged_release_is_named_by_whatever_reads_the_ledger(patients, column, document):
    patients.execute(f"UPDATE dbanon.release SET {column} = %s", (document,))
    ((number,),) = patients.execute("SELECT max(release_id) FROM dbanon.release")
    said = f"release {number} is damaged in the ledger"
    (found,) = [f for f in dbanon.doctor(settings=patients.settings) if f.subject == "ledger"]
    assert (found.level, found.message) == ("failure", said)
    for action in (dbanon.list_releases, partial(dbanon.refresh, all_tables=True)):
        with pytest.raises(dbanon.DatabaseError, match=said):
            action(settings=patients.settings)
