"""Equal values that are written in several ways: the search and the proof agree."""

from dataclasses import replace

import psycopg
import pytest
from psycopg import sql
from selection import exhaustive_after
from tables import patients_policy, rows_proved

import dbanon
from dbanon.db.queries import equal_text
from dbanon.domain.policy import ColumnRule, Role
from dbanon.domain.release import CheckReport, CheckResult, Verdict
from dbanon.domain.table import ColumnInfo, ColumnKind, TableName

TABLE = TableName("public", "people")
LOOSE = (
    "CREATE COLLATION public.loose"
    " (provider = icu, locale = 'und-u-ks-level2', deterministic = false)"
)
# A type, two ways to write a value, and another value.
WRITTEN = {
    "interval[]": ("interval[]", "{1 day}", "{24:00:00}", "{2 days}"),
    "collation": ("text COLLATE public.loose", "flu", "Flu", "gout"),
    "jsonb": ("jsonb", '{"a": 1.0}', '{"a": 1.00}', '{"a": 2}'),
    "numeric[]": ("numeric[]", "{1.0}", "{1.00}", "{2}"),
    "numrange": ("numrange", "[1.0,2]", "[1.00,2]", "[1,3]"),
    "float8[]": ("float8[]", "{0}", "{-0}", "{1}"),
}
COLUMN = ColumnInfo("s", "text", "text", ColumnKind.OTHER)
ONE_TEXT = {
    "numeric": ("numeric", "1.0", "1.00", "2"),
    "float8": ("float8", "0", "-0", "1"),
    "float4": ("float4", "0", "-0", "1"),
    "interval": ("interval", "1 day", "24:00:00", "2 days"),
    "char": ("char(4)", "flu", "flu ", "gout"),
    "text": ("text", "flu", "flu", "gout"),
}


