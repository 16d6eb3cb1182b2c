"""Not SELECT alone leads readers to what a release hides: each way is tried, then refused."""

import contextlib

import psycopg
import pytest
from moles import TABLE, K, add_mole, assert_refused, make_people
from psycopg.conninfo import make_conninfo
from psycopg.types.json import Jsonb

import dbanon
from dbanon.db import rights
from dbanon.db.session import connect


@pytest.fixture(scope="module")
def original(server, template):
    """A database with people who are published live."""
    with server.database(template) as database:
        make_people(database)
        database.close()
        yield database


@pytest.fixture
def live(server, original):
    """A copy of it, with a mole among the readers."""
    with server.database(original.name) as database:
        add_mole(database)
        yield database


def smallest(connection):
    """Return the size of the smallest class that a reader sees."""
    statement = "SELECT min(n) FROM (SELECT count(*) FROM anon.people GROUP BY age) AS c (n)"
    return connection.execute(statement).fetchone()[0]


def hide_a_class_of_one(database):
    """Leave one person of the oldest class, which its guard hides."""
    database.execute(
        "DELETE FROM public.people WHERE id > 35 AND id < 40;"
        "DELETE FROM public.people WHERE id BETWEEN 30 AND 35"
    )


UNHIDE = "UPDATE dbanon_data.groups_1 SET shown = true"


def test_who_shows_a_hidden_class_again_is_no_reader(live):
    hide_a_class_of_one(live)
    live.execute("GRANT USAGE ON SCHEMA dbanon_data TO mole")
    live.execute("GRANT UPDATE (shown) ON dbanon_data.groups_1 TO mole")
    mole = live.connect_as("mole")
    before = smallest(mole)
    mole.execute(UNHIDE)
    assert (before >= K, smallest(mole)) == (True, 1)
    assert_refused(live, "mole can write dbanon_data.groups_1")


@pytest.mark.pg(">= 14")
def test_who_writes_all_data_is_no_reader(live):
    hide_a_class_of_one(live)
    live.admin().execute("GRANT pg_write_all_data TO mole")
    mole = live.connect_as("mole")
    mole.execute(UNHIDE)
    assert smallest(mole) == 1
    assert_refused(live, "mole can write dbanon.alembic_version as pg_write_all_data")


def test_who_rewrites_the_policy_is_no_reader(live):
    live.execute("GRANT USAGE ON SCHEMA dbanon TO mole")
    live.execute("GRANT UPDATE ON dbanon.policy TO mole")
    (document,) = live.execute("SELECT document FROM dbanon.policy")[0]
    roles = {"age": "insensitive", "practice": "quasi"}
    for rule in document["columns"]:
        rule["role"] = roles.get(rule["column"], rule["role"])
    mole = live.connect_as("mole")
    mole.execute("UPDATE dbanon.policy SET document = %s", (Jsonb(document),))
    told = "mole can write dbanon.policy"
    assert any(told in f.message for f in dbanon.doctor(settings=live.settings))
    with pytest.raises(dbanon.PolicyError, match="is not its newest version"):
        dbanon.refresh(TABLE, settings=live.settings)
    assert smallest(mole) >= K
    with pytest.raises(dbanon.NotPermitted, match=told):
        dbanon.grant("anon.people", ["mole"], settings=live.settings)


def test_who_puts_a_trigger_on_the_source_of_a_table_release_is_no_reader(live):
    live.execute("REVOKE ALL ON anon.people FROM mole")
    dbanon.publish(TABLE, name="still", grants=["mole"], settings=live.settings)
    live.execute("GRANT TRIGGER ON public.people TO mole")
    live.connect_as("mole").execute(
        "CREATE TABLE mole.raw (row text);"
        "CREATE FUNCTION mole.copies() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS"
        " 'BEGIN INSERT INTO mole.raw VALUES (OLD::text); RETURN NULL; END';"
        "CREATE TRIGGER t AFTER UPDATE ON public.people"
        " FOR EACH ROW EXECUTE FUNCTION mole.copies()"
    )
    live.execute("UPDATE public.people SET disease = 'd' || id WHERE id = 7")
    assert live.connect_as("mole").execute("SELECT * FROM mole.raw").fetchall() == [("(7,7,1,d2)",)]
    told = "mole can put a trigger on public.people, which sees the rows that others write"
    with pytest.raises(dbanon.DriftError, match=told):
        dbanon.publish(TABLE, name="still", settings=live.settings)
    live.execute("REVOKE TRIGGER ON public.people FROM mole")
    told = "mole owns the function mole.copies, which runs when others read or write"
    with pytest.raises(dbanon.DriftError, match=told):
        dbanon.publish(TABLE, name="still", settings=live.settings)
    assert any(told in f.message for f in dbanon.doctor(settings=live.settings))


