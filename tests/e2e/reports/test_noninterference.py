"""A public report is a function of the release, its policy and the ledger."""

import json

import numpy as np
import psycopg
import pytest
from selection import exhaustive_after

import dbanon
from dbanon.domain.policy import K_ANONYMITY, ColumnRule, ModelSpec, Policy, Role
from dbanon.domain.report import CONFIDENTIAL
from dbanon.domain.table import TableName
from dbanon.settings import Settings

TABLE = TableName("public", "clinic")
ROLES = {
    "outer_key": Role.IDENTIFIER,
    "age": Role.QUASI,
    "zip": Role.QUASI,
    "disease": Role.SENSITIVE,
    "wage": Role.SENSITIVE,
}
ROWS = 150


def make_clinic(database):
    """Publish a table without one person, whose quasi-identifiers no class covers.

    The key has the name of a column of what hashes it.
    """
    drawn = np.random.default_rng(3)
    wages, diseases = drawn.integers(20, 140, ROWS), drawn.choice([*"ABC"], ROWS, p=[0.6, 0.3, 0.1])
    columns = [drawn.integers(20, 50, ROWS), drawn.integers(1000, 1010, ROWS), diseases, wages]
    rows = zip(range(ROWS), *(column.tolist() for column in columns), strict=True)
    database.execute(
        "CREATE TABLE clinic (outer_key int PRIMARY KEY, age int, zip int, disease text, wage int)"
    )
    for row in [*rows, (1000, 99, 9999, "A", 30)]:
        database.execute("INSERT INTO clinic VALUES (%s, %s, %s, %s, %s)", row)
    rules = tuple(ColumnRule(*each) for each in ROLES.items())
    models = (ModelSpec(K_ANONYMITY, {"k": 5}),)
    policy = Policy(table=TABLE, columns=rules, models=models, max_suppressed=0.05)
    dbanon.set_policy(TABLE, policy, settings=database.settings)
    dbanon.publish(TABLE, settings=database.settings)


def published(run, *form, relation="anon.clinic"):
    return run("report", relation, "--public", *form).out


CHANGES = {
    "values of who is left out": "UPDATE clinic SET wage = 100000 WHERE outer_key = 1000",
    "values of who is published": "UPDATE clinic SET wage = 1, age = 90 WHERE outer_key < 20",
    "another row": "INSERT INTO clinic VALUES (2000, 30, 1003, 'D', 75)",
    "the order of rows": "CREATE TABLE copied AS SELECT * FROM clinic; TRUNCATE clinic;"
    "INSERT INTO clinic SELECT * FROM copied ORDER BY wage, disease DESC",
    "another type": "ALTER TABLE clinic ALTER wage TYPE text USING wage::text || '?'",
    "no row": "TRUNCATE clinic",
    "no table": "DROP TABLE clinic",
}


@pytest.mark.parametrize("what", exhaustive_after(1, CHANGES))
def test_a_public_report_does_not_depend_on_the_source(copied, run, monkeypatch, tmp_path, what):
    database = copied(make_clinic)
    monkeypatch.setenv("DBANON_DSN", database.dsn)
    pages = [tmp_path / "before.html", tmp_path / "after.html"]
    before = published(run, "--html", pages[0]), published(run, "--json")
    confidential = run("report", "anon.clinic", "--json").out
    database.execute(CHANGES[what])
    after = published(run, "--html", pages[1]), published(run, "--json")
    assert before == after
    assert pages[0].read_bytes() == pages[1].read_bytes()
    assert json.loads(before[1])["label_loss"].keys() == {"age", "zip"}
    assert CONFIDENTIAL not in "".join(before) + pages[0].read_text("utf-8")
    # The steward's report does.
    if what == "no table":
        assert "error" in run("report", "anon.clinic", "--json", code=4).err
    elif what != "the order of rows":
        finished = run("report", "anon.clinic", "--json").out
        assert confidential != finished