def make(database, of, values):
    """Make people of whom each ten share an age, and each four have these values in turn."""
    if "loose" in of:
        try:
            database.execute(LOOSE)
        except psycopg.errors.FeatureNotSupported:
            pytest.skip("this server was built without ICU")
    database.execute(f"CREATE TABLE public.people (id int PRIMARY KEY, age int, s {of})")
    rows = [(i, i // 10, values[i % len(values)]) for i in range(80)]
    with database.connect() as connection, connection.cursor() as cursor:
        cursor.executemany("INSERT INTO public.people VALUES (%s, %s, %s)", rows)
    rules = (
        ColumnRule("id", Role.IDENTIFIER),
        ColumnRule("age", Role.QUASI),
        ColumnRule("s", Role.SENSITIVE),
    )
    policy = replace(patients_policy(TABLE, k=5, l=2), columns=rules)
    dbanon.set_policy(TABLE, policy, settings=database.settings)


@pytest.mark.parametrize("case", WRITTEN)
def test_equal_values_that_differ_as_texts_are_refused_by_plan_and_publish(database, case):
    of, one, same, other = WRITTEN[case]
    make(database, of, (one, same, one, other))
    for command in (dbanon.plan, dbanon.publish):
        with pytest.raises(dbanon.PolicyError, match=r"column s \(.*\) has 1 values") as caught:
            command(TABLE, settings=database.settings)
        assert not {one, same} & {*str(caught.value).split()}
    assert [(None,)] == database.execute("SELECT to_regclass('anon.people')")


@pytest.mark.parametrize("case", exhaustive_after(1, WRITTEN))
def test_equal_values_that_are_written_in_one_way_are_published(database, case):
    of, one, _, other = WRITTEN[case]
    make(database, of, (one, one, one, other))
    planned = dbanon.plan(TABLE, settings=database.settings).loss
    release = dbanon.publish(TABLE, settings=database.settings)
    assert rows_proved(release) == 80
    assert planned.n_classes == release.loss.n_classes


@pytest.mark.exhaustive
@pytest.mark.parametrize("case", ONE_TEXT)
def test_equal_values_are_counted_as_one_wherever_reading_makes_them_one_text(database, case):
    of, one, same, other = ONE_TEXT[case]
    make(database, of, (one, same, one, other))
    release = dbanon.publish(TABLE, settings=database.settings)
    assert rows_proved(release) == 80
    update = f"UPDATE public.people SET s = (CASE id %% 2 WHEN 0 THEN %s ELSE %s END)::{of}"
    database.execute(update, (one, same))
    others = {"new_series": True, "recipients_changed": True}  # published values stay otherwise
    with pytest.raises(dbanon.Unsatisfiable, match="distinct values"):
        dbanon.plan(TABLE, settings=database.settings, **others)


def of_persons(database, of):
    """Make persons with two rows each, who are numbered by columns of a type and told by these."""
    database.execute(
        f"CREATE TABLE public.people (id int PRIMARY KEY, age int, s text, person {of})"
    )
    database.execute(
        "INSERT INTO public.people SELECT i, i / 20, CASE i % 4 WHEN 0 THEN 'gout' ELSE 'flu' END,"
        " (i / 2)::text::numeric FROM generate_series(0, 79) AS i"
    )
    rules = (
        ColumnRule("id", Role.IDENTIFIER),
        ColumnRule("person", Role.IDENTIFIER),
        ColumnRule("age", Role.QUASI),
        ColumnRule("s", Role.SENSITIVE),
    )
    policy = replace(patients_policy(TABLE, k=5, l=2), columns=rules, subject="person")
    dbanon.set_policy(TABLE, policy, settings=database.settings)


@pytest.mark.exhaustive
@pytest.mark.parametrize("of", ["numeric", "float8"])
def test_a_person_who_is_written_in_another_way_is_remembered_as_the_same(database, of):
    of_persons(database, of)
    dbanon.publish(TABLE, settings=database.settings)
    remembered = database.execute(
        "SELECT DISTINCT unnest(persons) FROM dbanon.history_member ORDER BY 1"
    )
    assert 40 == len(remembered)
    other = "(person || '.00')::numeric" if of == "numeric" else "'-0'::float8 * (person + 1) / 1"
    changed = "person > 0" if of == "numeric" else "person = 0 AND id % 2 = 0"
    database.execute(f"UPDATE public.people SET person = {other} WHERE {changed}")
    assert 40 == database.execute("SELECT count(DISTINCT person) FROM public.people")[0][0]
    dbanon.publish(TABLE, settings=database.settings)
    assert remembered == database.execute(
        "SELECT DISTINCT unnest(persons) FROM dbanon.history_member ORDER BY 1"
    )


def test_persons_that_are_equal_and_differ_as_texts_are_refused(database):
    of_persons(database, "numeric")
    database.execute(
        "ALTER TABLE public.people ALTER person TYPE jsonb"
        " USING (CASE id WHEN 0 THEN '0.0' ELSE person::text END)::jsonb"
    )
    with pytest.raises(dbanon.PolicyError, match=r"column person \(jsonb\) has 1 values"):
        dbanon.plan(TABLE, settings=database.settings)


def test_the_database_composes_the_same_text_for_every_type(database):
    dbanon.init(settings=database.settings)
    types = database.execute(
        "SELECT t.oid, n.nspname, t.typname, dbanon.equal_text(t.oid, 'v.s')"
        "  FROM pg_type AS t JOIN pg_namespace AS n ON n.oid = t.typnamespace"
        " WHERE t.typtype <> 'd'"
    )
    with database.connect() as connection:
        for _, schema, name, composed in types:
            column = replace(COLUMN, base_schema=schema, base_type=name)
            assert composed == equal_text(column, sql.SQL("v.s")).as_string(connection), name
    assert {"numeric", "float4", "float8", "interval"} == {
        name for _, schema, name, text in types if "v.s::text" != text and schema == "pg_catalog"
    }


def test_a_failed_proof_names_the_model_the_column_and_the_shortfall(database, monkeypatch):
    make(database, "text", ("flu", "gout"))

    def wrong(_, published, *_rest, **_options):
        k = CheckResult("k-anonymity", None, 5, 10, 8, 0, 80, Verdict.PASSED)
        l = CheckResult("l-diversity", "s", 2, 1, 8, 3, 80, Verdict.FAILED)
        return CheckReport(published.name, (k, l))

    monkeypatch.setattr("dbanon.db.proofs.checks.prove", wrong)
    with pytest.raises(dbanon.CheckFailed) as caught:
        dbanon.publish(TABLE, settings=database.settings)
    shortfall = "l-diversity of s requires 2, the worst class has 1 (3 of 8 classes fail)"
    assert shortfall in str(caught.value)
    assert "dbanon plan" not in caught.value.hint
