"""Metadata that was damaged comes back, or is named."""

import sys

import pytest
from selection import exhaustive_after

import dbanon
from dbanon.actions.init import init
from dbanon.cli import main
from dbanon.db.metadata import damage, migrate, tables
from dbanon.formats import policies

POLICY = """
table = "public.people"
algorithm = "mdav"
[models]
k = 5
[columns.id]
role = "identifier"
[columns.age]
role = "quasi"
"""


def publish_people(database):
    database.execute("CREATE TABLE public.people (id int PRIMARY KEY, age int)")
    database.execute("INSERT INTO public.people SELECT i, i % 7 FROM generate_series(1, 40) AS i")
    dbanon.set_policy("people", policies.parse(POLICY), settings=database.settings)
    dbanon.publish("people", settings=database.settings)


@pytest.fixture
def published(copied, monkeypatch):
    """A table that is published."""
    database = copied(publish_people)
    monkeypatch.setenv("DBANON_DSN", database.dsn)
    return database


@pytest.fixture
def run(monkeypatch, capsys):
    def run(*words):
        monkeypatch.setattr(sys, "argv", ["dbanon", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        return ended.value.code, printed.out + printed.err

    return run


def test_the_known_columns_are_those_of_the_tables():
    described = {
        table.name: {
            column.name: not column.primary_key
            and (column.nullable or column.server_default is not None)
            for column in table.columns
        }
        for table in tables.metadata.tables.values()
    }
    known = {
        table: {name.removesuffix("!"): not name.endswith("!") for name in columns.split()}
        for table, columns in damage.TABLES.items()
    }
    assert described == known


@pytest.mark.parametrize(
    ("damage", "told"),
    exhaustive_after(
        1,
        [
            ("DELETE FROM dbanon.alembic_version", "lost its revision"),
            ("DROP TABLE dbanon.alembic_version", "lost its revision"),
            ("DROP TABLE dbanon.verification", "dbanon.verification is gone"),
            ("ALTER TABLE dbanon.verification DROP COLUMN reason", "verification.reason is gone"),
            ("DROP TABLE dbanon.policy_version", "dbanon.policy_version is gone"),
            ("ALTER TABLE dbanon.release DROP COLUMN created_at", "release.created_at is gone"),
            ("DROP FUNCTION dbanon.check_k_and_l", "dbanon.check_k_and_l is gone"),
            ("DROP FUNCTION dbanon.verify(regclass)", "dbanon.verify is gone"),
        ],
    ),
)
def test_init_mends_what_was_damaged(published, run, damage, told):
    published.execute(damage)
    code, printed = run("doctor")
    assert (1, 1, True) == (code, printed.count(told), "dbanon init" in printed)
    assert "DROP" not in printed  # all is served as it was
    mended = init(published.settings)
    assert (True, migrate.REVISION, []) == (mended["changed"], mended["revision"], mended["lost"])
    code, printed = run("doctor")
    assert (0, False) == (code, "failure" in printed)
    dbanon.refresh("people", settings=published.settings)
    assert dbanon.check("anon.people", settings=published.settings).passed


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        ("ALTER TABLE dbanon.release DROP COLUMN created_at", ("release", "list")),
        ("ALTER TABLE dbanon.release DROP COLUMN created_at", ("check", "anon.people")),
        ("ALTER TABLE dbanon.release DROP COLUMN created_at", ("check", "--all")),
        ("ALTER TABLE dbanon.verification DROP COLUMN reason", ("check", "anon.people")),
        ("DROP TABLE dbanon.policy", ("policy", "list")),
        ("ALTER TABLE dbanon.policy DROP COLUMN document", ("policy", "list")),
        ("ALTER TABLE dbanon.policy DROP COLUMN name CASCADE", ("policy", "list")),
        ("DROP TABLE dbanon.policy_version", ("policy", "history", "people")),
        ("DROP FUNCTION dbanon.check_k_anonymity", ("check", "anon.people")),
        ("DROP SCHEMA dbanon CASCADE", ("check", "anon.people")),
    ],
)
def test_a_command_that_meets_the_damage_names_the_next_one(published, run, damage, words):
    published.execute(damage)
    code, printed = run(*words)
    assert (1, True) == (code, "try: dbanon doctor" in printed or "try: dbanon init" in printed)


