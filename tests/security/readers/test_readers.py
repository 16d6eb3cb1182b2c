"""What a reader tries on a release, beside what a hurried engineer would have published."""

import os
import subprocess
from dataclasses import replace

import psycopg
import pytest
from psycopg import sql
from tables import make_patients, patients_policy

import dbanon
from dbanon.domain.policy import ModelSpec
from dbanon.server.server import bundled_binaries

SYSTEM_COLUMNS = ("ctid", "xmin", "cmin", "xmax", "cmax", "tableoid")


def define_patients(database):
    table = make_patients(database)
    dbanon.set_policy(table, patients_policy(table), settings=database.settings)
    database.execute("CREATE SCHEMA naive; GRANT USAGE ON SCHEMA naive TO PUBLIC")


@pytest.fixture
def patients(copied):
    return copied(define_patients)


@pytest.fixture
def analyst(patients):
    name = patients.role("analyst_who_pries")
    patients.execute(f"GRANT TEMP ON DATABASE {patients.name} TO {name}")
    connection = patients.connect_as(name)
    yield connection
    connection.close()
    patients.admin().execute("DROP OWNED BY analyst_who_pries CASCADE")


def publish(database, **options):
    options = {"grants": ["analyst_who_pries"], "settings": database.settings, **options}
    return dbanon.publish("patients", **options)


def naive(database, statement):
    """Run what an engineer in a hurry would, and let the analyst read it."""
    database.execute(statement)
    database.execute("GRANT SELECT ON ALL TABLES IN SCHEMA naive TO analyst_who_pries")


def hide_a_class(database, release=1):
    """Delete all but one row of a class of a live view; return the note of the row that is left."""
    found = database.execute(
        "SELECT s.id, s.note FROM public.patients AS s"
        f" JOIN dbanon_data.rows_{release} AS r ON r.k1 = s.id WHERE r.group_id = 0 ORDER BY s.id"
    )
    (_, note), *others = found
    database.execute(
        "DELETE FROM public.patients WHERE id = ANY (%s)", ([id_ for id_, _ in others],)
    )
    return note


# Two releases of one table.

PAIRS = """
SELECT count(*)
  FROM (SELECT row_number() OVER () AS place, note FROM {}.one) AS a
  JOIN (SELECT row_number() OVER () AS place, note FROM {}.two) AS b USING (place)
 WHERE a.note = b.note
"""


@pytest.mark.exhaustive
def test_two_releases_cannot_be_joined_row_by_row(patients, analyst):
    columns = {"one": "id, width_bucket(age, 0, 100, 4) AS age", "two": "disease, id"}
    for name, shown in columns.items():
        naive(patients, f"CREATE TABLE naive.{name} AS SELECT note, {shown} FROM public.patients")
    for column in ("ctid", "xmin"):
        analyst.execute(f"SELECT {column} FROM naive.one")
    found = analyst.execute(
        "SELECT count(*) FROM naive.one AS a JOIN naive.two AS b ON a.ctid = b.ctid"
        " WHERE a.note = b.note"
    )
    assert found.fetchone()[0] > 100  # as far as rows of both lie alike on their pages
    assert analyst.execute(PAIRS.format("naive", "naive")).fetchone() == (200,)

    publish(patients, name="one")
    publish(patients, name="two", k=10)
    for column in SYSTEM_COLUMNS:
        with pytest.raises(psycopg.errors.UndefinedColumn):
            analyst.execute(f"SELECT {column} FROM anon.one")
    # Of two random orders, one row stands at the same place by chance; twenty never do.
    assert analyst.execute(PAIRS.format("anon", "anon")).fetchone()[0] < 20


@pytest.mark.exhaustive
def test_a_refresh_does_not_show_which_row_is_new(patients, analyst):
    naive(patients, "CREATE TABLE naive.all AS SELECT note FROM public.patients")
    patients.execute("INSERT INTO naive.all VALUES ('the new one')")
    newest = "SELECT note FROM {} ORDER BY xmin::text::int8 DESC, ctid DESC LIMIT 1"
    assert analyst.execute(newest.format("naive.all")).fetchone() == ("the new one",)
    last = "SELECT note FROM (SELECT note, row_number() OVER () AS n FROM {}) AS r ORDER BY n DESC"
    assert analyst.execute(last.format("naive.all")).fetchone() == ("the new one",)

    patients.execute("INSERT INTO public.patients (id, note) VALUES (999, 'the new one')")
    places = []
    for _ in range(3):
        publish(patients)
        rows = analyst.execute("SELECT note FROM anon.patients").fetchall()
        places.append(rows.index(("the new one",)))
    assert places != [200] * 3
    for column in SYSTEM_COLUMNS:
        with pytest.raises(psycopg.errors.UndefinedColumn):
            analyst.execute(f"SELECT {column} FROM anon.patients")


