"""Where approvals are demanded, nothing is published that another role has not approved."""

import json
import re
from dataclasses import replace

import pytest
from data.schemas.clinic import TABLES, make_clinic
from e2e.test_restored import restore
from psycopg import sql
from selection import exhaustive_after
from studios import Visitor
from tables import make_patients, patients_policy

import dbanon
from dbanon.actions.init import init
from dbanon.actions.publication.plan import resolve
from dbanon.actions.publish import carry_out, publishing
from dbanon.domain.outcomes import Stages
from dbanon.domain.policy import ModelSpec
from dbanon.domain.table import TableName
from dbanon.request import Request
from dbanon.settings import Settings

TABLE = TableName("public", "patients")
ROWS = "SELECT * FROM anon.patients"


def make_demanding(database):
    """Let one role publish and another one approve, in a database that demands approvals."""
    for name in ("author", "officer"):
        database.role(name)
    make_patients(database)
    database.execute("GRANT SELECT ON public.patients TO author")
    init(database.settings, role="author", approver="officer", require_approval=True)
    dbanon.set_policy(TABLE, patients_policy(TABLE), settings=as_role(database, "author"))


def rows(database):
    return database.connect_as("author").execute(ROWS).fetchall()


def as_role(database, role):
    return Settings(dsn=database.dsn_as(role))


@pytest.fixture
def demanding(copied):
    return copied(make_demanding)


@pytest.fixture
def author(demanding):
    return as_role(demanding, "author")


@pytest.fixture
def officer(demanding):
    return as_role(demanding, "officer")


def change(author, **changes):
    """Store another version of the policy."""
    dbanon.set_policy(TABLE, patients_policy(TABLE, **changes), settings=author)


@pytest.mark.exhaustive
def test_a_policy_publishes_once_another_role_has_approved_it(demanding, author, officer):
    with pytest.raises(dbanon.PolicyError, match="version 1 of policy default of") as refused:
        dbanon.publish(TABLE, settings=author)
    assert "dbanon policy approve public.patients" in refused.value.hint
    found = dbanon.approve_policy("patients", settings=officer)
    assert (1, "author", "officer") == (found.version, found.author, found.by)
    assert found == dbanon.policy_approval(TABLE, settings=author)
    release = dbanon.publish(TABLE, settings=author)
    assert (1, "author") == (release.policy_version, release.created_by)
    assert 1 == dbanon.load_release(release.id, settings=author).policy_version
    assert 200 == len(rows(demanding))


def test_an_officer_approves_in_the_studio_the_version_that_was_shown(author, officer):
    def shown(visitor):
        """The digest in the form of the page."""
        page = visitor.get("policy", table="public.patients").text
        return re.search('name="digest" value="([0-9a-f]{64})"', page)[1]

    own, visitor = Visitor(author), Visitor(officer)
    digest = shown(visitor)
    refused = own.post("approve", table="public.patients", digest=shown(own))
    assert (400, True) == (refused.status, "may not approve" in refused.text)
    change(author, k=7)
    refused = visitor.post("approve", table="public.patients", digest=digest)
    assert (400, True) == (refused.status, "another digest" in refused.text)
    form = visitor.post("approve", table="public.patients", digest=shown(visitor))
    approved = visitor.follow(form)
    assert "version 2" in approved.text
    assert "approved by officer" in approved.text
    assert "dbanon policy approve public.patients --digest" in approved.text
    job = own.result(own.post("publish", table="public.patients"))
    assert 2 == job.result.policy_version
    sign = own.post("report", relation="anon.patients", sign_off="1")
    own.result(sign)
    page = own.follow(sign).text
    assert "What remains as risk" in page
    assert "by officer" in page


@pytest.mark.exhaustive
def test_an_approval_is_of_one_version(demanding, author, officer):
    dbanon.approve_policy(TABLE, settings=officer)
    dbanon.publish(TABLE, settings=author)
    before = rows(demanding)
    change(author, k=2)
    with pytest.raises(dbanon.PolicyError, match="version 2 of policy default"):
        dbanon.refresh(TABLE, settings=author)
    change(author)  # the document that was approved, as another version
    (refused,) = dbanon.refresh(all_tables=True, settings=author)
    assert "version 3" in str(refused.error)
    assert before == rows(demanding)
    dbanon.approve_policy(TABLE, settings=officer)
    assert dbanon.refresh(TABLE, settings=author)[0].release.checks.passed


