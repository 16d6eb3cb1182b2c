"""Names that are found where nobody meant them: search paths, operators, temporary objects."""

import adbc_driver_postgresql
import psycopg
import pytest
from adbc_driver_manager import AdbcConnection
from psycopg import sql
from tables import make_patients, patients_policy, rows_proved

import dbanon

pytestmark = pytest.mark.usefixtures("own_drivers")  # what they query first is looked at, too

# Everything that a hostile schema may hold under the names of PostgreSQL's own.
EVIL = """
CREATE SCHEMA evil;
GRANT ALL ON SCHEMA evil TO PUBLIC;
CREATE SEQUENCE evil.caught;
GRANT ALL ON SEQUENCE evil.caught TO PUBLIC;
CREATE FUNCTION evil.catch() RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF current_user <> 'lord_of_names' THEN PERFORM nextval('evil.caught'); END IF;
    RETURN true;
END $$;
CREATE FUNCTION evil.yes(bigint, integer) RETURNS boolean LANGUAGE sql AS 'SELECT evil.catch()';
CREATE FUNCTION evil.yes(integer, integer) RETURNS boolean LANGUAGE sql AS 'SELECT evil.catch()';
CREATE FUNCTION evil.yes(oid, oid) RETURNS boolean LANGUAGE sql AS 'SELECT evil.catch()';
CREATE FUNCTION evil.yes(text, text) RETURNS boolean LANGUAGE sql AS 'SELECT evil.catch()';
CREATE FUNCTION evil.yes(regproc, integer) RETURNS boolean LANGUAGE sql AS 'SELECT evil.catch()';
CREATE OPERATOR evil.>= (LEFTARG = bigint, RIGHTARG = integer, FUNCTION = evil.yes);
CREATE FUNCTION evil.no(bigint, integer) RETURNS boolean LANGUAGE sql
    AS 'SELECT NOT evil.catch()';
CREATE OPERATOR evil.< (LEFTARG = bigint, RIGHTARG = integer, FUNCTION = evil.no);
CREATE OPERATOR evil.= (LEFTARG = integer, RIGHTARG = integer, FUNCTION = evil.yes);
CREATE OPERATOR evil.= (LEFTARG = oid, RIGHTARG = oid, FUNCTION = evil.yes);
CREATE OPERATOR evil.= (LEFTARG = text, RIGHTARG = text, FUNCTION = evil.yes);
CREATE OPERATOR evil.<> (LEFTARG = regproc, RIGHTARG = integer, FUNCTION = evil.yes);
CREATE FUNCTION evil.more(bigint) RETURNS bigint LANGUAGE sql AS 'SELECT 99::bigint';
CREATE AGGREGATE evil.count(*) (SFUNC = evil.more, STYPE = bigint, INITCOND = '99');
CREATE FUNCTION evil.current_schemas(boolean) RETURNS name[] LANGUAGE sql
    AS $$ SELECT ARRAY['evil']::name[] FROM (SELECT evil.catch()) AS c $$;
CREATE FUNCTION evil.to_regnamespace(text) RETURNS regnamespace LANGUAGE sql
    AS $$ SELECT NULL::regnamespace FROM (SELECT evil.catch()) AS c $$;
"""


@pytest.fixture
def lord(database):
    """A role that may make objects in this database, and has made hostile ones."""
    name = database.role("lord_of_names")
    database.execute(f"GRANT CREATE, TEMP ON DATABASE {database.name} TO {name}")
    connection = database.connect_as(name)
    connection.execute(EVIL)
    yield connection
    connection.close()
    admin = database.admin()
    admin.execute("DROP SCHEMA IF EXISTS anon CASCADE; DROP OWNED BY lord_of_names CASCADE")


def caught(connection):
    """Return whether anybody else ran the hostile functions since the last time."""
    (found,) = connection.execute("SELECT is_called FROM evil.caught").fetchone()
    connection.execute("SELECT setval('evil.caught', 1, false)")
    return found


# Checks.

WEAK = "CREATE TABLE public.weak AS SELECT i AS age, 'flu' AS disease FROM generate_series(1, 9) i"
NAIVE_CHECK = """
CREATE FUNCTION public.naive_check(k integer) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT min(n) >= k FROM (SELECT count(*) AS n FROM weak GROUP BY age) AS c);
END $$
"""
OURS = (
    "SELECT verdict FROM dbanon.check_k_anonymity('public.weak', ARRAY['age'], 5)",
    "SELECT verdict FROM dbanon.check_l_diversity('public.weak', ARRAY['age'], 'disease', 2)",
    "SELECT verdict FROM dbanon.check_k_and_l('public.weak', ARRAY['age'], 5, 'disease', 2)",
    "SELECT verdict FROM dbanon.check_p_sensitivity('public.weak', ARRAY['age'], 'disease', 2)",
)