# What a view hides.

LEAK = (
    "CREATE FUNCTION pg_temp.leak(text) RETURNS boolean LANGUAGE plpgsql COST 0.0000001"
    " AS $$ BEGIN RAISE NOTICE '%', $1; RETURN true; END $$"
)


def overheard(analyst, relation):
    """Return what a cheap function is shown when it is asked about every row."""
    notes = []
    analyst.add_notice_handler(lambda notice: notes.append(notice.message_primary))
    analyst.execute(LEAK.replace("FUNCTION", "OR REPLACE FUNCTION"))
    analyst.execute(f"SELECT * FROM {relation} WHERE pg_temp.leak(note)")
    return notes


@pytest.mark.exhaustive
def test_a_function_of_the_reader_is_not_run_on_hidden_rows(patients, analyst):
    view = "VIEW naive.shown {} AS SELECT note FROM public.patients WHERE age + 0 < 0"
    naive(patients, f"CREATE {view.format('WITH (security_barrier)')}")
    assert overheard(analyst, "naive.shown") == []
    # Replaced without its options, a view loses its barrier.
    naive(patients, f"CREATE OR REPLACE {view.format('')}")
    assert len(overheard(analyst, "naive.shown")) == 200
    patients.execute("DROP VIEW naive.shown")

    publish(patients, kind="view")
    release = publish(patients, kind="view")  # which replaces the view
    hidden = hide_a_class(patients, release.data_id)
    heard = overheard(analyst, "anon.patients")
    assert (True, False) == (len(heard) > 100, hidden in heard)


def estimated(analyst, relation, value):
    statement = sql.SQL("EXPLAIN (FORMAT json) SELECT * FROM {} WHERE disease = {}")
    plan = analyst.execute(statement.format(sql.SQL(relation), sql.Literal(value)))
    return plan.fetchone()[0][0]["Plan"]["Plan Rows"]


def leave_one_out(database):
    """Make one row so odd that it is the one to be left out, with a disease of its own."""
    database.execute(
        "UPDATE public.patients SET disease = 'secretitis', age = 20000, born = '1066-10-14',"
        " weight = 9999 WHERE id = 7"
    )


@pytest.mark.exhaustive
def test_explain_estimates_nothing_of_rows_that_were_left_out(patients, analyst):
    leave_one_out(patients)
    release = publish(patients, max_suppressed=0.005)
    assert release.loss.n_suppressed == 1
    patients.execute("ALTER TABLE public.patients ALTER disease SET STATISTICS 10000")
    # A hundred more of what is hidden, so that the planner knows of it.
    patients.execute(
        "INSERT INTO public.patients (id, disease) SELECT i, 'secretitis' FROM"
        " generate_series(1000, 1099) AS i; ANALYZE"
    )
    naive(patients, "CREATE VIEW naive.v AS SELECT disease FROM public.patients WHERE age < 999")
    guesses = [estimated(analyst, "naive.v", value) for value in ("secretitis", "no disease")]
    assert guesses[0] > guesses[1]
    guesses = [estimated(analyst, "anon.patients", value) for value in ("secretitis", "no disease")]
    assert guesses[0] == guesses[1]


@pytest.mark.exhaustive
def test_explain_estimates_nothing_of_rows_that_a_live_view_hides(patients, analyst):
    publish(patients, kind="view")
    naive(patients, "CREATE VIEW naive.v AS SELECT disease FROM public.patients WHERE age < 999")
    groups = "SELECT k1 FROM dbanon_data.rows_1 WHERE group_id < 4"
    patients.execute(f"UPDATE public.patients SET disease = 'rare' WHERE id IN ({groups}); ANALYZE")
    shown = "SELECT count(*) FROM anon.patients WHERE disease = 'rare'"
    assert analyst.execute(shown).fetchone() == (0,)
    guesses = [estimated(analyst, "naive.v", value) for value in ("rare", "no disease")]
    assert guesses[0] > 10 * guesses[1]
    guesses = [estimated(analyst, "anon.patients", value) for value in ("rare", "no disease")]
    assert guesses[0] == guesses[1]


