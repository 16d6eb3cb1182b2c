import gzip
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa
from alembic.config import Config
from alembic.script import ScriptDirectory

import dbanon
from dbanon import resources
from dbanon.actions.init import init, init_sql
from dbanon.db.metadata import migrate, tables
from dbanon.db.metadata.migrate import current_session
from dbanon.db.schemas import SCHEMA
from dbanon.domain.errors import SchemaOutOfDate

CURRENT = {"revision": migrate.REVISION, "lost": [], "lacking": []}


def revisions():
    config = Config()
    config.set_main_option("script_location", str(resources.migrations()))
    return ScriptDirectory.from_config(config)


@pytest.mark.wheel
def test_the_known_revision_is_the_newest():
    assert revisions().get_current_head() == migrate.REVISION


# All of the tables that a dump would hold, but for how columns are stored and what they hold.
CATALOG = """
SELECT c.relname::text, a.attnum::int, a.attname::text, format_type(a.atttypid, a.atttypmod),
       concat_ws(' ', a.attnotnull, a.attidentity, pg_get_expr(d.adbin, d.adrelid))
  FROM pg_class AS c
  JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0
  LEFT JOIN pg_attrdef AS d ON d.adrelid = c.oid AND d.adnum = a.attnum
 WHERE c.relnamespace = 'dbanon'::regnamespace AND c.relkind = 'r'
UNION ALL
SELECT c.relname::text, 0, n.conname::text, n.contype::text, pg_get_constraintdef(n.oid)
  FROM pg_class AS c
  JOIN pg_constraint AS n ON n.conrelid = c.oid
 WHERE c.relnamespace = 'dbanon'::regnamespace
UNION ALL
SELECT c.relname::text, 0, i.indexrelid::regclass::text, 'index', pg_get_indexdef(i.indexrelid)
  FROM pg_class AS c
  JOIN pg_index AS i ON i.indrelid = c.oid
 WHERE c.relnamespace = 'dbanon'::regnamespace
UNION ALL
SELECT c.relname::text, 0, concat(c.relacl), 'comment', obj_description(c.oid, 'pg_class')
  FROM pg_class AS c
 WHERE c.relnamespace = 'dbanon'::regnamespace AND c.relkind = 'r'
 ORDER BY 1, 2, 3
"""


def catalog(database):
    return [row for row in database.execute(CATALOG) if row[0] != "alembic_version"]


@pytest.mark.wheel
def test_migrations_make_exactly_the_metadata(database, bare_database):
    engine = sa.create_engine(
        "postgresql+psycopg://", creator=lambda: psycopg.connect(bare_database.dsn)
    )
    with engine.begin() as connection:
        connection.execute(sa.schema.CreateSchema(SCHEMA))
        tables.metadata.create_all(connection)
    engine.dispose()
    assert catalog(bare_database) == catalog(database) != []


def restore(database):
    """Make the database of the first revision, which a dump holds."""
    packed = (Path(__file__).parents[1] / "data" / "revision-0015.sql.gz").read_bytes()
    dumped = gzip.decompress(packed).decode()
    database.execute(dumped.replace("THE_OWNER", database.server.owner))


def test_a_database_of_the_first_revision_has_the_same_tables(database, bare_database):
    restore(bare_database)
    init(bare_database.settings)
    assert catalog(database) == catalog(bare_database)