def test_who_points_a_key_at_the_source_of_a_table_release_is_no_reader(live):
    live.execute("REVOKE ALL ON anon.people FROM mole; DELETE FROM public.people WHERE id = 3")
    dbanon.publish(TABLE, name="still", grants=["mole"], settings=live.settings)
    live.execute("GRANT REFERENCES (id) ON public.people TO mole")
    mole = live.connect_as("mole")
    mole.execute("CREATE TABLE mole.ids (id int REFERENCES public.people)")
    mole.execute("INSERT INTO mole.ids VALUES (2)")
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        mole.execute("INSERT INTO mole.ids VALUES (3)")
    told = "mole can point a foreign key at public.people"
    with pytest.raises(dbanon.DriftError, match=told):
        dbanon.publish(TABLE, name="still", settings=live.settings)
    assert any(told in f.message for f in dbanon.doctor(settings=live.settings))


def test_who_calls_a_guard_from_a_trigger_of_its_own_is_no_reader(live):
    mole = live.connect_as("mole")
    members = "SELECT count(*) FROM dbanon_data.rows_1"
    assert mole.execute("SELECT count(*) FROM anon.people").fetchone() == (40,)
    live.execute("GRANT USAGE ON SCHEMA dbanon_data TO mole")
    live.execute("GRANT EXECUTE ON FUNCTION dbanon_data.guard_1_delete() TO mole")
    # To grant a guard is to change it, and all is hidden at once.
    assert mole.execute("SELECT count(*) FROM anon.people").fetchone() == (0,)
    before = live.execute(members)
    mole.execute(
        "CREATE TABLE mole.bait (id int, practice int, age int, disease text);"
        "INSERT INTO mole.bait VALUES (7, 7, 1, 'd2');"
        "CREATE TRIGGER t AFTER DELETE ON mole.bait REFERENCING OLD TABLE AS removed"
        " FOR EACH STATEMENT EXECUTE FUNCTION dbanon_data.guard_1_delete();"
        "DELETE FROM mole.bait"
    )
    assert live.execute(members) < before
    assert_refused(live, "mole can call dbanon_data.guard_1_delete")


@pytest.mark.pg("< 16")
def test_who_can_grant_itself_any_role_is_no_reader(live):
    live.admin().execute("ALTER ROLE mole CREATEROLE")
    mole, owner = live.connect_as("mole"), live.server.owner
    mole.execute(f"GRANT {owner} TO mole")
    assert mole.execute("SELECT count(*) FROM public.people").fetchone() == (40,)
    mole.execute(f"REVOKE {owner} FROM mole")
    assert_refused(live, "mole can grant itself any role (CREATEROLE)")


@pytest.mark.pg(">= 16")
def test_who_administers_a_role_that_reads_the_source_is_no_reader(live):
    live.execute("GRANT SELECT ON public.people TO mole_writer")
    live.admin().execute("GRANT mole_writer TO mole WITH ADMIN TRUE, INHERIT FALSE, SET FALSE")
    mole = live.connect_as("mole")
    mole.execute("GRANT mole_writer TO mole WITH INHERIT TRUE GRANTED BY mole")
    assert mole.execute("SELECT count(*) FROM public.people").fetchone() == (40,)
    mole.execute("REVOKE mole_writer FROM mole GRANTED BY mole")
    assert_refused(live, "mole can read public.people as mole_writer")


def test_who_reads_statistics_is_no_reader(live):
    live.execute("ANALYZE public.people")
    live.admin().execute("GRANT SELECT ON pg_statistic TO mole")
    found = live.connect_as("mole").execute(
        "SELECT stavalues1::text FROM pg_statistic WHERE starelid = 'public.people'::regclass"
    )
    assert any("d1,d2,d3" in values for (values,) in found if values)
    assert_refused(live, "mole can read pg_catalog.pg_statistic, where values of all tables are")