@pytest.mark.exhaustive
def test_statistics_of_what_is_private_are_not_shown(patients, analyst):
    naive(patients, "CREATE TABLE naive.all AS SELECT note, disease FROM public.patients")
    patients.execute("ANALYZE; DELETE FROM naive.all WHERE disease = 'cancer'")
    (values,) = analyst.execute(
        "SELECT most_common_vals::text FROM pg_stats"
        " WHERE schemaname = 'naive' AND attname = 'disease'"
    ).fetchone()
    assert "cancer" in values
    patients.execute("DROP TABLE naive.all")

    for kind in ("table", "view"):
        publish(patients, kind=kind, name=kind)
    patients.execute("CREATE STATISTICS public.both ON age, disease FROM public.patients; ANALYZE")
    assert patients.execute("SELECT count(*) > 0 FROM pg_stats WHERE tablename = 'patients'") == [
        (True,)
    ]
    ours = "schemaname IN ('public', 'anon', 'dbanon', 'dbanon_data')"
    for catalog in ("pg_stats", "pg_stats_ext", "pg_stats_ext_exprs"):
        assert analyst.execute(f"SELECT * FROM {catalog} WHERE {ours}").fetchall() == []


EVERY_TEXT = """
SELECT string_agg(t, ' ')
  FROM (SELECT definition FROM pg_views
        UNION ALL SELECT prosrc FROM pg_proc WHERE oid >= 16384
        UNION ALL SELECT description FROM pg_description WHERE objoid >= 16384
        UNION ALL SELECT pg_get_triggerdef(oid) FROM pg_trigger
        UNION ALL SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef
        UNION ALL SELECT pg_get_constraintdef(oid) FROM pg_constraint
        UNION ALL SELECT attname || coalesce(attoptions::text, '') FROM pg_attribute
        UNION ALL SELECT relname || coalesce(reloptions::text, '') FROM pg_class
        UNION ALL SELECT query FROM pg_stat_activity) AS every (t)
"""


@pytest.mark.exhaustive
def test_no_text_that_everybody_reads_holds_a_value(patients, analyst):
    naive(
        patients,
        "CREATE VIEW naive.shown AS SELECT disease FROM public.patients WHERE note <> 'note 77'",
    )
    assert "note 77" in analyst.execute(EVERY_TEXT).fetchone()[0]
    patients.execute("DROP VIEW naive.shown")

    for kind in ("table", "view"):
        publish(patients, kind=kind, name=kind, max_suppressed=0.1, seed=987654321)
    (text,) = analyst.execute(EVERY_TEXT).fetchone()
    secrets = {"gastritis", "asthma", "987654321"}
    for row in patients.execute("SELECT note, born::text FROM public.patients"):
        secrets.update(row)
    assert [secret for secret in secrets if secret in text] == []


@pytest.mark.exhaustive
def test_a_taxonomy_in_the_comment_names_no_value_that_is_left_out(patients, analyst):
    settings = patients.settings
    patients.execute("UPDATE public.patients SET disease = coalesce(disease, 'gout')")
    leave_one_out(patients)
    dbanon.derive_taxonomy("diseases", "disease", table="patients", kind="flat", settings=settings)
    policy = dbanon.load_policy("patients", settings=settings)
    columns = tuple(
        replace(rule, taxonomy="diseases") if rule.column == "disease" else rule
        for rule in policy.columns
    )
    close = ModelSpec("t-closeness", {"t": 0.9, "distance": "hierarchical"})
    policy = replace(policy, columns=columns, models=(*policy.models, close))
    dbanon.set_policy("patients", policy, settings=settings)
    release = publish(patients, max_suppressed=0.005)
    assert release.loss.n_suppressed == 1
    shown = "SELECT count(*) FROM anon.patients WHERE disease = 'secretitis'"
    assert analyst.execute(shown).fetchone() == (0,)
    (comment,) = analyst.execute(
        "SELECT obj_description('anon.patients'::regclass, 'pg_class')"
    ).fetchone()
    assert "gout" in comment
    assert "secretitis" not in comment
    verdicts = analyst.execute("SELECT verdict FROM dbanon.verify('anon.patients')").fetchall()
    assert {("passed",)} == set(verdicts)


# Other ways to ask.


