"""A live view shows nothing once its source was changed in a way that its guards cannot see."""

from dataclasses import replace
from types import SimpleNamespace

import psycopg
import pytest
from live import CLASSES, policy_of, serve, shown
from psycopg import IsolationLevel
from tables import make_patients, patients_policy

import dbanon
from dbanon.db.releases import guards
from dbanon.db.session import connect
from dbanon.domain.policy import ModelSpec
from dbanon.domain.release import ReleaseKind

K5 = ModelSpec("k-anonymity", {"k": 5})
L2 = ModelSpec("l-diversity", {"l": 2})
PEOPLE = [(j, f"zip {i}", *row) for i in range(4) for j, row in enumerate(CLASSES[0])]
VERDICTS = "SELECT DISTINCT verdict FROM dbanon.verify('anon.people')"


@pytest.fixture(scope="module")
def shared(server, template):
    with server.database(template) as database:
        yield database


@pytest.fixture
def live(shared):
    """Four classes of six people in it, with k = 5 and l = 2."""
    serve(shared, policy_of(K5, L2, subject="person"), PEOPLE)
    yield shared
    shared.execute("DROP TABLE IF EXISTS public.people CASCADE")


def assert_all_is_hidden(database):
    assert shown(database) == 0
    assert database.execute(VERDICTS) == [("not checked",)]


@pytest.mark.parametrize(
    "rewrite",
    [
        "ALTER TABLE public.people ALTER person TYPE int USING 1",
        "ALTER TABLE public.people ALTER person TYPE bigint USING id / 6",
    ],
)
def test_what_guards_watch_takes_no_other_type(live, rewrite):
    before = shown(live)
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="used by a view"):
        live.execute(rewrite)
    assert shown(live) == before > 0


def test_values_that_are_rewritten_by_another_type_hide_all(live):
    live.execute("ALTER TABLE public.people ALTER zip TYPE text USING 'elsewhere'")
    assert_all_is_hidden(live)


@pytest.mark.pg(">= 17")
def test_values_that_are_generated_anew_hide_all(database):
    table = make_patients(database)
    database.execute(
        "ALTER TABLE public.patients DROP disease,"
        " ADD disease text GENERATED ALWAYS AS ('d' || id % 7) STORED"
    )
    dbanon.set_policy(table, patients_policy(table), settings=database.settings)
    assert dbanon.publish(table, kind="view", settings=database.settings).checks.passed
    database.execute("ALTER TABLE public.patients ALTER disease SET EXPRESSION AS ('the same')")
    assert database.execute("SELECT count(*) FROM anon.patients") == [(0,)]


@pytest.mark.parametrize("trigger", ["ALL", "dbanon_guard_1_update"])
def test_what_is_written_while_triggers_are_disabled_is_not_shown(live, trigger):
    live.execute(f"ALTER TABLE public.people DISABLE TRIGGER {trigger}")
    live.execute("UPDATE public.people SET disease = 'a', person = 1 WHERE id < 6")
    assert_all_is_hidden(live)
    modes = live.execute("SELECT tgname, tgisinternal FROM pg_trigger WHERE tgenabled = 'D'")
    for name, _ in modes:
        row = "REPLICA" if "_row_" in name else "ALWAYS"
        live.execute(f"ALTER TABLE public.people ENABLE {row} TRIGGER {name}")
    assert_all_is_hidden(live)


def test_triggers_that_are_disabled_and_enabled_in_one_transaction_hide_all(live):
    with live.connect(autocommit=False) as writer:
        writer.execute("ALTER TABLE public.people DISABLE TRIGGER dbanon_guard_1_update")
        writer.execute("UPDATE public.people SET disease = 'a' WHERE id < 6")
        writer.execute("ALTER TABLE public.people ENABLE ALWAYS TRIGGER dbanon_guard_1_update")
        assert writer.execute("SELECT count(*) FROM anon.people").fetchone() == (0,)
        writer.commit()
    assert_all_is_hidden(live)


@pytest.mark.parametrize(
    "change",
    [
        "DROP TRIGGER dbanon_guard_1_update ON public.people",
        "ALTER TRIGGER dbanon_guard_1_update ON public.people RENAME TO other",
        "ALTER FUNCTION dbanon_data.guard_1_update() COST 7",
    ],
)
def test_a_guard_that_is_gone_or_replaced_hides_all(live, change):
    live.execute(change)
    assert_all_is_hidden(live)


def test_a_view_by_which_guards_read_hides_all_once_it_is_replaced(live):
    ((text,),) = live.execute("SELECT pg_get_viewdef('dbanon_data.members_1'::regclass)")
    once = text.rstrip(";")
    live.execute(f"CREATE OR REPLACE VIEW dbanon_data.members_1 AS {once} UNION ALL {once}")
    assert_all_is_hidden(live)