@pytest.mark.parametrize(
    "trick",
    [
        "SET search_path = evil, public, pg_catalog",
        "CREATE TEMP TABLE weak AS SELECT 1 AS age FROM generate_series(1, 9)",
        (
            "CREATE TEMP TABLE weak AS SELECT 1 AS age FROM generate_series(1, 9);"
            "CREATE TEMP TABLE pg_class AS SELECT * FROM pg_catalog.pg_class WHERE relname = 'weak'"
            " AND relkind = 't';"
            "CREATE TEMP TABLE pg_namespace AS TABLE pg_catalog.pg_namespace;"
            "CREATE TEMP VIEW tally AS SELECT 1 AS class;"
            "SET search_path = pg_temp, public, pg_catalog"
        ),
    ],
    ids=["operators and aggregates", "a temporary table", "temporary catalogs"],
)
def test_a_check_cannot_be_talked_round(database, lord, trick):
    database.execute(f"{WEAK}; GRANT SELECT ON public.weak TO PUBLIC")
    database.execute(NAIVE_CHECK)
    database.execute("GRANT USAGE ON SCHEMA dbanon TO PUBLIC")
    assert lord.execute("SELECT public.naive_check(5)").fetchone() == (False,)
    lord.execute("DISCARD PLANS")
    lord.execute(trick)
    assert lord.execute("SELECT public.naive_check(5)").fetchone() == (True,)
    for statement in OURS:
        assert {("failed",)} == set(lord.execute(statement).fetchall())


# Guards.

NAIVE_GUARD = """
CREATE TABLE public.member AS SELECT i AS id, true AS shown FROM generate_series(1, 5) AS i;
CREATE TABLE public.state AS SELECT true AS shown;
CREATE FUNCTION public.naive_guard() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    IF (SELECT count(*) FROM member) < 5 THEN UPDATE public.state SET shown = false; END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER t AFTER DELETE ON public.member EXECUTE FUNCTION public.naive_guard();
GRANT ALL ON public.member, public.state TO PUBLIC;
"""


@pytest.mark.exhaustive
def test_a_guard_cannot_be_talked_round(database, lord):
    table = make_patients(database)
    dbanon.set_policy(table, patients_policy(table), settings=database.settings)
    dbanon.publish(table, kind="view", settings=database.settings)
    database.execute(NAIVE_GUARD)
    database.execute("GRANT SELECT, DELETE ON public.patients TO PUBLIC")
    lord.execute(
        "CREATE TEMP TABLE member AS SELECT generate_series(1, 9);"
        "CREATE TEMP TABLE removed AS SELECT * FROM public.patients WHERE false;"
        "CREATE TEMP TABLE added AS SELECT * FROM public.patients WHERE false;"
        "CREATE TEMP TABLE patients AS SELECT * FROM public.patients;"
        "SET search_path = pg_temp, evil, public, pg_catalog"
    )
    lord.execute("DELETE FROM public.member WHERE public.member.id OPERATOR(pg_catalog.>) 1")
    assert database.execute("SELECT shown FROM public.state") == [(True,)]

    caught(lord)
    keys = database.execute("SELECT k1 FROM dbanon_data.rows_1 WHERE group_id = 0 OFFSET 1")
    for (key,) in keys:
        lord.execute(
            "DELETE FROM public.patients WHERE public.patients.id OPERATOR(pg_catalog.=) %s", (key,)
        )
    shown = "SELECT count(*) FROM anon.patients"
    assert database.execute(shown) == [(200 - len(keys) - 1,)]
    assert not caught(lord)


# Publishing.


@pytest.mark.exhaustive
def test_the_driver_s_own_questions_are_answered_by_postgresql(database, lord):
    owner = sql.Identifier(database.server.owner)
    database.execute(sql.SQL("ALTER ROLE {} SET search_path = evil").format(owner))
    try:
        with adbc_driver_postgresql.connect(database.dsn) as driver, AdbcConnection(driver):
            pass
        assert caught(lord)
        table = make_patients(database)
        dbanon.set_policy(table, patients_policy(table), settings=database.settings)
        assert rows_proved(dbanon.publish(table, settings=database.settings)) == 200
    finally:
        database.execute(sql.SQL("ALTER ROLE {} RESET search_path").format(owner))
    assert not caught(lord)


SETTINGS = {
    "search_path": "evil, public, pg_catalog",
    "standard_conforming_strings": "off",
    "backslash_quote": "on",
    "array_nulls": "off",
    "transform_null_equals": "on",
    "constraint_exclusion": "on",
    "default_transaction_isolation": "serializable",
    "default_transaction_deferrable": "on",
    "DateStyle": "German, DMY",
    "IntervalStyle": "sql_standard",
    "TimeZone": "Asia/Kathmandu",
    "extra_float_digits": "-15",
    "bytea_output": "escape",
    "row_security": "off",
    "check_function_bodies": "off",
    "plan_cache_mode": "force_generic_plan",
    "plpgsql.variable_conflict": "use_column",
    "quote_all_identifiers": "on",
}


