"""What a role, a database or a server is set to ends no long publication, and changes none."""

import time

import pytest
from adbc_driver_manager import AdbcStatement
from psycopg import sql
from tables import define_patients, patients_policy

import dbanon
from dbanon.anonymization import linked
from dbanon.db import identity, transfer
from dbanon.db.session import connect
from dbanon.domain.errors import NotPermitted
from dbanon.domain.policy import ColumnRule, Role

pytestmark = pytest.mark.usefixtures("own_drivers")  # what they query first is looked at, too

# What a role is set to, and what a session of dbanon goes by.
SETTINGS = {
    "statement_timeout": ("10min", "0"),
    "idle_in_transaction_session_timeout": ("10min", "0"),
    "lock_timeout": ("10min", "1min"),
    "default_transaction_read_only": ("on", "off"),
    "default_transaction_isolation": ("serializable", "read committed"),
    "default_transaction_deferrable": ("on", "off"),
    "exit_on_error": ("on", "off"),
    "array_nulls": ("off", "on"),
    "transform_null_equals": ("on", "off"),
    "standard_conforming_strings": ("off", "on"),
    "row_security": ("off", "on"),
    "quote_all_identifiers": ("on", "off"),
    "check_function_bodies": ("off", "on"),
    "enable_tidscan": ("off", "on"),
    "synchronous_commit": ("off", "local"),
    "DateStyle": ("German", "ISO, YMD"),
}
NEWER = {"idle_session_timeout": 140_000, "transaction_timeout": 170_000}


@pytest.fixture
def patients(copied):
    """A table with a policy."""
    return copied(define_patients)


def set_for_role(database, **settings):
    words = [database.server.owner, database.name]
    with database.admin() as admin:
        for name, value in settings.items():
            statement = sql.SQL("ALTER ROLE {} IN DATABASE {} SET {} = {}").format(
                *map(sql.Identifier, [*words, name]), sql.Literal(value)
            )
            admin.execute(statement)


def slowly(read):
    def slow(session, info):
        return sql.SQL("(SELECT pg_sleep(0.6)) AS nap, {}").format(read(session, info))

    return slow


def publish_slowly(patients, monkeypatch):
    """Publish with statements and a search that each take longer than a timeout.

    Returns how many rows the release should show, and how many it shows.
    """
    solve = linked.solve

    def search(*arguments, **options):
        time.sleep(0.6)
        return solve(*arguments, **options)

    for name in ("readable", "readable_elsewhere"):
        monkeypatch.setattr(identity, name, slowly(getattr(identity, name)))
    monkeypatch.setattr(linked, "solve", search)
    release = dbanon.publish("patients", settings=patients.settings)
    with patients.admin() as admin:
        (shown,) = admin.execute("SELECT count(*) FROM anon.patients").fetchone()
    return 200 - release.loss.n_suppressed, shown


@pytest.mark.parametrize("name", ["statement_timeout", "idle_in_transaction_session_timeout"])
def test_a_long_publication_is_not_ended_by_a_timeout(patients, monkeypatch, name):
    set_for_role(patients, **{name: "500ms"})
    expected, shown = publish_slowly(patients, monkeypatch)
    assert expected == shown > 0


@pytest.mark.pg(">= 17")
def test_a_long_publication_is_not_ended_by_a_timeout_of_transactions(patients, monkeypatch):
    set_for_role(patients, transaction_timeout="900ms")
    expected, shown = publish_slowly(patients, monkeypatch)
    assert expected == shown > 0


def test_a_role_that_reads_only_by_default_publishes(patients):
    set_for_role(patients, default_transaction_read_only="on")
    assert dbanon.publish("patients", settings=patients.settings).id == 1


def test_every_session_goes_by_settings_of_its_own(patients, server):
    version = 10_000 * server.version
    asked = SETTINGS | {n: ("10min", "0") for n, since in NEWER.items() if version >= since}
    set_for_role(patients, **{name: found for name, (found, _) in asked.items()})
    wanted = {name: meant for name, (_, meant) in asked.items()}
    with connect(patients.settings) as session, session.transaction(snapshot=True):
        here = {name: session.pg.execute("SELECT current_setting(%s)", (name,)) for name in asked}
        assert wanted == {name: cursor.fetchone()[0] for name, cursor in here.items()}
        (snapshot,) = session.pg.execute("SELECT pg_export_snapshot()").fetchone()
        values = sql.SQL(", ").join(
            sql.SQL("current_setting({})").format(sql.Literal(name)) for name in asked
        )
        with (
            transfer._reader(session, snapshot) as reader,  # noqa: SLF001 - the very session
            AdbcStatement(reader) as query,
        ):
            query.set_sql_query(sql.SQL("SELECT {}").format(values).as_string(session.pg))
            read = transfer._fetch(query, list(asked), keys=len(asked))  # noqa: SLF001
        assert [wanted] == read.to_pylist()
        with session.fresh() as other:
            assert ("0",) == other.execute("SELECT current_setting('statement_timeout')").fetchone()