@pytest.mark.exhaustive
def test_scheduled_refreshes_are_refused_too(demanding, author, officer):
    dbanon.approve_policy(TABLE, settings=officer)
    dbanon.publish(TABLE, settings=author)
    change(author, k=2)
    dbanon.set_schedule(TABLE, "1 1 1 1 *", settings=author)
    demanding.connect_as("author").execute("SELECT dbanon.enqueue('public.patients')")
    dbanon.work(once=True, settings=author)
    state, reason = demanding.execute("SELECT state, reason FROM dbanon.job")[0]
    assert (True, True) == (state != "done", "is not approved" in reason)


OPTIONS = {
    "k": {"k": 2},
    "l": {"l": 1},
    "a model": {"models": [ModelSpec("entropy-l-diversity", {"l": 2.0})]},
    "suppression": {"max_suppressed": 0.5},
    "a subject": {"subject": "id"},
    "the algorithm": {"algorithm": "mdav"},
    "a parameter": {"effort": "fast"},
}


@pytest.mark.parametrize("what", exhaustive_after(1, OPTIONS))
def test_no_option_changes_what_was_approved(author, officer, what):
    change(author, algorithm="auto")
    dbanon.approve_policy(TABLE, settings=officer)
    with pytest.raises(dbanon.PolicyError, match="options change the approved policy") as refused:
        dbanon.publish(TABLE, **OPTIONS[what], settings=author)
    assert "dbanon policy set public.patients" in refused.value.hint
    assert 5 == dbanon.publish(TABLE, k=5, settings=author).policy.k  # which changes nothing


@pytest.mark.exhaustive
def test_options_of_an_earlier_release_are_refused_once_approvals_are_demanded(demanding, author):
    init(demanding.settings, require_approval=False)
    dbanon.publish(TABLE, k=2, l=1, settings=author)
    init(demanding.settings, require_approval=True)
    dbanon.approve_policy(TABLE, settings=as_role(demanding, "officer"))
    with pytest.raises(dbanon.PolicyError, match="options change the approved policy"):
        dbanon.refresh(TABLE, settings=author)


@pytest.mark.exhaustive
def test_a_plan_and_a_dry_run_warn(demanding, author, officer):
    for warned in (
        dbanon.plan(TABLE, settings=author).warnings,
        dbanon.publish(TABLE, dry_run=True, strict=False, settings=author).warnings,
    ):
        assert ["version 1 of policy default of public.patients is not approved"] == [
            one.message for one in warned if one.code == "not-approved"
        ]
    dbanon.approve_policy(TABLE, settings=officer)
    codes = [one.code for one in dbanon.plan(TABLE, settings=author).warnings]
    assert "not-approved" not in codes
    assert demanding.execute("SELECT to_regclass('anon.patients')") == [(None,)]


def test_no_author_approves_by_another_role_of_his(demanding, author):
    demanding.execute("GRANT INSERT ON dbanon.policy_approval TO author")
    for role in ("deputy", "group_of_author"):
        demanding.role(role)
    init(demanding.settings, approver="deputy")
    demanding.admin().execute("GRANT deputy TO author")
    for settings in (author, as_role(demanding, "deputy")):
        with pytest.raises(dbanon.NotPermitted, match="may not approve a policy that author"):
            dbanon.approve_policy(TABLE, settings=settings)
    session = demanding.connect_as("author")
    session.execute("SET ROLE deputy")
    with pytest.raises(Exception, match="author may not approve a policy that author stored"):
        session.execute(INSERT, forged(demanding))
    assert [] == demanding.execute("SELECT * FROM dbanon.policy_approval")


def test_no_member_approves_a_policy_of_his_group(demanding):
    demanding.role("boss")
    demanding.admin().execute("GRANT author TO boss")
    init(demanding.settings, approver="boss")
    with pytest.raises(dbanon.NotPermitted, match="boss may not approve a policy that author"):
        dbanon.approve_policy(TABLE, settings=as_role(demanding, "boss"))


INSERT = (
    "INSERT INTO dbanon.policy_approval"
    " (table_schema, table_name, name, version, digest, approved_by, approved_at)"
    " VALUES ('public', 'patients', 'default', %s, %s, 'officer', '2001-01-01')"
)


def forged(database, version=1):
    ((digest,),) = database.execute(
        "SELECT dbanon.policy_digest(document) FROM dbanon.policy_version WHERE version = %s",
        (version,),
    )
    return (version, digest)