@pytest.mark.exhaustive
def test_a_role_behind_the_grantee_is_found_first(patients, analyst):
    reader = patients.role("reader_of_patients")
    patients.admin().execute(f"GRANT {reader} TO analyst_who_pries")
    patients.execute(f"GRANT SELECT ON public.patients TO {reader}")
    naive(patients, "CREATE VIEW naive.v AS SELECT disease FROM public.patients")
    assert analyst.execute("SELECT count(*) FROM naive.v").fetchone() == (200,)
    analyst.execute(f"SET ROLE {reader}")
    assert analyst.execute("SELECT count(note) FROM public.patients").fetchone() == (200,)
    with pytest.raises(dbanon.NotPermitted, match="analyst_who_pries"):
        publish(patients)
    assert patients.execute("SELECT to_regclass('anon.patients')") == [(None,)]


@pytest.mark.exhaustive
def test_cursors_and_prepared_statements_show_no_class_that_fell_below_k(patients, analyst):
    publish(patients, kind="view")
    naive(
        patients,
        "CREATE VIEW naive.live AS SELECT width_bucket(age, 0, 100, 4) AS age, note"
        " FROM public.patients",
    )
    analyst.execute("PREPARE naive_all AS SELECT note FROM naive.live")
    analyst.execute("PREPARE ours AS SELECT note FROM anon.patients")
    for statement in ("naive_all", "ours"):
        for _ in range(6):  # the sixth time, PostgreSQL may keep one plan for all
            analyst.execute(f"EXECUTE {statement}")
    hidden = (hide_a_class(patients),)
    assert hidden in analyst.execute("EXECUTE naive_all").fetchall()
    assert hidden not in analyst.execute("EXECUTE ours").fetchall()
    with analyst.transaction():
        analyst.execute("DECLARE c SCROLL CURSOR WITH HOLD FOR SELECT note FROM anon.patients")
    assert hidden not in analyst.execute("FETCH ALL FROM c").fetchall()
    with analyst.transaction(force_rollback=True):
        analyst.execute("DECLARE d CURSOR FOR SELECT note FROM anon.patients")
        analyst.execute("FETCH 1 FROM d")
        no_such_view = psycopg.errors.ObjectNotInPrerequisiteState  # none that can be written
        refused = pytest.raises((psycopg.errors.FeatureNotSupported, no_such_view))
        with refused, analyst.transaction():
            analyst.execute("DELETE FROM anon.patients WHERE CURRENT OF d")
    for statement in (
        "UPDATE anon.patients SET note = 'mine'",
        "DELETE FROM anon.patients",
        "SELECT * FROM anon.patients FOR UPDATE",
    ):
        with pytest.raises((psycopg.errors.InsufficientPrivilege, no_such_view)):
            analyst.execute(statement)


@pytest.mark.parametrize("kind", ["table", "view"])
def test_copy_takes_nothing_but_the_release(patients, analyst, kind):
    def copied(query):
        with analyst.cursor().copy(f"COPY {query} TO STDOUT") as copy:
            return b"".join(copy).decode().splitlines()

    naive(patients, "CREATE TABLE naive.all AS SELECT note FROM public.patients")
    in_order = [f"note {i}" for i in range(200)]
    assert copied("naive.all") == in_order
    publish(patients, kind=kind, keep_assignment=True)
    whole = copied("(SELECT note FROM anon.patients)")
    assert sorted(whole) == sorted(in_order)
    assert kind == "view" or whole != in_order
    for private in ("public.patients", "dbanon_data.rows_1", "dbanon_data.groups_1"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            copied(private)
    with pytest.raises(psycopg.errors.WrongObjectType):
        copied("anon.patients")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        analyst.execute("COPY (SELECT 1) TO PROGRAM 'cat'")


def dumped(database, *options):
    """Dump as the analyst; return pg_dump's exit code and what it wrote."""
    run = subprocess.run(
        [bundled_binaries() / "pg_dump", database.dsn_as("analyst_who_pries"), *options],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "LC_ALL": "C"},
    )
    return run.returncode, run.stdout + run.stderr


@pytest.mark.exhaustive
def test_a_dump_holds_the_definition_and_no_row(patients, analyst):
    naive(patients, "CREATE TABLE naive.all AS SELECT note, disease FROM public.patients")
    code, text = dumped(patients, "--table=naive.all")
    assert (code, True) == (0, "note 77\t" in text)
    publish(patients)
    code, text = dumped(patients, "--table=anon.patients")
    assert (code, True) == (0, "CREATE VIEW anon.patients" in text)
    assert "note 77" not in text
    for options in (["--schema=dbanon_data"], ["--schema=dbanon"], ["--table=public.patients"]):
        code, text = dumped(patients, *options)
        assert (code, True, False) == (1, "permission denied" in text, "note 77" in text)
