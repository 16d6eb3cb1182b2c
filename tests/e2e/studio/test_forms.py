"""Each form of the studio that changes something, by what is different afterwards."""

import json
import re
from dataclasses import replace

import pytest
from data.schemas.clinic import TABLES, fill_clinic
from studios import Visitor
from tables import define_patients, make_patients, patients_policy, publish_patients

import dbanon
from dbanon.actions.jobs.schedules import list_schedules
from dbanon.actions.jobs.worker import work
from dbanon.actions.taxonomy import import_text
from dbanon.domain.messages import RECODED
from dbanon.domain.table import TableName
from dbanon.formats import policies
from dbanon.studio import tables

TABLE, VIEW = "public.patients", "anon.patients"


@pytest.fixture
def published(copied):
    return copied(publish_patients)


def rule(visitor, column):
    """Return the rule of a column of the draft."""
    return visitor.workspace.draft(TABLE).rule(column)


def refused(answer, words):
    """Return whether a form was refused with some words."""
    return 400 == answer.status and words in answer.text


def test_the_metadata_schema_is_installed(bare_database):
    make_patients(bare_database)
    visitor = Visitor(bare_database.settings)
    assert "Install the metadata schema" in visitor.get("tables").text
    assert 303 == visitor.post("install").status
    assert TABLE in visitor.get("tables").text
    assert ["dbanon init"] == visitor.workspace.commands


def test_the_page_of_releases_has_what_they_disclose_together(published):
    visitor = Visitor(published.settings)
    assert "of one release at most" in visitor.get("releases", table=TABLE).text
    dbanon.publish("patients", name="others", settings=published.settings)
    shown = visitor.get("releases", table=TABLE).text
    (found,) = dbanon.history("patients", settings=published.settings).compositions
    assert found.results
    assert f"{found.persons:,} persons of public.patients, in cells of the same classes" in shown
    assert shown.count(">passed<") >= len(found.results)


def test_roles_and_rules_of_columns_are_taken_and_undone(copied):
    visitor = Visitor(copied(define_patients).settings)
    before = visitor.workspace.draft(TABLE).text
    place = [one.column for one in visitor.workspace.draft(TABLE).policy.columns].index("sex")
    visitor.post("columns", table=TABLE, **{f"role-{place}": "insensitive"})
    assert "insensitive" == rule(visitor, "sex").role
    visitor.post("column", table=TABLE, column="age", role="quasi", bands="10", top="80")
    assert (10, 80) == (rule(visitor, "age").bands, rule(visitor, "age").top)
    for _ in range(2):
        visitor.post("undo", table=TABLE, page="columns")
    assert before == visitor.workspace.draft(TABLE).text
    visitor.post("undo", table=TABLE, page="policy", redo="1")
    assert "insensitive" == rule(visitor, "sex").role
    given = policies.dump(visitor.workspace.draft(TABLE).policy.with_k(9))
    visitor.post("policy", table=TABLE, text=given)
    assert 9 == visitor.workspace.draft(TABLE).policy.k
    assert 303 == visitor.post("take", table=TABLE, k="7", l="2").status
    assert (7, 2) == (visitor.workspace.draft(TABLE).policy.k, rule_l(visitor))
    assert refused(visitor.post("take", table=TABLE, k="many"), "k is a whole number above 0")


def test_the_form_of_a_column_explains_its_numbers_and_recodings(copied):
    visitor = Visitor(copied(define_patients).settings)
    shown = visitor.get("column", table=TABLE, column="age").text
    for name in tables._NUMBERS:  # noqa: SLF001 - what the form has
        assert re.search(f'id="{name}-note">[^<]{{10}}', shown), name
    for name, words in RECODED.items():
        assert f">{name}</option>" in shown  # all of it fits into the field
        assert f"<bdi>{words}</bdi>" in shown


def rule_l(visitor):
    """Return the l of the draft."""
    return visitor.workspace.draft(TABLE).policy.l


def test_taxonomies_are_derived_and_imported_and_used(copied):
    database = copied(define_patients)
    visitor = Visitor(database.settings)
    fields = {"name": "ages", "column": "age", "kind": "intervals", "widths": "10 50"}
    assert 303 == visitor.post("derive", table=TABLE, **fields).status
    assert "ages" == rule(visitor, "age").taxonomy
    text = "F;*\nM;*\n"
    assert (
        303 == visitor.post("import_tree", table=TABLE, name="sexes", column="sex", csv=text).status
    )
    assert "sexes" == rule(visitor, "sex").taxonomy
    exported = visitor.get("taxonomy", name="sexes").text
    assert {"F;*", "M;*"} <= {*exported.splitlines()}
    wrong = visitor.post("import_tree", table=TABLE, name="other", column="sex", csv="F;a\nF;b\n")
    assert 400 == wrong.status
    assert {"ages", "sexes"} == {
        one["name"] for one in dbanon.list_taxonomies(settings=database.settings)
    }