@pytest.mark.parametrize("view", ["VIEW", "MATERIALIZED VIEW"])
def test_who_reads_a_view_of_statistics_is_no_reader(live, view):
    live.execute("ANALYZE public.people")
    live.admin().execute(
        f"CREATE {view} public.below AS SELECT starelid, stavalues1::text AS v FROM pg_statistic;"
        "CREATE VIEW public.above AS SELECT v FROM public.below;"
        "GRANT SELECT ON public.above TO mole"
    )
    found = live.connect_as("mole").execute("SELECT v FROM public.above").fetchall()
    assert any("d1,d2,d3" in values for (values,) in found if values)
    assert_refused(live, "mole can read public.above, where values of all tables are")


def test_who_reads_what_was_stored_of_the_view_of_statistics_is_no_reader(live):
    live.execute("ANALYZE public.people")
    live.admin().execute(
        "CREATE VIEW public.looks AS SELECT most_common_vals::text AS v FROM pg_stats;"
        "CREATE MATERIALIZED VIEW public.stats AS SELECT * FROM public.looks;"
        "GRANT SELECT ON public.looks, public.stats TO mole"
    )
    shown = []
    for name in ("looks", "stats"):
        found = live.connect_as("mole").execute(f"SELECT v FROM public.{name}").fetchall()
        shown.append(any("d1,d2,d3" in values for (values,) in found if values))
    assert [False, True] == shown
    assert_refused(live, "mole can read public.stats, where values of all tables are")


def test_who_reads_the_long_values_of_the_source_is_no_reader(live):
    live.execute(
        "ALTER TABLE public.people ALTER disease SET STORAGE EXTERNAL;"
        "UPDATE public.people SET disease = repeat('secret ', 1000) WHERE id = 7"
    )
    ((name,),) = live.execute(
        "SELECT reltoastrelid::regclass::text FROM pg_class WHERE oid = 'public.people'::regclass"
    )
    live.admin().execute(f"GRANT USAGE ON SCHEMA pg_toast TO mole; GRANT SELECT ON {name} TO mole")
    found = live.connect_as("mole").execute(f"SELECT chunk_data FROM {name}").fetchall()
    assert b"secret" in b"".join(chunk for (chunk,) in found)
    assert_refused(live, f"mole can read {name}, where long values of what is private are")


def test_who_calls_a_copy_of_a_function_of_files_is_no_reader(live):
    admin = live.admin()
    admin.execute("CHECKPOINT")
    admin.execute(
        "CREATE FUNCTION public.slurp(text) RETURNS bytea LANGUAGE internal STRICT"
        " AS 'pg_read_binary_file_all'"
    )
    slurp = "SELECT public.slurp(pg_relation_filepath('public.people'))"
    assert b"d3" in live.connect_as("mole").execute(slurp).fetchone()[0]
    assert_refused(live, "mole can call public.slurp, which gets at the files of the server")


def test_who_reads_the_server_s_files_by_a_function_is_no_reader(live):
    admin = live.admin()
    admin.execute("CHECKPOINT")
    admin.execute("GRANT EXECUTE ON FUNCTION pg_read_binary_file(text) TO mole")
    (raw,) = (
        live.connect_as("mole")
        .execute("SELECT pg_read_binary_file(pg_relation_filepath('public.people'))")
        .fetchone()
    )
    assert b"d3" in raw
    assert_refused(live, "mole can call pg_catalog.pg_read_binary_file")


def test_who_reads_the_statements_of_others_is_no_reader(live):
    live.admin().execute("GRANT pg_read_all_stats TO mole")
    clerk = live.connect()
    clerk.execute("UPDATE public.people SET disease = 'flu' WHERE id = 7")
    seen = live.connect_as("mole").execute("SELECT query FROM pg_stat_activity").fetchall()
    assert any("disease = 'flu' WHERE id = 7" in query for (query,) in seen if query)
    assert_refused(live, "mole can read the statements that others run")


@pytest.mark.parametrize("body", ["SETOF public.people", "public.people[]"])
def test_who_calls_a_function_that_returns_rows_of_the_source_is_no_reader(live, body):
    rows = "SELECT * FROM" if "SETOF" in body else "SELECT array_agg(p) FROM"
    live.execute(
        f"CREATE FUNCTION public.everyone() RETURNS {body} LANGUAGE sql SECURITY DEFINER"
        f" AS 'EXECUTE'".replace("EXECUTE", f"{rows} public.people AS p")
    )
    found = live.connect_as("mole").execute("SELECT public.everyone()::text").fetchall()
    assert "(7,7,1,d2)" in str(found)
    assert_refused(live, "mole can call public.everyone, which reads what is private as its owner")


