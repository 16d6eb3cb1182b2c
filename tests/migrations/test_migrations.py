import psycopg
import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from tables import make_patients, patients_policy

import dbanon
from dbanon import resources
from dbanon.actions.init import init, init_sql
from dbanon.db.metadata import migrate, tables
from dbanon.db.metadata.migrate import current_session
from dbanon.db.session import connect
from dbanon.domain.errors import SchemaOutOfDate

CURRENT = {"revision": tables.REVISION, "lost": [], "lacking": []}


def test_the_known_revision_is_the_newest():
    config = Config()
    config.set_main_option("script_location", str(resources.migrations()))
    assert ScriptDirectory.from_config(config).get_current_head() == tables.REVISION


def test_migrations_make_exactly_the_metadata(database):
    def ours(name, type_, _parent_names):
        return name == tables.SCHEMA if type_ == "schema" else True

    engine = sa.create_engine(
        "postgresql+psycopg://", creator=lambda: psycopg.connect(database.dsn)
    )
    with engine.connect() as connection:
        options = {
            "include_schemas": True,
            "include_name": ours,
            "version_table_schema": tables.SCHEMA,
            "compare_server_default": False,
        }
        context = MigrationContext.configure(connection, opts=options)
        differences = compare_metadata(context, tables.metadata)
    engine.dispose()
    assert differences == []


def test_init_is_idempotent(bare_database):
    assert {"changed": True, "former": None, **CURRENT} == init(bare_database.settings)
    again = {"changed": False, "former": tables.REVISION, **CURRENT}
    assert again == init(bare_database.settings)


def test_the_printed_sql_is_what_is_run():
    assert "dbanon.publishing TO %s'" in init_sql()


def test_the_printed_sql_installs_the_same(bare_database):
    bare_database.execute(init_sql())
    assert init(bare_database.settings)["changed"] is False
    with current_session(bare_database.settings) as session:
        assert migrate.state(session) == (tables.REVISION, migrate.stamp())


def test_init_restores_functions_of_another_version(database):
    database.execute("DROP FUNCTION dbanon.check_k_anonymity(regclass, text[], integer)")
    database.execute("COMMENT ON SCHEMA dbanon IS 'something older'")
    assert init(database.settings)["changed"] is True
    found = database.execute("SELECT to_regproc('dbanon.check_k_anonymity') IS NOT NULL")
    assert found == [(True,)]


def test_init_refuses_a_newer_schema(database):
    database.execute("UPDATE dbanon.alembic_version SET version_num = '9999'")
    database.execute("COMMENT ON SCHEMA dbanon IS 'something newer'")
    with pytest.raises(SchemaOutOfDate, match="9999"):
        init(database.settings)


def test_functions_of_another_version_are_named_where_the_revision_is_the_same(database):
    stamp = f"dbanon metadata: revision {tables.REVISION}, functions 0"
    database.execute(f"COMMENT ON SCHEMA dbanon IS '{stamp}'")
    refused = pytest.raises(SchemaOutOfDate, match="of this program: functions differ")
    with refused, current_session(database.settings):
        pass


def test_a_database_without_metadata_is_told_to_init(bare_database):
    with (
        pytest.raises(SchemaOutOfDate, match="no dbanon metadata schema") as caught,
        current_session(bare_database.settings),
    ):
        pass
    assert caught.value.hint == "dbanon init"


def test_init_leaves_tables_of_the_user_alone(bare_database):
    bare_database.execute("CREATE TABLE public.mine (id int)")
    init(bare_database.settings)
    assert bare_database.execute("SELECT count(*) FROM public.mine") == [(0,)]


def downgrade(database, revision):
    from alembic import command

    with connect(database.settings) as session, session.transaction():
        config = Config()
        config.set_main_option("script_location", str(resources.migrations()))
        config.set_main_option("path_separator", "os")
        config.attributes["connection"] = session.sa
        command.downgrade(config, revision)