def test_a_policy_is_saved_under_another_name_and_approved_by_another_role(copied):
    database = copied(define_patients)
    visitor = Visitor(database.settings)
    saved = visitor.post("save", table=TABLE, save_as="second")
    assert "the policy is stored" in visitor.follow(saved).text
    assert "the policy is stored" not in visitor.get("policy", table=TABLE).text
    again = visitor.follow(visitor.post("save", table=TABLE, page="publish")).text
    assert "Roles that may read it" in again
    names = {one.policy.name for one in dbanon.list_policies(settings=database.settings)}
    assert {"default", "second"} == names
    approver = database.role("approver")
    database.execute(f"GRANT SELECT ON patients TO {approver}")
    dbanon.init(replace(database.settings), approver=approver)
    digest = dbanon.policy_approval(TABLE, settings=database.settings).digest
    assert 400 == visitor.post("approve", table=TABLE, digest=digest).status
    other = Visitor(replace(database.settings, dsn=database.dsn_as(approver)))
    assert refused(other.post("approve", table=TABLE, digest="0000"), "another digest")
    assert 303 == other.post("approve", table=TABLE, digest=digest).status
    assert approver == dbanon.policy_approval(TABLE, settings=database.settings).by


def test_readers_and_schedules_are_set_and_removed(published):
    visitor, reader = Visitor(published.settings), published.role("studio_reader")
    for verb, may_read in (({}, True), ({"revoke": "1"}, False)):
        done = visitor.post("readers", table=TABLE, relation=VIEW, roles=reader, **verb)
        shown = visitor.follow(done).text
        words = "may now read" if may_read else "may no longer read"
        assert f"{reader} {words} anon.patients" in shown
        assert may_read == (f"May read it: <bdi>{reader}</bdi>" in shown)
        assert may_read == ("Only its owner may read it" not in shown)
        query = f"SELECT has_table_privilege('{reader}', '{VIEW}', 'SELECT')"
        assert [(may_read,)] == published.execute(query)
    assert refused(visitor.post("readers", table=TABLE, relation=VIEW, roles=" "), "no role")
    for fields in ({"cron": "never"}, {"cron": "0 3 * * *", "zone": "Nowhere"}):
        refusal = visitor.post("schedule", table=TABLE, **fields)
        assert refused(refusal, "Not done")
        assert "--" not in refusal.text.partition("Next:")[2].partition("</p>")[0]
    assert (
        "next refresh"
        in visitor.follow(visitor.post("schedule", table=TABLE, cron="0 3 * * *")).text
    )
    assert 1 == len(list_schedules(settings=published.settings))
    removed = visitor.post("schedule", table=TABLE, remove="1")
    assert "the schedule is removed" in visitor.follow(removed).text
    assert [] == list_schedules(settings=published.settings)


def test_the_page_of_a_schedule_says_whether_a_worker_does_it(published):
    visitor = Visitor(published.settings)
    visitor.post("schedule", table=TABLE, cron="0 3 * * *")
    page, missing = "releases", "No worker has begun the refresh that was due at"
    shown = visitor.get(page, table=TABLE).text
    assert "Keep <code>dbanon worker</code> running" in shown
    assert missing not in shown
    published.execute("UPDATE dbanon.schedule SET stored_at = now() - interval '2 days'")
    assert missing in visitor.get(page, table=TABLE).text
    work(once=True, settings=published.settings)
    shown = visitor.get(page, table=TABLE).text
    assert missing not in shown
    assert "A worker ended its last refresh at" in shown
    assert "+00:00" not in shown


def test_a_refused_publication_keeps_the_readers_and_a_done_one_names_them(copied):
    database = copied(define_patients)
    visitor, reader = Visitor(database.settings), database.role("studio_reader")
    answer = visitor.post("publish", table=TABLE, roles=f"{reader} nobody_here", kind="view")
    assert "nobody_here" in visitor.result(answer).failure.message
    shown = visitor.follow(answer).text
    assert f'name="roles" value="{reader} nobody_here"' in shown
    assert '<option value="view" selected>' in shown
    answer = visitor.post("publish", table=TABLE, roles=reader)
    assert visitor.result(answer).failure is None
    assert f"May read it: <bdi>{reader}</bdi>" in visitor.follow(answer).text