@pytest.mark.pg(">= 17")
def test_a_login_that_uses_a_temporary_table_stops_nothing(patients):
    """Afterwards, a session can no longer change how much of these is in memory."""
    with patients.admin() as admin:
        admin.execute(
            "CREATE FUNCTION public.greet() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN"
            " CREATE TEMPORARY TABLE greeted AS SELECT 1; END $$;"
            " CREATE EVENT TRIGGER greet ON login EXECUTE FUNCTION public.greet()"
        )
    assert dbanon.publish("patients", settings=patients.settings).id == 1


def test_what_is_published_does_not_depend_on_settings(patients):
    columns = tuple(
        ColumnRule("weight", Role.QUASI, recoding="set") if rule.column == "weight" else rule
        for rule in patients_policy(dbanon.TableName("public", "patients")).columns
    )
    policy = patients_policy(dbanon.TableName("public", "patients"))
    policy = type(policy)(table=policy.table, columns=columns, models=policy.models)
    patients.execute("ALTER TABLE public.patients ALTER weight TYPE text")
    dbanon.set_policy("patients", policy, settings=patients.settings)
    with patients.admin() as admin:
        admin.execute("CREATE ACCESS METHOD other TYPE TABLE HANDLER heap_tableam_handler")
    set_for_role(patients, array_nulls="off", default_table_access_method="other")
    dbanon.publish("patients", settings=patients.settings)
    held = "SELECT bool_or(array_position(weight, {}) > 0) FROM anon.patients"
    assert patients.execute(held.format("NULL")) == [(True,)]
    assert patients.execute(held.format("'NULL'")) != [(True,)]
    method = "SELECT DISTINCT amname FROM pg_class AS c JOIN pg_am AS m ON m.oid = c.relam"
    assert patients.execute(
        f"{method} WHERE relnamespace = 'dbanon_data'::regnamespace AND relkind = 'r'"
    ) == [("heap",)]


@pytest.mark.parametrize("settings", [{}, {"parallel_setup_cost": "0", "cpu_operator_cost": "9"}])
def test_rows_are_read_in_the_order_of_the_table(bare_database, settings):
    """Otherwise a scan begins where another one is, and workers mix their rows."""
    bare_database.execute("CREATE TABLE public.wide (id int PRIMARY KEY, filler text)")
    bare_database.execute("ALTER TABLE public.wide ALTER filler SET STORAGE PLAIN")
    bare_database.execute(
        "INSERT INTO public.wide SELECT n, repeat('x', 8000) FROM generate_series(1, 10000) AS n"
    )
    bare_database.execute("VACUUM ANALYZE public.wide")
    set_for_role(bare_database, **settings)
    with bare_database.connect() as other, connect(bare_database.settings) as session:
        other.execute("SELECT 1 FROM (SELECT id FROM public.wide OFFSET 5000 LIMIT 1) AS half")
        with session.transaction(snapshot=True):
            (snapshot,) = session.pg.execute("SELECT pg_export_snapshot()").fetchone()
            with (
                transfer._reader(session, snapshot) as reader,  # noqa: SLF001 - the very session
                AdbcStatement(reader) as query,
            ):
                query.set_sql_query("SELECT id FROM public.wide WHERE filler <> ''")
                read = transfer._fetch(query, ["id"], keys=1)  # noqa: SLF001
    assert list(range(1, 10_001)) == read.column("id").to_pylist()


def test_what_cannot_be_undone_is_refused_with_a_hint(patients):
    set_for_role(patients, session_replication_role="replica")
    with pytest.raises(NotPermitted, match="session_replication_role") as refused:
        dbanon.publish("patients", settings=patients.settings)
    assert "RESET" in refused.value.hint


def test_a_connection_that_waits_for_the_search_is_kept_alive(patients):
    with connect(patients.settings) as session:
        assert "60" == session.pg.info.get_parameters()["keepalives_idle"]
    given = dbanon.Settings(dsn=f"{patients.dsn} keepalives_idle=7")
    with connect(given) as session:
        assert "7" == session.pg.info.get_parameters()["keepalives_idle"]


def test_memory_that_is_spared_for_catalogs_is_there_again_for_rows(bare_database):
    def room(session):
        return session.pg.execute("SHOW work_mem")

    with connect(bare_database.settings) as session, session.transaction():
        session.allow_memory()
        with session.sparing_memory():
            spared = room(session)
        assert ("1MB",) == spared.fetchone()
        assert ("256MB",) == room(session).fetchone()


def test_a_transaction_that_another_has_ended_or_that_is_interrupted_commits_nothing(database):
    database.execute("CREATE TABLE public.stored (id int)")

    def store(number):
        session.pg.execute("INSERT INTO public.stored VALUES (%s)", (number,))

    def nest():
        with session.transaction():
            with session.transaction():
                store(1)
            store(2)

    def interrupt():
        with session.transaction():
            store(3)
            raise KeyboardInterrupt

    with connect(database.settings) as session:
        for work, error in ((nest, AssertionError), (interrupt, KeyboardInterrupt)):
            with pytest.raises(error):
                work()
    assert database.execute("SELECT id FROM public.stored") == [(1,)]