def test_the_doctor_warns_of_a_function_whose_text_names_the_source(live):
    live.execute(
        "CREATE FUNCTION public.oldest() RETURNS int LANGUAGE plpgsql SECURITY DEFINER"
        " AS 'BEGIN RETURN (SELECT max(age) FROM public.people); END';"
        "CREATE FUNCTION public.peoples() RETURNS int LANGUAGE plpgsql SECURITY DEFINER"
        " AS 'BEGIN RETURN (SELECT 1 /* peoples */); END'"
    )
    assert live.connect_as("mole").execute("SELECT public.oldest()").fetchone() == (8,)
    findings = dbanon.doctor(settings=live.settings)
    assert [
        ("warning", "mole can call public.oldest, which runs as its owner and seems to read")
    ] == [
        (f.level, f.message[: f.message.index(" what is")]) for f in findings if "mole" in f.message
    ]


def test_the_doctor_warns_of_a_foreign_table_of_a_file(live):
    admin = live.admin()
    try:
        admin.execute("CREATE EXTENSION file_fdw")
    except psycopg.Error:
        pytest.skip("this server has no file_fdw")
    (folder,) = admin.execute("SHOW data_directory").fetchone()
    admin.execute(
        f"COPY public.people TO '{folder}/people.txt';"
        "CREATE SERVER files FOREIGN DATA WRAPPER file_fdw;"
        "CREATE FOREIGN TABLE public.dump (id int, practice int, age int, disease text)"
        f" SERVER files OPTIONS (filename '{folder}/people.txt');"
        "CREATE VIEW public.dumped AS SELECT * FROM public.dump;"
        "GRANT SELECT ON public.dump, public.dumped TO mole"
    )
    mole = live.connect_as("mole")
    for name in ("dump", "dumped"):
        row = mole.execute(f"SELECT * FROM public.{name} WHERE id = 7").fetchone()
        assert (7, 7, 1, "d2") == row
    findings = dbanon.doctor(settings=live.settings)
    told = "mole can read public.{}, which shows a file of the server, perhaps of what is private"
    assert [("warning", told.format(name)) for name in ("dump", "dumped")] == [
        (f.level, f.message[f.message.index("mole") :]) for f in findings if "mole" in f.message
    ]


@contextlib.contextmanager
def loopback(database, options):
    """Make a foreign server that leads back, and takes whoever uses it for the publisher."""
    admin = database.admin()
    try:
        admin.execute("CREATE EXTENSION postgres_fdw")
    except psycopg.Error:
        pytest.skip("this server has no postgres_fdw")
    words = psycopg.conninfo.conninfo_to_dict(database.dsn)
    admin.execute(
        "CREATE SERVER back FOREIGN DATA WRAPPER postgres_fdw OPTIONS"
        f" (host '{words['host']}', port '{words.get('port', 5432)}', dbname '{database.name}');"
        f"CREATE USER MAPPING FOR {options} SERVER back OPTIONS (user '{words['user']}',"
        f" password '{words['password']}', password_required 'false')"
    )
    yield admin


def test_who_reads_a_foreign_table_that_leads_back_is_no_reader(live):
    with loopback(live, "mole") as admin:
        admin.execute(
            "CREATE FOREIGN TABLE public.elsewhere (id int, disease text) SERVER back"
            " OPTIONS (schema_name 'public', table_name 'people');"
            "GRANT SELECT ON public.elsewhere TO mole"
        )
    found = live.connect_as("mole").execute("SELECT * FROM public.elsewhere WHERE id = 7")
    assert found.fetchall() == [(7, "d2")]
    assert_refused(live, "mole can read public.elsewhere, a foreign table of what is private")


def test_who_uses_a_foreign_server_that_leads_back_is_no_reader(live):
    with loopback(live, "PUBLIC") as admin:
        admin.execute("GRANT USAGE ON FOREIGN SERVER back TO mole")
    mole = live.connect_as("mole")
    mole.execute(
        "CREATE FOREIGN TABLE mole.elsewhere (id int, disease text) SERVER back"
        " OPTIONS (schema_name 'public', table_name 'people')"
    )
    found = mole.execute("SELECT * FROM mole.elsewhere WHERE id = 7")
    assert found.fetchall() == [(7, "d2")]
    mole.execute("DROP FOREIGN TABLE mole.elsewhere")
    assert_refused(live, "mole can log in to this database by the foreign server back")