@pytest.mark.slow
def test_nothing_is_published_or_refreshed_without_a_demanded_approval(copied):
    database = copied(define_patients)
    officer = database.role("approver")
    dbanon.init(database.settings, approver=officer, require_approval=True)
    visitor = Visitor(database.settings)
    other = Visitor(replace(database.settings, dsn=database.dsn_as(officer)))
    refusal = visitor.post("publish", table=TABLE)
    assert "is not approved" in visitor.result(refusal).failure.message
    assert "dbanon policy approve" in visitor.follow(refusal).text
    assert [] == dbanon.list_releases(settings=database.settings)
    page = other.get("policy", table=TABLE)  # of a role that may not read the table
    assert "Approve the stored version" in page.text
    digest = dbanon.policy_approval(TABLE, settings=database.settings).digest
    assert 303 == other.post("approve", table=TABLE, digest=digest).status
    assert visitor.result(visitor.post("publish", table=TABLE)).failure is None
    visitor.post("schedule", table=TABLE, cron="0 3 * * *")
    by_another(database)
    database.execute("UPDATE patients SET age = age + 1")
    database.execute("UPDATE dbanon.schedule SET stored_at = now() - interval '2 days'")
    assert "is not approved" in visitor.result(visitor.post("refresh", table=TABLE)).failure.message
    work(once=True, settings=database.settings)
    assert "is not approved" in visitor.get("releases", table=TABLE).text
    (release,) = dbanon.list_releases(settings=database.settings)
    assert 5 <= release.loss.smallest_class


@pytest.mark.slow
def test_a_role_that_may_only_approve_reads_no_source_and_changes_nothing(published):
    officer = published.role("approver")
    dbanon.init(published.settings, approver=officer)
    visitor = Visitor(replace(published.settings, dsn=published.dsn_as(officer)))
    for page in ("columns", "column"):
        assert 400 == visitor.get(page, table=TABLE, column="age").status, page
    before = published.execute("SELECT * FROM dbanon.release"), readers(published)
    for page in ("curve", "preview", "publish", "refresh"):
        answer = visitor.post(page, table=TABLE, ks="5", roles=officer)
        assert visitor.result(answer).failure is not None, page
    forms = {"save": {}, "schedule": {"cron": "0 3 * * *"}}
    forms["readers"] = {"relation": VIEW, "roles": officer}
    visitor.post("take", table=TABLE, k="7", l="1")
    for page, fields in forms.items():
        assert 400 == visitor.post(page, table=TABLE, **fields).status, page
    assert before == (published.execute("SELECT * FROM dbanon.release"), readers(published))
    assert [] == list_schedules(settings=published.settings)
    assert 7 != dbanon.load_policy(TABLE, settings=published.settings).k


def readers(database):
    """Return the rights on the relation."""
    return database.execute(f"SELECT relacl::text FROM pg_class WHERE oid = '{VIEW}'::regclass")


@pytest.mark.slow
def test_jobs_plan_refresh_report_and_are_cancelled(published):
    visitor = Visitor(published.settings)
    answer = visitor.post("refresh", table=TABLE, dry="1")
    assert visitor.result(answer).failure is None
    assert 1 == len(dbanon.list_releases(settings=published.settings))
    published.execute("UPDATE patients SET age = age + 1")
    answer = visitor.post("refresh", table=TABLE)
    visitor.result(answer)
    assert VIEW in visitor.follow(answer).text
    for more, words in (({"public": "1"}, "Models"), ({"sign_off": "1"}, "Signature")):
        answer = visitor.post("report", relation=VIEW, **more)
        assert visitor.result(answer).failure is None
        shown = visitor.follow(answer).text
        assert words in shown
        assert f'href="{visitor.address("releases", table=TABLE)}"' in shown
    answer = visitor.post("preview", table=TABLE)
    number = answer.headers["location"].rpartition("job=")[2]
    visitor.post("cancel", table=TABLE, job=number, page="preview")
    shown = visitor.follow(answer).text
    assert "nothing was changed" in shown
    assert 'class="verdict failed"' not in shown


def by_another(database, k=9):
    """Store another policy of the table, as somebody else may at any time."""
    changed = patients_policy(TableName.parse(TABLE)).with_k(k)
    dbanon.set_policy(TABLE, changed, settings=database.settings)