def test_a_downgrade_does_not_continue_a_series_that_was_forgotten(database):
    table = make_patients(database)
    dbanon.set_policy(table, patients_policy(table), settings=database.settings)
    release = dbanon.publish(table, settings=database.settings)
    dbanon.drop_release(release.id, settings=database.settings)
    dbanon.forget_series(release.id, settings=database.settings)
    with pytest.raises(dbanon.DatabaseError, match="P0001"):
        downgrade(database, "0012")


def test_downgrade_removes_every_table(database):
    downgrade(database, "base")
    left = database.execute(
        "SELECT relname FROM pg_class WHERE relnamespace = 'dbanon'::regnamespace AND relkind = 'r'"
    )
    assert left == [("alembic_version",)]


def test_a_policy_from_before_there_were_names_is_the_default(database):
    table = make_patients(database)
    settings = database.settings
    dbanon.set_policy(table, patients_policy(table), settings=settings)
    dbanon.publish(table, settings=settings)
    downgrade(database, "0005")
    database.execute("COMMENT ON SCHEMA dbanon IS 'dbanon metadata: revision 0005'")
    assert {"changed": True, "former": "0005", **CURRENT} == init(settings)
    assert ["default"] == [one.policy.name for one in dbanon.list_policies(settings=settings)]
    (refreshed,) = dbanon.refresh(table, if_changed=True, settings=settings)
    assert (False, "default") == (refreshed.changed, refreshed.release.policy_name)
    events = dbanon.policy_history(table, settings=settings)
    assert [("published", None), ("stored", 1)] == [(e.deed, e.version) for e in events]
    database.execute("ALTER TABLE public.patients ADD hiv boolean")  # the table is remembered
    with pytest.raises(dbanon.DriftError, match="column hiv is new"):
        dbanon.publish(table, settings=settings)


def test_who_could_store_policies_can_after_the_upgrade(database):
    steward = database.role("steward")
    downgrade(database, "0005")
    database.execute(f"GRANT SELECT, INSERT, UPDATE ON dbanon.policy TO {steward}")
    init(database.settings)
    may = "SELECT has_table_privilege(%s, 'dbanon.policy_version', %s)"
    asked = ("SELECT", "INSERT", "UPDATE")
    found = [database.execute(may, (steward, right)) == [(True,)] for right in asked]
    assert [True, True, False] == found


def test_init_brings_an_older_schema_up_to_date(database):
    downgrade(database, "0001")
    database.execute("COMMENT ON SCHEMA dbanon IS 'dbanon metadata: revision 0001'")
    with pytest.raises(SchemaOutOfDate), current_session(database.settings):
        pass
    assert {"changed": True, "former": "0001", **CURRENT} == init(database.settings)
    assert database.execute("SELECT content FROM dbanon.release") == []


def test_what_no_worker_could_read_is_repaired_by_the_upgrade(database):
    downgrade(database, "0014")
    database.execute(
        "INSERT INTO dbanon.schedule (table_schema, table_name, cron, zone, stored_at) VALUES"
        " ('public', 'a', '@daily', 'UTC', 'infinity'),"
        " ('public', 'b', '@daily', 'UTC', '0044-03-15 BC'),"
        " ('public', 'c', '@daily', 'UTC', '2026-01-01')"
    )
    database.execute(
        "INSERT INTO dbanon.job (table_schema, table_name, state, due_at, attempts) VALUES"
        " ('public', 'a', 'failed', 'infinity', 0), ('public', 'b', 'failed', NULL, 2147483647),"
        " ('public', 'c', 'failed', '2026-01-01', 3)"
    )
    init(database.settings)
    jobs = database.execute("SELECT table_name, attempts FROM dbanon.job")
    schedules = database.execute(
        "SELECT table_name, stored_at > now() - interval '1 hour' AND stored_at <= now()"
        " FROM dbanon.schedule ORDER BY table_name"
    )
    assert [("c", 3)] == jobs
    assert [("a", True), ("b", True), ("c", False)] == schedules