# Publishers attach it to released tables. It runs as the writer, and only raises.
ATTACHABLE = {"refuse_change"}
IMPOSTOR = """
CREATE TYPE mole.impostor AS (x text);
CREATE FUNCTION mole.run(mole.impostor) RETURNS text LANGUAGE plpgsql AS
    'BEGIN GRANT SELECT ON public.people TO mole; RETURN 1; END';
CREATE CAST (mole.impostor AS text) WITH FUNCTION mole.run(mole.impostor) AS ASSIGNMENT;
CREATE TABLE mole.bait (
    table_schema mole.impostor, table_name text, table_oid oid, epsilon numeric, number bigint
);
"""
ATTACH = (
    "CREATE TRIGGER t BEFORE INSERT ON mole.bait"
    " FOR EACH ROW EXECUTE FUNCTION dbanon.number_spending()"
)
BITE = "INSERT INTO mole.bait VALUES (ROW('x'), 'n', 0, 1)"


def test_no_function_that_runs_as_its_owner_or_as_a_trigger_is_everybody_s(live):
    rows = live.execute(
        "SELECT p.proname, p.prorettype = 'trigger'::regtype, p.prosrc"
        "  FROM pg_proc AS p"
        " CROSS JOIN LATERAL aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) AS a"
        " WHERE p.pronamespace IN ('dbanon'::regnamespace, 'dbanon_data'::regnamespace)"
        "   AND (p.prosecdef OR p.prorettype = 'trigger'::regtype)"
        "   AND a.grantee = 0"
    )
    # Readers ask seen_N whether a release may be read: no argument, and yes or no as an answer.
    assert {"seen_1"} | ATTACHABLE == {name for name, _, _ in rows}


def test_a_trigger_that_runs_as_its_owner_first_looks_at_its_table(live):
    rows = live.execute(
        "SELECT proname, prosrc FROM pg_proc WHERE pronamespace = 'dbanon'::regnamespace"
        " AND prosecdef AND prorettype = 'trigger'::regtype"
    )
    begun = {name: body.partition("BEGIN")[2].split()[:3] for name, body in rows}
    assert {"number_spending": ["IF", "TG_RELID", "<>"]} == begun


def test_no_reader_runs_code_as_the_owner_of_the_metadata_by_a_trigger_of_its(live):
    live.execute("GRANT USAGE ON SCHEMA dbanon TO mole")
    mole = live.connect_as("mole")
    mole.execute(IMPOSTOR)
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        mole.execute(ATTACH)
    live.execute("GRANT EXECUTE ON FUNCTION dbanon.number_spending() TO PUBLIC")
    mole.execute(ATTACH)
    told = "trigger t of mole.bait runs dbanon.number_spending"
    assert [("warning", "metadata")] == [
        (f.level, f.subject) for f in dbanon.doctor(settings=live.settings) if told in f.message
    ]
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="not made for mole"):
        mole.execute(BITE)
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="permission denied"):
        mole.execute("SELECT FROM public.people")
    assert [] == live.execute("SELECT FROM dbanon.account")


def test_an_upgrade_takes_the_triggers_of_the_metadata_from_everybody(live):
    closed = "SELECT has_function_privilege('mole', 'dbanon.number_spending()', 'EXECUTE')"
    live.execute(
        "GRANT EXECUTE ON FUNCTION dbanon.number_spending() TO PUBLIC;"
        "COMMENT ON SCHEMA dbanon IS 'dbanon metadata: revision 0015, functions older'"
    )
    assert [(True,)] == live.execute(closed)
    dbanon.init(settings=live.settings)
    assert [(False,)] == live.execute(closed)