CHANGED = "was changed since this page was shown"
WRITING = {
    "columns": {"role-0": "insensitive"},
    "column": {"column": "age", "role": "quasi"},
    "policy": {"text": "[columns]"},
    "undo": {"redo": "1"},
    "save": {},
    "take": {"k": "7", "l": "1"},
    "derive": {"name": "ages", "column": "age", "kind": "flat"},
    "import_tree": {"name": "sexes", "column": "sex", "csv": "F;*\nM;*\n"},
    "curve": {"ks": "5"},
    "preview": {},
    "publish": {},
}


@pytest.mark.parametrize("page", WRITING)
def test_a_form_is_refused_once_another_person_has_changed_the_policy(copied, page):
    database = copied(define_patients)
    visitor = Visitor(database.settings)
    of = visitor.workspace.draft(TABLE).mark
    assert of in visitor.get("policy", table=TABLE).text
    by_another(database)
    answer = visitor.post(page, table=TABLE, of=of, **WRITING[page])
    assert refused(answer, CHANGED)
    assert 9 == dbanon.load_policy(TABLE, settings=database.settings).k
    assert [] == dbanon.list_taxonomies(settings=database.settings)
    assert visitor.workspace.commands == []


def test_a_policy_that_changes_once_the_form_was_sent_is_not_published(copied):
    database = copied(define_patients)
    visitor = Visitor(database.settings)
    start = visitor.workspace.jobs.start

    def late(*words, **options):
        by_another(database)
        return start(*words, **options)

    visitor.workspace.jobs.start = late
    job = visitor.result(visitor.post("publish", table=TABLE))
    assert "was changed since it was shown" in job.failure.message
    assert [] == dbanon.list_releases(settings=database.settings)


def test_a_policy_that_another_person_stores_in_the_same_moment_is_not_replaced(
    copied, monkeypatch
):
    database = copied(define_patients)
    visitor, store = Visitor(database.settings), tables.set_policy

    def late(*words, **options):
        by_another(database)
        return store(*words, **options)

    monkeypatch.setattr(tables, "set_policy", late)
    assert refused(visitor.post("save", table=TABLE), "was changed since it was shown")
    assert 9 == dbanon.load_policy(TABLE, settings=database.settings).k
    assert 303 == visitor.post("save", table=TABLE, save_as="other").status
    assert refused(visitor.post("save", table=TABLE, save_as="other"), "was changed since it")


def test_the_values_of_k_and_l_that_are_compared_stay_in_their_form(copied):
    visitor = Visitor(copied(define_patients).settings)
    answer = visitor.post("curve", table=TABLE, ks="3 4", l="2")
    for shown in (visitor.follow(answer), visitor.result(answer) and visitor.follow(answer)):
        assert 'name="ks" value="3 4"' in shown.text
        assert 'name="l" value="2"' in shown.text
    assert 'name="ks" value="2 5 10 25 50 100"' in visitor.get("curve", table=TABLE).text


ENTERED = [  # the page, its form, what is entered, the reason with what is shown again
    ("policy", "policy", {"text": "k = many"}, ("TOML", ">\nk = many</textarea>")),
    ("curve", "curve", {"ks": "2 many", "l": "3"}, ("k is a whole", 'name="ks" value="2 many"')),
    ("curve", "curve", {"ks": "2", "l": "none"}, ("l is a whole", 'name="l" value="none"')),
    ("policy", "save", {"save_as": "Ä", "page": "policy"}, ("Ä", 'name="save_as" value="Ä"')),
    ("releases", "schedule", {"cron": "never", "zone": "UTC"}, ("five fields", 'value="never"')),
    ("releases", "readers", {"relation": VIEW, "roles": "nobody"}, ("nobody", 'value="nobody"')),
]
OF_COLUMN = [
    ("column", {"role": "quasi", "bands": "wide"}, "bands", 'value="wide"'),
    ("column", {"role": "sensitive", "top": "80"}, "top", 'value="sensitive" selected'),
    ("derive", {"name": "ages", "kind": "intervals", "widths": "x"}, "widths are", 'value="x"'),
    ("import_tree", {"name": "ages", "csv": "1;a\n1;b"}, "", ">\n1;a\n1;b</textarea>"),
]


def shown_again(visitor, page, form, fields, **query):
    """Return the page after one of its forms was refused; no address has an entry."""
    address = visitor.address(page, table=TABLE, **query)
    answer = visitor.post(form, table=TABLE, sent_by=address, **query, **fields)
    assert 303 == answer.status
    where = answer.headers["location"].partition("&notices=")[0]
    assert address == where
    shown = visitor.follow(answer)
    assert 200 == shown.status
    assert 1 == shown.text.count("<strong>Not done.</strong>")
    again = visitor.get(page, table=TABLE, **query).text
    assert "Not done" not in again
    return shown.text