def test_nobody_forges_an_approval(demanding, author):
    demanding.execute("GRANT SELECT ON public.patients TO officer")
    for role in ("author", demanding.role("stranger")):
        with pytest.raises(Exception, match="permission denied"):
            demanding.connect_as(role).execute(INSERT, forged(demanding))
    officer = demanding.connect_as("officer")
    officer.autocommit = True
    change(author, k=6)
    for version, digest, said in (
        (1, forged(demanding)[1], "version 1 is not the stored one"),
        (3, forged(demanding)[1], "version 3 is not the stored one"),
        (2, forged(demanding)[1], "not that of this digest"),
    ):
        with pytest.raises(Exception, match=said):
            officer.execute(INSERT, (version, digest))
    officer.execute(INSERT, forged(demanding, 2))
    found = dbanon.policy_approval(TABLE, settings=author)
    assert ("officer", True) == (found.by, found.at.year > 2020)
    for change_of_it in ("UPDATE dbanon.policy_approval SET version = 1", "DELETE FROM {}"):
        with pytest.raises(Exception, match="permission denied"):
            officer.execute(change_of_it.format("dbanon.policy_approval"))


@pytest.mark.parametrize("role", ["author", "officer"])
def test_only_the_owner_ends_the_demand(demanding, role):
    for end in (
        "DELETE FROM dbanon.approval_demand",
        "TRUNCATE dbanon.approval_demand",
        "DROP TABLE dbanon.approval_demand",
    ):
        with pytest.raises(Exception, match=r"permission denied|must be owner"):
            demanding.connect_as(role).execute(end)
    with pytest.raises(dbanon.NotPermitted):
        init(as_role(demanding, role), require_approval=False)
    assert [(1,)] == demanding.execute("SELECT count(*)::int FROM dbanon.approval_demand")
    init(demanding.settings, require_approval=False)
    assert dbanon.publish(TABLE, settings=as_role(demanding, "author")).checks.passed


def test_a_role_without_the_right_is_told_who_gives_it(demanding):
    demanding.role("guest")
    demanding.execute("GRANT USAGE ON SCHEMA dbanon TO guest")
    demanding.execute("GRANT SELECT ON ALL TABLES IN SCHEMA dbanon TO guest")
    with pytest.raises(dbanon.NotPermitted, match="may not approve policies") as refused:
        dbanon.approve_policy(TABLE, settings=as_role(demanding, "guest"))
    assert "dbanon init --approver" in refused.value.hint


def test_a_policy_that_is_written_past_the_command_is_not_approved(demanding, author, officer):
    dbanon.approve_policy(TABLE, settings=officer)
    weak = json.dumps([{"name": "k-anonymity", "params": {"k": 2}}])
    demanding.connect_as("author").execute(
        "UPDATE dbanon.policy SET document = jsonb_set(document, '{models}', %s)", (weak,)
    )
    for act in (dbanon.publish, dbanon.policy_approval):
        with pytest.raises(dbanon.PolicyError, match="written past dbanon policy set"):
            act(TABLE, settings=author)


def publish_while(change_it, settings):
    """Publish by a snapshot that is older than a change."""
    request = Request(settings=settings)
    with publishing([TABLE], request) as (session, loaded):
        change_it()
        carry_out(session, resolve(session, loaded, request), Stages())


def test_a_version_stored_meanwhile_ends_the_publication_of_the_approved_one(author, officer):
    dbanon.approve_policy(TABLE, settings=officer)
    with pytest.raises(dbanon.DatabaseError, match="changed at the same time"):
        publish_while(lambda: change(author, k=2), author)
    assert [] == dbanon.list_releases(settings=author)
    with pytest.raises(dbanon.PolicyError, match="version 2"):
        dbanon.publish(TABLE, settings=author)


@pytest.mark.exhaustive
def test_an_approval_that_comes_meanwhile_is_none_of_an_open_publication(author, officer):
    with pytest.raises(dbanon.PolicyError, match="version 1"):
        publish_while(lambda: dbanon.approve_policy(TABLE, settings=officer), author)
    assert dbanon.publish(TABLE, settings=author).checks.passed


@pytest.mark.exhaustive
def test_a_restored_dump_has_its_approvals_and_its_demand(demanding, author, officer, database):
    dbanon.approve_policy(TABLE, settings=officer)
    restore(demanding, database)
    restored = as_role(database, "author")
    assert "officer" == dbanon.policy_approval(TABLE, settings=restored).by
    assert dbanon.publish(TABLE, settings=restored).checks.passed
    change(restored, k=2)
    with pytest.raises(dbanon.PolicyError, match="version 2"):
        dbanon.publish(TABLE, settings=restored)