# What a superuser does, and what is found; one statement each for what no attack above shows.
RIGHTS = {
    **{
        f"{right} on {table}": (13, f"GRANT {right} ON {table} TO mole", told.format(table))
        for table in ("dbanon.policy", "dbanon.release", "dbanon_data.rows_1")
        for right, told in {
            "INSERT": "mole can write {}",
            "UPDATE": "mole can write {}",
            "DELETE": "mole can write {}",
            "TRUNCATE": "mole can write {}",
            "TRIGGER": "mole can put a trigger on {}, which sees the rows that others write",
            "REFERENCES": "mole can point a foreign key at {}, and try out values of its keys",
        }.items()
    },
    "INSERT into a column": (
        13,
        "GRANT INSERT (document) ON dbanon.policy TO mole",
        "mole can write dbanon.policy",
    ),
    "writing to everybody": (
        13,
        "GRANT UPDATE ON dbanon.policy TO PUBLIC",
        "mole can write dbanon.policy",
    ),
    "a sequence": (
        13,
        "GRANT UPDATE ON SEQUENCE dbanon.release_release_id_seq TO mole",
        "mole can write dbanon.release_release_id_seq",
    ),
    "a view of the metadata": (
        13,
        (
            "CREATE VIEW public.policies AS SELECT * FROM dbanon.policy;"
            "GRANT UPDATE ON public.policies TO mole"
        ),
        "mole can write public.policies",
    ),
    "MAINTAIN": (
        17,
        "GRANT MAINTAIN ON dbanon.policy TO mole",
        "mole can lock and rebuild dbanon.policy (MAINTAIN)",
    ),
    "MAINTAIN of a partitioned table": (
        17,
        (
            "CREATE TABLE dbanon_data.parted (id int) PARTITION BY LIST (id);"
            "GRANT MAINTAIN ON dbanon_data.parted TO mole"
        ),
        "mole can lock and rebuild dbanon_data.parted (MAINTAIN)",
    ),
    "MAINTAIN of a materialized view": (
        17,
        (
            "CREATE MATERIALIZED VIEW public.counted AS SELECT count(*) FROM dbanon.policy;"
            "GRANT MAINTAIN ON public.counted TO mole"
        ),
        "mole can lock and rebuild public.counted (MAINTAIN)",
    ),
    "CREATE": (
        13,
        "GRANT CREATE ON SCHEMA dbanon TO mole",
        "mole can create objects in the schema dbanon",
    ),
    "TRIGGER on a view of the source": (
        13,
        "GRANT TRIGGER ON public.editable TO mole",
        "mole can put a trigger on public.editable, which sees the rows that others write",
    ),
    "tables by default": (
        13,
        "ALTER DEFAULT PRIVILEGES FOR ROLE {owner} GRANT UPDATE, TRIGGER ON TABLES TO mole",
        "mole is given TRIGGER, UPDATE on new tables in any schema by default",
    ),
    "sequences by default": (
        13,
        (
            "ALTER DEFAULT PRIVILEGES FOR ROLE {owner} IN SCHEMA dbanon"
            " GRANT UPDATE ON SEQUENCES TO PUBLIC"
        ),
        "mole is given UPDATE on new sequences in dbanon by default",
    ),
    "functions by default": (
        13,
        "ALTER DEFAULT PRIVILEGES FOR ROLE {owner} GRANT EXECUTE ON FUNCTIONS TO mole",
        "mole is given EXECUTE on new functions in any schema by default",
    ),
    "schemas by default": (
        13,
        "ALTER DEFAULT PRIVILEGES FOR ROLE {owner} GRANT CREATE ON SCHEMAS TO mole",
        "mole is given CREATE on new schemas in any schema by default",
    ),
    "tables by default of another owner in the schema": (
        13,
        (
            "CREATE TABLE dbanon_data.other (id int);"
            "ALTER TABLE dbanon_data.other OWNER TO mole_writer;"
            "ALTER DEFAULT PRIVILEGES FOR ROLE mole_writer GRANT SELECT ON TABLES TO mole"
        ),
        "mole is given SELECT on new tables in any schema by default",
    ),
    "large objects from files": (
        13,
        "GRANT EXECUTE ON FUNCTION lo_import(text) TO mole",
        "mole can call pg_catalog.lo_import, which gets at the files of the server",
    ),
    "writing files": (
        13,
        "GRANT pg_write_server_files TO mole",
        "mole can read the files of the server as pg_write_server_files",
    ),
    "running programs": (
        13,
        "GRANT pg_execute_server_program TO mole",
        "mole can read the files of the server as pg_execute_server_program",
    ),
    "a foreign table of another name": (
        13,
        (
            "CREATE FOREIGN DATA WRAPPER far; CREATE SERVER away FOREIGN DATA WRAPPER far;"
            "CREATE FOREIGN TABLE public.elsewhere (id int, disease text) SERVER away"
            " OPTIONS (schema_name 'public', table_name 'people');"
            "GRANT SELECT ON public.elsewhere TO mole"
        ),
        "mole can read public.elsewhere, a foreign table of what is private",
    ),
    "extended statistics": (
        13,
        "GRANT SELECT ON pg_statistic_ext_data TO mole",
        "mole can read pg_catalog.pg_statistic_ext_data, where values of all tables are",
    ),
}
# The role to be named is the one that was given the right on this table, not one on another.
GIVEN = {
    "a table": ("GRANT SELECT ON public.people TO mole_writer", "can read public.people"),
    "a column": (
        (
            "GRANT SELECT (age) ON public.people TO mole_writer;"
            "GRANT SELECT (id) ON public.another TO mole"
        ),
        "can read public.people",
    ),
    "a function": (
        (
            "CREATE FUNCTION public.everyone() RETURNS SETOF public.people LANGUAGE sql"
            " SECURITY DEFINER AS 'SELECT * FROM public.people';"
            "REVOKE EXECUTE ON FUNCTION public.everyone() FROM PUBLIC;"
            "GRANT EXECUTE ON FUNCTION public.everyone() TO mole_writer"
        ),
        "can call public.everyone, which reads what is private as its owner",
    ),
    "the metadata": ("GRANT UPDATE ON dbanon.policy TO mole_writer", "can write dbanon.policy"),
    "a column of the metadata": (
        (
            "GRANT UPDATE (document) ON dbanon.policy TO mole_writer;"
            "GRANT UPDATE (id) ON public.another TO mole"
        ),
        "can write dbanon.policy",
    ),
    "a schema": (
        "GRANT CREATE ON SCHEMA dbanon TO mole_writer",
        "can create objects in the schema dbanon",
    ),
    "the source": (
        "GRANT DELETE ON public.people TO mole_writer",
        "can write public.people, and look at the live view between two rows of a statement",
    ),
    "a column of the source": (
        (
            "GRANT UPDATE (age) ON public.people TO mole_writer;"
            "GRANT UPDATE (id) ON public.another TO mole"
        ),
        "can write public.people, and look at the live view between two rows of a statement",
    ),
}
HARMLESS = {
    "nothing": "SELECT",
    "a foreign table of another database": (
        "CREATE FOREIGN DATA WRAPPER far;"
        "CREATE SERVER away FOREIGN DATA WRAPPER far OPTIONS (dbname 'elsewhere');"
        "CREATE FOREIGN TABLE public.elsewhere (id int, disease text) SERVER away"
        " OPTIONS (schema_name 'public', table_name 'people');"
        "GRANT SELECT ON public.elsewhere TO mole"
    ),
    "types by default": ("ALTER DEFAULT PRIVILEGES FOR ROLE {owner} GRANT USAGE ON TYPES TO mole"),
    "functions for everybody by default": (
        "ALTER DEFAULT PRIVILEGES FOR ROLE {owner} REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;"
        "ALTER DEFAULT PRIVILEGES FOR ROLE {owner} GRANT EXECUTE ON FUNCTIONS TO PUBLIC"
    ),
    "defaults of others": (
        "ALTER DEFAULT PRIVILEGES FOR ROLE mole_writer GRANT ALL ON TABLES TO mole"
    ),
    "a copy of another function": (
        "CREATE FUNCTION public.lowered(text) RETURNS text LANGUAGE internal AS 'lower'"
    ),
    "the views of statistics": (
        "GRANT SELECT ON pg_stats, pg_stats_ext TO mole;"
        "CREATE VIEW public.stats AS SELECT tablename, most_common_vals::text FROM pg_stats;"
        "GRANT SELECT ON public.stats TO mole"
    ),
    "writing another table": "CREATE TABLE public.free (id int); GRANT ALL ON public.free TO mole",
    "a view with the rights of its reader": (
        "CREATE VIEW mole.mine WITH (security_invoker) AS SELECT * FROM public.people;"
        "ALTER VIEW mole.mine OWNER TO mole"
    ),
    "creating roles": "ALTER ROLE mole CREATEROLE",
    "a foreign key of the publisher's": (
        "CREATE TABLE public.notes (person int REFERENCES public.people);"
        "GRANT SELECT, INSERT ON public.notes TO mole"
    ),
    "a function with the rights of its caller": (
        "CREATE FUNCTION public.everyone() RETURNS SETOF public.people LANGUAGE sql"
        " AS 'SELECT * FROM public.people'"
    ),
}