def test_a_second_row_of_a_key_that_was_dropped_is_not_shown(live):
    live.execute("ALTER TABLE public.people DROP CONSTRAINT people_pkey")
    live.execute("INSERT INTO public.people SELECT 0, 99, 'x', 'impostor', 1")
    assert_all_is_hidden(live)
    live.execute(
        "DELETE FROM public.people WHERE disease = 'impostor';"
        " ALTER TABLE public.people ADD PRIMARY KEY (id)"
    )
    assert_all_is_hidden(live)


POLICY = (
    "CREATE POLICY few ON public.people USING (id % 6 = 0);"
    " ALTER TABLE public.people ENABLE ROW LEVEL SECURITY"
)


def test_row_level_security_that_hides_members_of_a_class_hides_all(live):
    old = live.connect(autocommit=False)
    old.isolation_level = IsolationLevel.REPEATABLE_READ
    old.execute("SELECT count(*) FROM pg_class")
    live.execute(POLICY)
    assert shown(live) == 24  # the owner, with whose rights the view reads, is not subject to it
    live.execute("ALTER TABLE public.people FORCE ROW LEVEL SECURITY")
    assert_all_is_hidden(live)
    assert old.execute("SELECT count(*) FROM anon.people").fetchone() == (0,)
    old.rollback()
    live.execute("ALTER TABLE public.people NO FORCE ROW LEVEL SECURITY")
    assert shown(live) == 24


def test_columns_that_trade_names_hide_all(live):
    live.execute(
        "ALTER TABLE public.people RENAME person TO spare;"
        "ALTER TABLE public.people RENAME wage TO person;"
        "ALTER TABLE public.people RENAME spare TO wage"
    )
    assert_all_is_hidden(live)


def test_a_column_that_is_made_anew_under_its_name_hides_all(live):
    live.execute("ALTER TABLE public.people DROP zip, ADD zip text DEFAULT 'elsewhere'")
    assert_all_is_hidden(live)


@pytest.mark.parametrize("rewrite", ["VACUUM FULL public.people", "CLUSTER public.people USING k"])
def test_whoever_packs_the_table_has_to_publish_again(live, rewrite):
    """For PostgreSQL does not tell what else was done when a table has another file."""
    live.execute("CREATE INDEX k ON public.people (id)")
    live.execute(rewrite)
    assert_all_is_hidden(live)


def test_a_table_that_a_crash_may_empty_is_no_longer_shown(live):
    live.execute("ALTER TABLE public.people SET UNLOGGED")
    assert_all_is_hidden(live)


@pytest.mark.parametrize(
    "change",
    [
        "VACUUM ANALYZE public.people",
        "CREATE INDEX ON public.people (person)",
        "ALTER TABLE public.people ADD note text DEFAULT '-'",
        "ALTER TABLE public.people ALTER disease SET STATISTICS 1000",
        "ALTER TABLE public.people ALTER zip SET NOT NULL, ADD CHECK (id >= 0)",
        "ALTER TABLE public.people RENAME TO persons; ALTER TABLE public.persons RENAME TO people",
        "REINDEX TABLE public.people",
        "CREATE TABLE public.other (id int REFERENCES public.people); DROP TABLE public.other",
    ],
)
def test_what_changes_no_value_is_no_matter(live, change):
    connection = live.connect()
    for statement in change.split(";"):
        connection.execute(statement)
    assert shown(live) == 24


@pytest.mark.parametrize("level", [IsolationLevel.REPEATABLE_READ, IsolationLevel.SERIALIZABLE])
def test_a_snapshot_older_than_the_file_of_the_source_sees_no_strangers(live, level):
    old = live.connect(autocommit=False)
    old.isolation_level = level
    old.execute("SELECT count(*) FROM pg_class")
    with live.connect(autocommit=False) as writer:
        writer.execute("TRUNCATE public.people")
        with writer.cursor().copy("COPY public.people FROM STDIN (FREEZE)") as copy:
            for i in range(3):
                copy.write_row((i, 1, "elsewhere", "impostor", 2))
        writer.commit()
    with pytest.raises(psycopg.errors.SerializationFailure):
        old.execute("SELECT * FROM anon.people")


def test_a_trigger_of_the_owner_s_is_no_matter(shared):
    publication = serve(shared, policy_of(K5, L2), PEOPLE)
    shared.execute(
        "CREATE FUNCTION public.own() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';"
        "CREATE TRIGGER own BEFORE UPDATE ON public.people FOR EACH ROW"
        " EXECUTE FUNCTION public.own()"
    )
    with shared.connect() as connection:  # note what stands, as a refresh does
        for statement in guards.mark_statements(replace(publication, former=1)):
            connection.execute(statement)
    shared.execute(
        "ALTER FUNCTION public.own() COST 7; ALTER TABLE public.people DISABLE TRIGGER own"
    )
    assert shown(shared) == 24
    shared.execute("DROP TABLE public.people CASCADE; DROP FUNCTION public.own()")