@pytest.mark.exhaustive
def test_every_table_of_a_dataset_is_approved(database, tmp_path):
    dataset = make_clinic(database, tmp_path)
    init(database.settings, approver=database.role("reviewer"), require_approval=True)
    reviewer = as_role(database, "reviewer")
    for table in TABLES:
        policy = dbanon.load_policy(table, settings=database.settings)
        dbanon.set_policy(table, policy.with_k(5), settings=database.settings)
    dbanon.approve_policy("persons", settings=reviewer)
    with pytest.raises(dbanon.PolicyError) as refused:
        dbanon.publish_dataset(dataset, settings=database.settings)
    assert [True, True, False] == [
        f"of public.{table} is not" in str(refused.value)
        for table in ("encounters", "conditions", "persons")
    ]
    for table in ("encounters", "conditions"):
        dbanon.approve_policy(table, settings=reviewer)
    assert 3 == len(dbanon.publish_dataset(dataset, settings=database.settings))


def test_counts_with_noise_need_an_approval_too(author, officer):
    dbanon.approve_policy(TABLE, settings=officer)
    dbanon.publish(TABLE, settings=author)
    change(author, budget=1.0)
    with pytest.raises(dbanon.PolicyError, match="version 2"):
        dbanon.count("anon.patients", by=["sex"], epsilon=0.5, settings=author)


def test_an_approval_is_of_the_taxonomies_too(demanding, author, officer, tmp_path):
    tree = tmp_path / "sex.csv"
    tree.write_text("F;all\nM;all\n")
    dbanon.import_taxonomy("sex", tree, settings=author)
    policy = patients_policy(TABLE)
    columns = tuple(
        replace(rule, taxonomy="sex", recoding="label") if rule.column == "sex" else rule
        for rule in policy.columns
    )
    dbanon.set_policy(TABLE, replace(policy, columns=columns), settings=author)
    demanding.execute("GRANT INSERT ON dbanon.taxonomy_node TO officer")
    with pytest.raises(dbanon.NotPermitted, match="can store the taxonomies"):
        dbanon.approve_policy(TABLE, settings=officer)
    demanding.execute("REVOKE INSERT ON dbanon.taxonomy_node FROM officer")
    keeper = demanding.role("keeper")
    demanding.execute(f"GRANT INSERT ON dbanon.taxonomy_node TO {keeper}")
    for statement in ("ALTER ROLE officer NOINHERIT", f"GRANT {keeper} TO officer"):
        demanding.server.run(sql.SQL(statement))
    with pytest.raises(dbanon.NotPermitted, match="can store the taxonomies"):
        dbanon.approve_policy(TABLE, settings=officer)
    demanding.server.run(sql.SQL(f"REVOKE {keeper} FROM officer"))
    before = dbanon.approve_policy(TABLE, settings=officer)
    dbanon.publish(TABLE, settings=author)
    demanding.connect_as("author").execute(
        "UPDATE dbanon.taxonomy_node SET label = 'everybody' WHERE label = 'all'"
    )
    with pytest.raises(dbanon.PolicyError, match=r"version 2 .* is not approved"):
        dbanon.publish(TABLE, settings=author)
    assert before.digest != dbanon.policy_approval(TABLE, settings=author).digest


def test_an_approver_names_what_he_has_read(author, officer):
    read = dbanon.policy_approval(TABLE, settings=officer).digest
    change(author, k=2)
    for digest in (read[:12], ""):
        with pytest.raises(dbanon.PolicyError, match=r"version 2 .* has another digest"):
            dbanon.approve_policy(TABLE, digest=digest, settings=officer)
    read = dbanon.policy_approval(TABLE, settings=officer).digest
    with pytest.raises(dbanon.PolicyError, match="32 digits of the digest are needed"):
        dbanon.approve_policy(TABLE, digest=read[:31], settings=officer)
    assert "officer" == dbanon.approve_policy(TABLE, digest=read[:32], settings=officer).by


def test_the_doctor_names_what_waits_for_an_approval(demanding, author, officer):
    def found():
        findings = dbanon.doctor(settings=author)
        return [(f.level.value, f.message, f.hint) for f in findings if f.subject == "policies"]

    waits, demanded = found()
    assert ("warning", "dbanon policy approve public.patients") == (waits[0], waits[2])
    assert ("ok", "only approved policies are published", None) == demanded
    dbanon.approve_policy(TABLE, settings=officer)
    assert [demanded] == found()


def test_a_demand_that_was_dropped_comes_back_with_the_approvals(demanding, author, officer):
    dbanon.approve_policy(TABLE, settings=officer)
    demanding.execute("DROP TABLE dbanon.approval_demand")
    init(demanding.settings)
    change(author, k=2)
    with pytest.raises(dbanon.PolicyError, match="is not approved"):
        dbanon.publish(TABLE, settings=author)
