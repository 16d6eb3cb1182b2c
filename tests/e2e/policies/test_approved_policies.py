"""Policies are approved on the command line, by a role that init names."""

import json

import pytest
from tables import make_patients, patients_policy

import dbanon
from dbanon.db.metadata import store
from dbanon.domain.table import TableName
from dbanon.settings import Settings


@pytest.fixture
def approver(database):
    table = make_patients(database)
    dbanon.set_policy(table, patients_policy(table), settings=database.settings)
    return database.dsn_as(database.role("approver"))


def test_a_policy_is_shown_approved_and_published(database, run, approver):
    run("init", "--approver", "approver", "--require-approval")
    assert "it publishes nothing" in run("doctor").out
    shown = run("policy", "show", "patients").out
    assert f"stored by {database.server.owner}; not approved, as the database demands" in shown
    digest = shown.partition("version 1, digest ")[2][:32]
    refused = run("publish", "patients", code=1).err
    assert "try: by another role: dbanon policy approve public.patients" in refused
    assert "[not-approved]" in run("plan", "patients").err
    assert "[not-approved]" in run("publish", "patients", "--dry-run").err
    run("policy", "approve", "patients", "--digest", "0000", "--dsn", approver, code=1)
    done = run("policy", "approve", "patients", "--digest", digest, "--dsn", approver).out
    assert f"policy of patients: version 1, digest {digest}, stored by" in done
    assert "; approved by approver, 2" in done
    again = json.loads(run("policy", "approve", "patients", "--json", "--dsn", approver).out)
    assert (1, "approver", True) == (again["version"], again["by"], again["is_demanded"])
    assert "of public.patients is served" in run("publish", "patients").out
    newest, approved, stored = json.loads(run("policy", "history", "patients", "--json").out)
    assert ("published", "stored") == (newest["operation"], stored["operation"])
    assert ("approved", 1, "approver") == (
        approved["operation"],
        approved["version"],
        approved["by"],
    )
    assert "approved, version 1" in run("policy", "history", "patients").out
    assert [] == json.loads(run("policy", "history", "patients", "--policy", "x", "--json").out)
    run("init", "--no-require-approval")
    assert "approved policies" not in run("doctor").out


def test_a_policy_is_shown_with_the_approval_of_the_same_version(
    database, run, approver, monkeypatch
):
    dbanon.init(database.settings, approver="approver")
    dbanon.approve_policy("patients", settings=Settings(dsn=approver))
    find = store.load_approval

    def late(*words):
        changed = patients_policy(TableName("public", "patients")).with_k(9)
        dbanon.set_policy("patients", changed, settings=database.settings)
        return find(*words)

    with monkeypatch.context() as patch:
        patch.setattr(store, "load_approval", late)
        shown = run("policy", "show", "patients").out
    assert "(k = 9)" not in shown
    assert "version 1, digest" in shown
    assert "approved by approver" in shown
    assert "version 2, digest" in run("policy", "show", "patients").out


def test_the_author_is_refused(run, approver, database):
    run("init", "--approver", database.server.owner)
    refused = run("policy", "approve", "patients", code=1).err
    assert "may not approve a policy that" in refused
    assert "try: Let a role approve it that cannot act as its author" in refused


def test_the_printed_sql_demands_approvals_and_names_who_gives_them(bare_database, run):
    role = bare_database.role("first_approver")
    script = run("init", "--print-sql", "--approver", role, "--require-approval").out
    bare_database.execute(script)
    settings = bare_database.settings
    assert "only approved policies are published" in [
        found.message for found in dbanon.doctor(settings=settings)
    ]
    table = make_patients(bare_database)
    dbanon.set_policy(table, patients_policy(table), settings=settings)
    theirs = Settings(dsn=bare_database.dsn_as(role))
    assert role == dbanon.approve_policy(table, settings=theirs).by