@pytest.mark.exhaustive
def test_settings_of_the_database_change_nothing(database, lord):
    table = make_patients(database)
    dbanon.set_policy(table, patients_policy(table, k=5, l=3), settings=database.settings)
    dbanon.publish(table, settings=database.settings, name="before")
    for name, value in SETTINGS.items():
        statement = sql.SQL("ALTER DATABASE {} SET {} = {}").format(
            sql.Identifier(database.name),
            sql.SQL(name),
            sql.SQL(value) if name == "search_path" else sql.Literal(value),
        )
        database.admin().execute(statement)
    with psycopg.connect(database.dsn) as connection:
        naive = "SELECT count(*) >= 500 FROM public.patients"
        assert connection.execute(naive).fetchone() == (True,)
    assert caught(lord)

    for kind in ("table", "view"):
        release = dbanon.publish(table, kind=kind, name=kind, settings=database.settings)
        assert rows_proved(release) == 200
        assert dbanon.check(release.relation, settings=database.settings).passed
    assert not caught(lord)
    compare = "TABLE anon.{} EXCEPT ALL TABLE anon.before"
    with database.admin() as admin:
        admin.execute("SET search_path = pg_catalog")
        assert [[], []] == [admin.execute(compare.format(k)).fetchall() for k in ("table", "view")]
        for name in SETTINGS:
            admin.execute(
                sql.SQL("ALTER DATABASE {} RESET {}").format(
                    sql.Identifier(database.name), sql.SQL(name)
                )
            )


# A metadata schema that was there first.

FAKE = """
CREATE OR REPLACE FUNCTION dbanon.check_k_and_l(
    relation regclass, quasi_identifiers text[], k integer, sensitive text, l integer
) RETURNS TABLE (model text, required integer, achieved bigint, classes bigint,
                 failing_classes bigint, row_count bigint, verdict text)
LANGUAGE sql AS $$
    SELECT m, 1, 9::bigint, 1::bigint, 0::bigint, 9::bigint, 'passed'
      FROM (VALUES ('k-anonymity'), ('l-diversity')) AS v (m), (SELECT evil.catch()) AS c
$$;
"""


@pytest.mark.parametrize(
    "squat",
    [
        "",
        "ALTER SCHEMA dbanon_data OWNER TO lord_of_names",
        "GRANT CREATE ON SCHEMA dbanon TO lord_of_names",
    ],
    ids=["the schema dbanon", "the schema of the data", "a right to make functions"],
)
def test_functions_of_a_stranger_prove_nothing(database, lord, squat):
    table = make_patients(database)
    dbanon.set_policy(table, patients_policy(table), settings=database.settings)
    admin = database.admin()
    if squat:
        admin.execute(squat)
    else:
        admin.execute("ALTER SCHEMA dbanon OWNER TO lord_of_names")
        lord.execute("DROP FUNCTION dbanon.check_k_and_l; GRANT ALL ON SCHEMA dbanon TO PUBLIC")
    if "dbanon_data" not in squat:
        overload = FAKE.replace("quasi_identifiers text[]", "quasi_identifiers text")
        lord.execute(overload if squat else FAKE)
        database.execute(WEAK)
        naive = "SELECT verdict FROM dbanon.check_k_and_l('public.weak', {}, 5, 'disease', 2)"
        names = "'{age}'" if squat else "ARRAY['age']"
        assert {("passed",)} == set(database.execute(naive.format(names)))
        assert caught(lord)
    for action in (dbanon.publish, dbanon.plan, dbanon.set_policy):
        more = (patients_policy(table),) if action is dbanon.set_policy else ()
        with pytest.raises(dbanon.NotPermitted, match="lord_of_names"):
            action(table, *more, settings=database.settings)
    with pytest.raises(dbanon.NotPermitted, match="lord_of_names"):
        dbanon.init(database.settings)
    assert not caught(lord)
    admin.execute(
        sql.SQL("REASSIGN OWNED BY lord_of_names TO {}").format(
            sql.Identifier(database.server.owner)
        )
    )


def test_a_trigger_of_a_stranger_on_the_metadata_is_not_fired(database, lord):
    table = make_patients(database)
    dbanon.set_policy(table, patients_policy(table), settings=database.settings)
    database.execute(
        "GRANT USAGE ON SCHEMA dbanon TO lord_of_names;"
        "GRANT TRIGGER ON dbanon.policy TO lord_of_names"
    )
    lord.execute(
        "CREATE FUNCTION evil.fired() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN PERFORM evil.catch(); RETURN NULL; END $$;"
        "CREATE TRIGGER t AFTER UPDATE ON dbanon.policy EXECUTE FUNCTION evil.fired()"
    )
    database.execute("UPDATE dbanon.policy SET updated_at = now()")
    assert caught(lord)
    with pytest.raises(dbanon.NotPermitted, match=r"trigger t of dbanon\.policy"):
        dbanon.set_policy(table, patients_policy(table), settings=database.settings)
    assert not caught(lord)