def test_what_would_notice_is_missed_when_it_is_gone(live):
    release = SimpleNamespace(kind=ReleaseKind.VIEW, data_id=1)
    with connect(live.settings) as session:
        with session.transaction(read_only=True, keep=False):
            assert [] == guards.alterations(session, release)
        live.execute("DROP FUNCTION dbanon_data.altered_1()")
        with session.transaction(read_only=True, keep=False):
            (told,) = guards.alterations(session, release)
    assert told.endswith("DDL on its source goes unnoticed")


def test_a_reader_needs_no_right_on_what_is_asked(live):
    reader = live.role("reader_of_marks")
    live.execute(f"GRANT USAGE ON SCHEMA anon TO {reader}; GRANT SELECT ON anon.people TO {reader}")
    connection = live.connect_as(reader)
    assert connection.execute("SELECT count(*) FROM anon.people").fetchone() == (24,)
    live.admin().execute(f"DROP OWNED BY {reader}")


def test_the_condition_is_computed_once_a_query(live):
    plan = live.execute("EXPLAIN SELECT * FROM anon.people")
    assert [line.strip() for (line,) in plan if "seen" in line] == [
        "One-Time Filter: dbanon_data.seen_1()"
    ]


def test_a_table_that_a_crash_may_empty_is_refused(database):
    table = make_patients(database)
    database.execute("ALTER TABLE public.patients SET UNLOGGED")
    dbanon.set_policy(table, patients_policy(table), settings=database.settings)
    assert dbanon.publish(table, settings=database.settings).checks.passed
    with pytest.raises(dbanon.ConfigError, match="not logged"):
        dbanon.publish(table, kind="view", settings=database.settings)


BREAKS = {
    "rewritten": "ALTER TABLE public.patients ALTER weight TYPE numeric USING weight + 0",
    "was dropped, disabled or enabled": "ALTER TABLE public.patients DISABLE TRIGGER"
    " dbanon_guard_1_update; ALTER TABLE public.patients ENABLE ALWAYS TRIGGER"
    " dbanon_guard_1_update",
    "row-level security hides": "ALTER TABLE public.patients ENABLE ROW LEVEL SECURITY;"
    " ALTER TABLE public.patients FORCE ROW LEVEL SECURITY",
    "primary key of public.patients was dropped": "ALTER TABLE public.patients"
    " DROP CONSTRAINT patients_pkey, ADD PRIMARY KEY (id)",
    "function guard_1_update was replaced": "ALTER FUNCTION dbanon_data.guard_1_update() COST 7",
    "does not hold what it promises": "CREATE OR REPLACE FUNCTION dbanon_data.seen_1()"
    " RETURNS boolean LANGUAGE sql AS 'SELECT true';"
    "ALTER TABLE public.patients DISABLE TRIGGER ALL; UPDATE public.patients SET disease = 'flu'",
}


@pytest.mark.parametrize(("message", "change"), BREAKS.items(), ids=BREAKS)
def test_doctor_counts_a_live_view_and_names_what_hides_it(database, message, change):
    table = make_patients(database)
    dbanon.set_policy(table, patients_policy(table), settings=database.settings)
    dbanon.publish(table, kind="view", settings=database.settings)
    assert [] == [f for f in dbanon.doctor(settings=database.settings) if f.exit_code]
    database.execute(change)
    found = [f for f in dbanon.doctor(settings=database.settings) if message in f.message]
    assert [("anon.patients", "dbanon refresh public.patients")] == [
        (f.subject, f.hint) for f in found
    ]


def test_a_refresh_mends_it_even_if_no_row_changed(database):
    table = make_patients(database)
    dbanon.set_policy(table, patients_policy(table), settings=database.settings)
    dbanon.publish(table, kind="view", settings=database.settings)
    options = {"if_changed": True, "settings": database.settings}
    assert [False] == [r.changed for r in dbanon.refresh("patients", **options)]
    database.connect().execute("VACUUM FULL public.patients")
    assert database.execute("SELECT count(*) FROM anon.patients") == [(0,)]
    assert [True] == [r.changed for r in dbanon.refresh("patients", **options)]
    assert database.execute("SELECT count(*) FROM anon.patients") == [(200,)]


def test_a_value_of_an_enum_that_is_renamed_hides_all(database):
    table = make_patients(database)
    database.execute(
        "CREATE TYPE public.illness AS ENUM ('disease 0', 'flu', 'other');"
        "ALTER TABLE public.patients ALTER disease TYPE public.illness USING"
        " (enum_range(NULL::public.illness))[1 + id % 3]"
    )
    dbanon.set_policy(table, patients_policy(table), settings=database.settings)
    dbanon.publish(table, kind="view", settings=database.settings)
    shown_rows = "SELECT count(*) FROM anon.patients"
    database.execute("ALTER TYPE public.illness ADD VALUE 'new'")
    assert database.execute(shown_rows) == [(200,)]
    database.execute("ALTER TYPE public.illness RENAME VALUE 'flu' TO 'cold'")
    assert database.execute(shown_rows) == [(0,)]