RIGHTS = """
SELECT c.relname::text, a.privilege_type
  FROM pg_class AS c
 CROSS JOIN LATERAL aclexplode(c.relacl) AS a
 WHERE c.relnamespace = 'dbanon'::regnamespace AND a.grantee = %s::regrole
 ORDER BY 1, 2
"""


@pytest.mark.parametrize("table", ["verification", "history_figures", "release", "job"])
def test_who_may_publish_may_use_a_table_that_was_mended(published, table):
    publisher, reader = published.role(f"mends_{table}"), published.role(f"reads_{table}")
    init(published.settings, role=publisher)
    published.execute(f"GRANT USAGE ON SCHEMA dbanon TO {reader}")
    published.execute(f"REVOKE DELETE ON dbanon.policy FROM {publisher}")
    before = published.execute(RIGHTS, (publisher,))
    published.execute(f"DROP TABLE dbanon.{table} CASCADE")
    assert init(published.settings)["changed"]
    assert before == published.execute(RIGHTS, (publisher,))
    assert [] == published.execute(RIGHTS, (reader,))


def test_release_data_that_was_dropped_is_named_and_can_be_published_again(published, run):
    published.execute("DROP SCHEMA dbanon_data CASCADE")
    code, printed = run("doctor")
    assert (1, True) == (code, "schema dbanon_data is gone" in printed)
    assert [] == init(published.settings)["lost"]
    code, printed = run("doctor")
    assert (1, True) == (code, "dbanon release drop 1" in printed)
    assert 0 == run("release", "drop", "1")[0]
    assert 2 == dbanon.publish("people", settings=published.settings).id
    assert 0 == run("doctor")[0]


def test_what_nobody_can_mend_is_named(published, run):
    published.execute("ALTER TABLE dbanon.release DROP COLUMN policy")
    code, printed = run("init")
    assert (0, True) == (code, "release.policy is gone [damaged]" in printed)
    code, printed = run("doctor")
    assert (1, True) == (code, "from a backup" in printed)


@pytest.mark.parametrize("kind", exhaustive_after(1, ["table", "view"]))
def test_views_that_outlive_the_ledger_are_named(published, run, kind):
    dbanon.publish("people", kind=kind, name="others", settings=published.settings)
    published.execute("DROP SCHEMA dbanon CASCADE")
    code, printed = run("doctor")
    assert code == 1
    assert 2 == printed.count("DROP SCHEMA dbanon_data CASCADE")
    code, printed = run("init")
    assert (0, True) == (code, "anon.others is served" in printed)
    code, printed = run("doctor")
    assert (1, True) == (code, "DROP VIEW anon.people, then" in printed)
    published.execute("DROP SCHEMA dbanon_data CASCADE")
    assert [] == init(published.settings)["lost"]
    published.execute("INSERT INTO public.people VALUES (1000, 3)")  # no guard is left
    dbanon.set_policy("people", policies.parse(POLICY), settings=published.settings)
    assert dbanon.publish("people", settings=published.settings).checks.passed
    assert run("doctor")[0] == 0


@pytest.mark.parametrize("kind", ["table", "view"])
def test_what_is_filled_anew_is_in_the_ledger(published, kind):
    for _ in range(2):
        dbanon.publish("people", kind=kind, settings=published.settings)
    assert [] == init(published.settings)["lost"]
    assert [] == [f for f in dbanon.doctor(settings=published.settings) if f.level != "ok"]


WITHOUT_SEEN = (
    "CREATE OR REPLACE VIEW anon.people WITH (security_barrier) AS"
    " SELECT age FROM ONLY dbanon_data.release_1 AS s"
)


@pytest.mark.parametrize("also", ["", "; DROP FUNCTION dbanon_data.seen_1"])
def test_a_view_that_looks_empty_to_older_snapshots_is_a_failure_and_mended(published, run, also):
    published.execute(WITHOUT_SEEN + also)
    messages = [f.message for f in dbanon.doctor(settings=published.settings) if f.exit_code]
    assert "its definition is not the one that was published" == messages[0]
    assert run("doctor")[0] == 1
    dbanon.refresh("people", settings=published.settings)
    assert run("doctor")[0] == 0
