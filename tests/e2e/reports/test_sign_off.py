"""One page to sign for a release: what is published, approved by whom, and what remains."""

import json
import re
from dataclasses import replace

import pytest
from browsers import browser, hindrances, show
from tables import make_patients, patients_policy

import dbanon
from dbanon.actions.init import init
from dbanon.domain.policy import Role
from dbanon.pages.sign_off import render
from dbanon.settings import Settings

__all__ = ["browser", "show"]


def publish(database):
    """Publish by an approved policy."""
    table = make_patients(database)
    init(database.settings, approver=database.role("signer"))
    dbanon.set_policy(table, patients_policy(table), settings=database.settings)
    dbanon.approve_policy(table, settings=Settings(dsn=database.dsn_as("signer")))
    dbanon.publish(table, grants=[database.role("reading")], settings=database.settings)


@pytest.fixture
def published(copied):
    return copied(publish)


def test_a_page_names_version_approver_proof_readers_and_five_risks(published):
    found = dbanon.sign_off("anon.patients", settings=published.settings)
    assert (1, "signer", False) == (found.approval.version, found.approval.by, found.has_options)
    assert found.approved_in_words.startswith("by signer, 2")
    assert (5, True) == (len(found.risks), found.checks.passed)
    assert found.risks[3].startswith("Earlier releases of the table: 0;")
    assert "no refresh is scheduled" in found.until_in_words
    assert ("reading",) == found.readers
    dbanon.set_schedule("patients", "0 3 * * *", settings=published.settings)
    later = dbanon.sign_off("anon.patients", settings=published.settings)
    assert "until the next refresh, due 2" in later.until_in_words


def test_an_approval_of_another_version_or_policy_is_none_of_the_release(published):
    dbanon.publish("patients", k=6, settings=published.settings)
    found = dbanon.sign_off("anon.patients", settings=published.settings)
    assert "by nobody: options changed the stored policy" == found.approved_in_words
    table = found.table
    dbanon.set_policy(table, patients_policy(table, k=7), settings=published.settings)
    dbanon.publish("patients", settings=published.settings)
    found = dbanon.sign_off("anon.patients", settings=published.settings)
    assert ("by nobody", 2) == (found.approved_in_words, found.approval.version)
    dbanon.approve_policy(table, settings=Settings(dsn=published.dsn_as("signer")))
    found = dbanon.sign_off("anon.patients", settings=published.settings)
    assert found.approved_in_words.startswith("by nobody when it was published; later by signer, 2")
    published.execute("UPDATE dbanon.release SET policy_version = NULL")
    found = dbanon.sign_off("anon.patients", settings=published.settings)
    assert "the version of its policy is not recorded" in found.approved_in_words


@pytest.mark.exhaustive
def test_an_entry_that_names_an_approved_version_falsely_is_by_nobody(published):
    dbanon.publish("patients", k=6, settings=published.settings)
    forged = "UPDATE dbanon.release SET policy_version = 1, overrides = '{}'"
    published.execute(forged)
    found = dbanon.sign_off("anon.patients", settings=published.settings)
    assert (1, True) == (found.approval.version, found.has_options)
    assert found.approved_in_words.startswith("by nobody")


def test_a_release_without_other_columns_has_a_page_too(database):
    table = make_patients(database)
    policy = patients_policy(table, l=None)
    columns = tuple(
        replace(rule, role=Role.IDENTIFIER, allow=())
        if rule.column in {"disease", "note"}
        else rule
        for rule in policy.columns
    )
    dbanon.set_policy(table, replace(policy, columns=columns), settings=database.settings)
    dbanon.publish(table, settings=database.settings)
    found = dbanon.sign_off("anon.patients", settings=database.settings)
    assert "Whoever knows other published values of a person" in found.risks[2]


def test_the_command_prints_documents_and_pages(published, run, monkeypatch, tmp_path):
    monkeypatch.setenv("DBANON_DSN", published.dsn)
    told = run("report", "anon.patients", "--sign-off").out
    assert "approved: by signer" in told
    run("report", "--dataset", "clinic.toml", "--sign-off", code=2)
    assert 5 == told.count("\n- ")
    page = tmp_path / "page.html"
    document = json.loads(
        run("report", "anon.patients", "--sign-off", "--json", "--html", page).out
    )
    assert ("signer", 1) == (document["approval"]["by"], document["release"])
    assert "by signer" in page.read_text()


def test_the_page_prints_on_one_sheet(published, show):
    found = dbanon.sign_off("anon.patients", settings=published.settings)
    page = show(render(found)).page
    paper = page.pdf(format="A4", prefer_css_page_size=True)
    assert 1 == len(re.findall(rb"/Type\s*/Page\b(?!s)", paper))
    page.emulate_media(media="print")
    assert page.locator(".signature").is_visible()
    assert {} == hindrances(page)