def test_a_public_report_needs_no_right_on_the_source(copied):
    database = copied(make_clinic)
    role = database.role("public_reporter")
    database.execute(
        f"GRANT SELECT ON anon.clinic TO {role}; GRANT USAGE ON SCHEMA anon, dbanon TO {role};"
        f"GRANT SELECT ON ALL TABLES IN SCHEMA dbanon TO {role}"
    )
    settings = Settings(dsn=database.dsn_as(role))
    (readable,) = database.execute(f"SELECT has_table_privilege('{role}', 'clinic', 'SELECT')")[0]
    assert not readable
    theirs = dbanon.report("anon.clinic", public=True, settings=settings)
    assert dbanon.report("anon.clinic", public=True, settings=database.settings) == theirs


@pytest.fixture
def statements(monkeypatch):
    """Return what is sent from now on, with the parameters."""
    sent = []

    def noting(original):
        def call(self, query, parameters=None, *rest, **named):
            is_text = isinstance(query, str)
            text = (
                query
                if is_text
                else query.as_string(self)
                if hasattr(query, "as_string")
                else query
            )
            sent.append(f"{text} {parameters}")
            return original(self, query, parameters, *rest, **named)

        return call

    for name in ("execute", "copy"):
        monkeypatch.setattr(psycopg.Cursor, name, noting(getattr(psycopg.Cursor, name)))
    return sent


@pytest.mark.exhaustive
def test_no_statement_of_a_public_report_names_the_source(copied, statements):
    database = copied(make_clinic)
    database.execute("ALTER TABLE clinic RENAME TO clinic_before")
    database.execute("ALTER TABLE clinic_before RENAME TO clinic")
    (oid,) = database.execute("SELECT 'clinic'::regclass::oid::text")[0]

    def naming():
        plain = [
            text.replace("anon.clinic", "").replace('"anon"."clinic"', "") for text in statements
        ]
        return [text for text in plain if ("clinic" in text and "'public'" in text) or oid in text]

    statements.clear()
    dbanon.report("anon.clinic", settings=database.settings)
    assert naming() != []
    statements.clear()
    dbanon.report("anon.clinic", public=True, settings=database.settings)
    assert len(statements) > 10
    assert naming() == []


def test_a_public_report_is_not_compared_with_a_confidential_one(
    copied, run, monkeypatch, tmp_path
):
    database = copied(make_clinic)
    monkeypatch.setenv("DBANON_DSN", database.dsn)
    kept = {kind: tmp_path / f"{kind}.json" for kind in ("public", "confidential")}
    kept["public"].write_text(published(run, "--json"))
    kept["confidential"].write_text(run("report", "anon.clinic", "--json").out)
    assert "no figure is different" in published(run, "--against", kept["public"])
    for kind, form in (("confidential", ["--public"]), ("public", [])):
        refused = run("report", "anon.clinic", *form, "--against", kept[kind], code=1).err
        assert f"holds a {kind} report" in refused
    text = json.loads(kept["confidential"].read_text())
    del text["confidential"]  # as it was written before
    kept["confidential"].write_text(json.dumps(text))
    run("report", "anon.clinic", "--public", "--against", kept["confidential"], code=1)


@pytest.mark.exhaustive
def test_a_public_report_says_what_its_release_says(copied):
    database = copied(make_clinic)
    mine = dbanon.report("anon.clinic", settings=database.settings)
    public = dbanon.report("anon.clinic", public=True, settings=database.settings)
    assert (mine.loss is None, public.loss) == (False, None)
    assert public.utility is None
    assert ((), (), ()) == (public.risk.attacks, public.risk.uniqueness, public.risk.unique_sets)
    assert mine.checks == public.checks
    assert mine.risk.sizes == public.risk.sizes
    assert mine.risk.reidentification == public.risk.reidentification
    assert mine.risk.disclosures == public.risk.disclosures


@pytest.mark.exhaustive
@pytest.mark.parametrize("of", [[], ["--samples", "60"]])
def test_a_report_does_not_depend_on_where_rows_are_read(copied, run, monkeypatch, of):
    database = copied(make_clinic)
    monkeypatch.setenv("DBANON_DSN", database.dsn)
    found = [json.loads(run("report", "anon.clinic", "--json", *of).out)]
    database.execute(CHANGES["the order of rows"])
    found.append(json.loads(run("report", "anon.clinic", "--json", *of).out))
    assert found[0] == found[1]
    assert found[0]["utility"]["queries"]