@pytest.fixture(scope="module")
def watched(server, original):
    """A copy with a mole, for what is found and undone again."""
    with server.database(original.name) as database:
        add_mole(database)
        yield database


def reach_after(database, statements):
    """Return what is found when a superuser has run the statements, and undo them."""
    dsn = make_conninfo(database.server.admin_dsn, dbname=database.name)
    with connect(dbanon.Settings(dsn=dsn)) as session, session.transaction(keep=False):
        session.pg.execute(statements.format(owner=database.server.owner))
        published, source = session.pg.execute(
            "SELECT 'anon.people'::regclass::oid, 'public.people'::regclass::oid"
        ).fetchone()
        targets = rights.targets_of(session, published=published, sources=[source])
        found = rights.reach_of(session, targets)
    return [str(way) for way in found]


@pytest.mark.parametrize("right", RIGHTS)
def test_a_right_that_leads_to_what_is_private_is_found(watched, right):
    since, statements, told = RIGHTS[right]
    if watched.server.version < since:
        pytest.skip(f"needs PostgreSQL {since}")
    assert [told] == reach_after(watched, statements)


@pytest.mark.pg(">= 17")
def test_who_maintains_everything_maintains_the_metadata(watched):
    found = reach_after(watched, "GRANT pg_maintain TO mole")
    assert "mole can lock and rebuild dbanon.policy (MAINTAIN) as pg_maintain" in found
    assert [] == [way for way in found if not way.endswith("(MAINTAIN) as pg_maintain")]