@pytest.mark.wheel
def test_a_database_of_the_first_revision_is_upgraded_with_all_that_it_holds(bare_database):
    database, settings = bare_database, bare_database.settings
    restore(database)
    assert "0015" == init(settings)["former"]
    assert {"ok"} == {found.level for found in dbanon.doctor(settings=settings)}
    assert dbanon.check("anon.people", settings=settings).passed
    database.execute(
        "INSERT INTO public.people SELECT i, 30 + i % 7, 'F', chr(97 + i % 4)"
        " FROM generate_series(101, 120) AS i"
    )
    (refreshed,) = dbanon.refresh("people", settings=settings)
    # Its copy has no class numbers, by which classes are kept.
    assert (True, None) == (refreshed.changed, refreshed.growth)
    assert refreshed.regrouped or refreshed.release.sharing
    assert refreshed.release.checks.passed
    events = dbanon.policy_history("people", settings=settings)
    assert ["published", "published", "published", "stored"] == [e.operation for e in events]
    assert [("0 3 * * *", "UTC")] == database.execute("SELECT cron, zone FROM dbanon.schedule")
    with pytest.raises(dbanon.Unsatisfiable, match="budget"):  # half of it is spent
        dbanon.count("anon.people", by=["sex"], epsilon=0.6, settings=settings)


def test_the_number_of_new_rows_of_a_release_gets_its_present_name(bare_database):
    database = bare_database
    restore(database)
    init(database.settings)
    growth = (
        """UPDATE dbanon.release SET growth = '{"kept": 7, "births": 2}' WHERE release_id = 1"""
    )
    database.execute(growth)
    database.execute("DROP TABLE dbanon.history_class, dbanon.policy_approval")
    database.execute("DROP TABLE dbanon.approval_demand")
    database.execute("ALTER TABLE dbanon.release DROP COLUMN policy_version")
    database.execute("UPDATE dbanon.alembic_version SET version_num = '0020'")
    database.execute("COMMENT ON SCHEMA dbanon IS 'dbanon metadata: revision 0020, functions 0'")
    assert "0020" == init(database.settings)["former"]
    stored = "SELECT growth FROM dbanon.release WHERE release_id = 1"
    assert [({"kept": 7, "inserted": 2},)] == database.execute(stored)


@pytest.mark.parametrize(
    "damage",
    ["SELECT 1", "DELETE FROM dbanon.alembic_version", "DROP TABLE dbanon.alembic_version"],
)
def test_init_refuses_what_was_never_released_and_changes_nothing(database, damage):
    database.execute("UPDATE dbanon.alembic_version SET version_num = '0012'")
    database.execute("COMMENT ON SCHEMA dbanon IS 'dbanon metadata: revision 0012, functions 0'")
    database.execute(damage)
    before = database.execute(CATALOG)
    told = rf"revision 0012, .* from {revisions().get_base()} on; nothing was changed"
    with pytest.raises(SchemaOutOfDate, match=told) as refused:
        init(database.settings)
    assert "dbanon init from a checkout" in refused.value.hint
    assert before == database.execute(CATALOG)
    with pytest.raises(SchemaOutOfDate), current_session(database.settings):
        pass


def test_init_is_idempotent(bare_database):
    assert {"changed": True, "former": None, **CURRENT} == init(bare_database.settings)
    again = {"changed": False, "former": migrate.REVISION, **CURRENT}
    assert again == init(bare_database.settings)


@pytest.mark.wheel
def test_the_printed_sql_installs_the_same(bare_database):
    bare_database.execute(init_sql())
    assert init(bare_database.settings)["changed"] is False
    with current_session(bare_database.settings) as session:
        assert migrate.state(session) == (migrate.REVISION, migrate.stamp())


@pytest.mark.wheel
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


@pytest.mark.parametrize("other", ["0012", "9999", "no revision"])
def test_two_revisions_are_one_error_and_change_nothing(database, other):
    database.execute("INSERT INTO dbanon.alembic_version VALUES (%s)", (other,))
    database.execute("COMMENT ON SCHEMA dbanon IS 'something older'")
    before = database.execute(CATALOG)
    told = pytest.raises(SchemaOutOfDate, match="alembic_version has 2 rows")
    with told as refused:
        init(database.settings)
    assert "dbanon init" in refused.value.hint
    with told, current_session(database.settings):
        pass
    assert before == database.execute(CATALOG)


def test_functions_of_another_version_are_named_where_the_revision_is_the_same(database):
    stamp = f"dbanon metadata: revision {migrate.REVISION}, functions 0"
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
