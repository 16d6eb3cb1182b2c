"""An ordinary role publishes with what a DBA gave it, or as the owner role it is a member of."""

import sys

import psycopg
import pytest
from tables import make_patients, patients_policy, rows_proved

import dbanon
from dbanon.actions.init import init, init_sql
from dbanon.cli import main
from dbanon.domain.errors import NotPermitted
from dbanon.settings import Settings

# What two databases must have alike, whoever made it.
SHAPE = """
SELECT c.relname::text, a.attname::text, format_type(a.atttypid, a.atttypmod), a.attnotnull,
       pg_get_expr(d.adbin, d.adrelid)
  FROM pg_class AS c
  JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0
  LEFT JOIN pg_attrdef AS d ON d.adrelid = c.oid AND d.adnum = a.attnum
 WHERE c.relnamespace = 'dbanon'::regnamespace
UNION ALL
SELECT conrelid::regclass::text, conname::text, pg_get_constraintdef(oid), NULL, NULL
  FROM pg_constraint
 WHERE connamespace = 'dbanon'::regnamespace
UNION ALL
SELECT oid::regprocedure::text, pg_get_functiondef(oid), NULL, NULL, NULL
  FROM pg_proc
 WHERE pronamespace = 'dbanon'::regnamespace
 ORDER BY 1, 2"""
STRANGERS = """
SELECT c.relname::text
  FROM pg_class AS c
 WHERE c.relnamespace::regnamespace::text IN ('dbanon', 'dbanon_data', 'anon')
   AND c.relowner <> %s::regrole
UNION ALL
SELECT n.nspname::text
  FROM pg_namespace AS n
 WHERE n.nspname IN ('dbanon', 'dbanon_data', 'anon')
   AND n.nspowner <> %s::regrole"""

AVAILABLE = """
SELECT v.name::text
  FROM pg_available_extension_versions AS v
 WHERE NOT v.installed AND v.relocatable AND v.requires IS NULL
 ORDER BY v.name <> 'hstore', v.name
 LIMIT 1"""
REMOVE = "DROP SCHEMA dbanon, dbanon_data CASCADE"


def shape(database):
    connection = database.admin()
    connection.execute("SET search_path = pg_catalog")
    return connection.execute(SHAPE).fetchall()


def the_whole_work(database, settings, table):
    """Do as the publisher what a publisher does, with a reader who may not do more."""
    reader = database.role("rights_reader")
    dbanon.set_policy(table, patients_policy(table), settings=settings)
    assert rows_proved(dbanon.publish("patients", grants=[reader], settings=settings)) == 200
    assert dbanon.refresh("patients", new_series=True, settings=settings)[0].changed
    (checked,) = dbanon.check_all(settings=settings)
    assert ("passed", True) == (checked.verdict, checked.recorded)
    dbanon.revoke("patients", [reader], settings=settings)
    assert dbanon.grant("patients", [reader], settings=settings)[0].changed
    findings = dbanon.doctor(settings=settings)
    assert [] == [f.message for f in findings if f.level == "failure"]
    assert dbanon.check("anon.patients", settings=Settings(dsn=database.dsn_as(reader))).passed
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        database.connect_as(reader).execute("SELECT * FROM dbanon.release")


@pytest.mark.exhaustive
def test_what_a_superuser_ran_by_hand_is_all_that_a_publisher_needs(bare_database, database):
    publisher = bare_database.role("rights_publisher")
    bare_database.admin().execute(init_sql(role=publisher))
    assert shape(database) == shape(bare_database)
    table = make_patients(bare_database)
    bare_database.execute(f"GRANT SELECT ON public.patients TO {publisher}")
    settings = Settings(dsn=bare_database.dsn_as(publisher))
    assert init(settings)["changed"] is False
    assert warnings(settings) == []
    the_whole_work(bare_database, settings, table)
    assert warnings(settings) == []
    dbanon.drop_release(2, settings=settings)


def test_publishing_needs_temporary_tables(bare_database):
    publisher = bare_database.role("rights_publisher")
    assert [] == init(bare_database.settings, role=publisher)["lacking"]
    table = make_patients(bare_database)
    bare_database.execute(f"GRANT SELECT ON public.patients TO {publisher}")
    settings = Settings(dsn=bare_database.dsn_as(publisher))
    dbanon.set_policy(table, patients_policy(table), settings=settings)
    name = bare_database.name
    assert [] == warnings(settings)
    bare_database.admin().execute(f"REVOKE TEMPORARY ON DATABASE {name} FROM PUBLIC")
    with pytest.raises(dbanon.NotPermitted, match="temporary tables"):
        dbanon.publish("patients", settings=settings)
    (lacking,) = init(bare_database.settings, role=publisher)["lacking"]
    findings = dbanon.doctor(settings=settings)
    (grant,) = (f.hint for f in findings if "make temporary tables" in f.message)
    assert f"GRANT TEMPORARY ON DATABASE {name} TO rights_publisher" == grant
    assert lacking == grant
    bare_database.admin().execute(grant)
    assert [] == warnings(settings)
    assert rows_proved(dbanon.publish("patients", settings=settings)) == 200