@pytest.mark.parametrize(("page", "form", "fields", "words"), ENTERED)
def test_a_refused_form_is_shown_again_with_what_was_entered(published, page, form, fields, words):
    reason, again = words
    shown = shown_again(Visitor(published.settings), page, form, fields)
    assert reason in shown.partition("<strong>Not done.</strong>")[2].partition("</p>")[0]
    assert again in shown
    assert shown.index(f'/{form}"') < shown.index("Not done") < shown.index(again)


@pytest.mark.parametrize(("form", "fields", "reason", "again"), OF_COLUMN)
def test_a_refused_form_of_a_column_is_shown_again(copied, form, fields, reason, again):
    visitor = Visitor(copied(define_patients).settings)
    shown = shown_again(visitor, "column", form, fields, column="age")
    assert reason in shown.partition("<strong>Not done.</strong>")[2].partition("</p>")[0]
    assert again in shown


def test_entries_for_another_draft_are_not_shown_again(copied):
    visitor = Visitor(copied(define_patients).settings)
    shown = shown_again(visitor, "policy", "policy", {"text": "k = 3", "of": "0"})
    assert CHANGED in shown
    assert ">\nk = 3</textarea>" not in shown
    foreign = visitor.post("policy", table=TABLE, text="k", sent_by="/elsewhere")
    assert 400 == foreign.status


def test_tables_are_not_published_by_policies_that_the_page_did_not_show(copied):
    database = copied(fill_clinic)
    visitor = Visitor(database.settings)
    fields = {"dataset": json.dumps([f"public.{name}" for name in TABLES])}
    page = visitor.get("dataset", **fields).text
    fields |= {"k": "5", "of": re.search(r'name="of" value="([\w ]+)"', page)[1]}
    policy = dbanon.load_policy(TABLES[1], settings=database.settings)
    dbanon.set_policy(TABLES[1], policy.with_k(7), settings=database.settings)
    job = visitor.result(visitor.post("dataset_publish", **fields))
    reason = f"policy of public.{TABLES[1]}, or a taxonomy of it, was changed since it was shown"
    assert reason in job.failure.message
    assert [] == dbanon.list_releases(settings=database.settings)
    forged = visitor.post("dataset_publish", **{**fields, "of": fields["of"].partition(" ")[0]})
    assert refused(forged, CHANGED)


def test_a_taxonomy_that_was_changed_since_the_page_was_shown_is_not_published(copied):
    database = copied(define_patients)
    visitor = Visitor(database.settings)
    visitor.post("import_tree", table=TABLE, name="sexes", column="sex", csv="F;*\nM;*\n")
    visitor.post("save", table=TABLE)
    page = visitor.get("publish", table=TABLE).text
    shown = re.search(r'name="shown" value="(\w+)"', page)[1]
    import_text("sexes", "F;people;*\nM;people;*\n", settings=database.settings)
    job = visitor.result(visitor.post("publish", table=TABLE, shown=shown))
    assert "or a taxonomy of it, was changed since it was shown" in job.failure.message
    assert visitor.result(visitor.post("publish", table=TABLE)).failure is None


def test_a_refused_form_of_linked_tables_is_shown_again_and_they_are_reported(copied):
    database = copied(fill_clinic)
    visitor = Visitor(database.settings)
    fields = {"dataset": json.dumps([f"public.{name}" for name in TABLES])}
    address = visitor.address("dataset", **fields)
    refused = visitor.post("dataset_plan", sent_by=address, ks="5 many", l="2", **fields)
    shown = visitor.follow(refused).text
    assert "k is a whole number above 0" in shown
    assert 'name="ks" value="5 many"' in shown
    page = visitor.get("dataset", **fields).text
    of = re.search(r'name="of" value="([\w ]+)"', page)[1]
    refused = visitor.post("dataset_publish", sent_by=address, k="0", of=of, roles="a", **fields)
    shown = visitor.follow(refused).text
    assert 'name="k" value="0"' in shown
    assert 'name="roles" value="a"' in shown
    assert visitor.result(visitor.post("dataset_publish", k="5", of=of, **fields)).failure is None
    answer = visitor.post("dataset_report", public="1", **fields)
    assert visitor.result(answer).failure is None
    assert "Report for the public" in visitor.follow(answer).text