@pytest.mark.parametrize("given", GIVEN)
def test_the_role_that_was_given_a_right_is_named(watched, given):
    statements, told = GIVEN[given]
    alone = statements.replace("mole_writer", "mole")
    for who, granted, role in (("mole", alone, ""), ("mole_writer", statements, " as mole_writer")):
        found = reach_after(
            watched,
            f"CREATE TABLE public.another (id int); GRANT mole_writer TO mole; {granted}",
        )
        assert [f"mole {told}{role}"] == found, who


@pytest.mark.parametrize("harmless", HARMLESS)
def test_a_right_that_leads_to_nothing_private_is_none(watched, harmless):
    since = {"a view with the rights of its reader": 15, "creating roles": 16}.get(harmless, 13)
    if watched.server.version < since:
        pytest.skip(f"needs PostgreSQL {since}")
    assert reach_after(watched, HARMLESS[harmless]) == []


SERVER = (
    "CREATE FOREIGN DATA WRAPPER postgres_fdw;"
    "DO $$ BEGIN EXECUTE format('CREATE SERVER back FOREIGN DATA WRAPPER postgres_fdw"
    " OPTIONS ({options})', current_database()); END $$;"
    "GRANT USAGE ON FOREIGN SERVER back TO mole;"
    "CREATE USER MAPPING FOR mole SERVER back OPTIONS (user 'postgres')"
)
BACK = [
    "host ''localhost'', dbname %L",
    "host ''LOCALHOST''",
    "host ''0.0.0.0'', dbname %L",
    "host ''the-name-of-this-machine'', port ''5432,6432'', dbname %L",
    "host ''172.17.0.1'', port ''6432'', dbname %L",
]
AWAY = [
    "host ''localhost'', dbname ''elsewhere''",
    "host ''db.example.org''",
    "host ''localhost'', port ''1''",
]


def reach_by_server(watched, options):
    with contextlib.suppress(psycopg.errors.DuplicateObject):
        return reach_after(watched, SERVER.replace("{options}", options))
    pytest.skip("this server has postgres_fdw")


@pytest.mark.parametrize("options", BACK)
def test_a_foreign_server_that_may_lead_back_is_found_whatever_its_address(watched, options):
    told = "mole can log in to this database by the foreign server back, perhaps as somebody else"
    assert [told] == reach_by_server(watched, options)


@pytest.mark.parametrize("options", AWAY)
def test_a_foreign_server_that_leads_to_another_database_is_none(watched, options):
    assert [] == reach_by_server(watched, options)