def test_doctor_warns_of_a_role_that_lacks_a_schema_and_cannot_create_it(bare_database):
    publisher = bare_database.role("rights_publisher")
    bare_database.admin().execute(init_sql(role=publisher))
    settings = Settings(dsn=bare_database.dsn_as(publisher))
    bare_database.admin().execute(f"REVOKE CREATE ON SCHEMA anon FROM {publisher}")
    assert warnings(settings) == ["rights_publisher cannot create schemas in this database"]
    bare_database.admin().execute("DROP SCHEMA anon")
    assert warnings(settings) == ["rights_publisher cannot create schemas in this database"]
    bare_database.admin().execute(f"CREATE SCHEMA anon AUTHORIZATION {publisher}")
    assert warnings(settings) == []


def test_the_schema_of_an_extension_is_not_taken(bare_database):
    publisher = bare_database.role("rights_publisher")
    connection = bare_database.admin()
    connection.execute("CREATE SCHEMA anon")
    moved = connection.execute(AVAILABLE).fetchone()
    if moved is None:
        pytest.skip("the server has no extension to install")
    connection.execute(f'CREATE EXTENSION "{moved[0]}" SCHEMA anon')
    with pytest.raises(NotPermitted, match="schema anon is that of the extension"):
        init(bare_database.settings, role=publisher)
    assert init(bare_database.settings, role=publisher, schema="published")["changed"]
    settings = Settings(dsn=bare_database.dsn_as(publisher))
    table = make_patients(bare_database)
    bare_database.execute(f"GRANT SELECT ON public.patients TO {publisher}")
    dbanon.set_policy(table, patients_policy(table), settings=settings)
    assert rows_proved(dbanon.publish(table, schema="published", settings=settings)) == 200
    assert warnings(settings) == []


@pytest.mark.exhaustive
def test_what_is_removed_is_ours_alone(database):
    table = make_patients(database)
    dbanon.set_policy(table, patients_policy(table), settings=database.settings)
    dbanon.publish(table, settings=database.settings)
    dbanon.publish(table, kind="view", name="live", settings=database.settings)
    database.execute("CREATE TABLE anon.of_another (x integer)")
    database.admin().execute(REMOVE)
    left = "SELECT relname::text FROM pg_class WHERE relnamespace = 'anon'::regnamespace"
    assert database.execute(left) == [("of_another",)]
    database.execute("INSERT INTO public.patients SELECT * FROM public.patients LIMIT 0")
    database.execute("DELETE FROM public.patients")


def warnings(settings):
    return [f.message for f in dbanon.doctor(settings=settings) if f.level == "warning"]


def publishes(database, settings):
    table = make_patients(database)
    database.execute(f"GRANT SELECT ON public.patients TO {settings.owner or 'rights_publisher'}")
    dbanon.set_policy(table, patients_policy(table), settings=settings)
    return rows_proved(dbanon.publish(table, grants=["public"], settings=settings)) == 200


@pytest.mark.exhaustive
def test_the_owner_of_the_database_can_run_it_too(bare_database):
    publisher = bare_database.role("rights_publisher")
    bare_database.execute(init_sql(role=publisher))
    settings = Settings(dsn=bare_database.dsn_as(publisher))
    assert init(settings)["changed"] is False
    assert publishes(bare_database, settings)


@pytest.mark.exhaustive
def test_init_gives_another_role_the_same_rights(bare_database):
    publisher = bare_database.role("rights_publisher")
    for changed in (True, False):
        assert init(bare_database.settings, role=publisher)["changed"] is changed
    assert publishes(bare_database, Settings(dsn=bare_database.dsn_as(publisher)))


def belongs_to(database, owner):
    return database.admin().execute(STRANGERS, (owner, owner)).fetchall() == []


def test_everything_belongs_to_the_owner_role_that_a_publisher_is_a_member_of(bare_database):
    owner = bare_database.role("rights_owner", login=False)
    member = bare_database.role("rights_member", inherit=False)
    admin = bare_database.admin()
    admin.execute(f"GRANT {owner} TO {member}")
    admin.execute(init_sql(owner=owner))
    settings = Settings(dsn=bare_database.dsn_as(member), owner=owner)
    assert init(settings)["changed"] is False
    table = make_patients(bare_database)
    bare_database.execute(f"GRANT SELECT ON public.patients TO {owner}")
    the_whole_work(bare_database, settings, table)
    assert belongs_to(bare_database, owner)
    with pytest.raises(dbanon.DatabaseError, match="may not read the metadata schema"):
        dbanon.publish("patients", settings=Settings(dsn=bare_database.dsn_as(member)))


@pytest.mark.exhaustive
def test_init_makes_everything_for_the_owner_role(bare_database):
    owner = bare_database.role("rights_owner", login=False)
    member = bare_database.role("rights_member", inherit=False)
    bare_database.admin().execute(
        f"GRANT {owner} TO {member}; GRANT CREATE ON DATABASE {bare_database.name} TO {owner}"
    )
    settings = Settings(dsn=bare_database.dsn_as(member), owner=owner)
    assert init(settings)["changed"] is True
    assert publishes(bare_database, settings)
    assert belongs_to(bare_database, owner)


def test_the_sql_is_printed_without_a_server(monkeypatch, capsys):
    monkeypatch.setenv("DBANON_DSN", "host=nowhere.invalid")
    monkeypatch.setattr(sys, "argv", ["dbanon", "init", "--print-sql", "--role", 'a"; DROP'])
    with pytest.raises(SystemExit) as ended:
        main()
    out = capsys.readouterr().out
    assert not ended.value.code
    assert 'TO "a""; DROP" WITH GRANT OPTION' in out
    assert out == init_sql(role='a"; DROP')
    assert (out.startswith("BEGIN;"), out.endswith("COMMIT;\n")) == (True, True)
