"""What the server or the machine lacks is named as such."""

import sys

import pytest
from psycopg import sql
from tables import publish_patients

import dbanon
from dbanon.cli import main
from dbanon.db.session import connect
from dbanon.domain.errors import ConfigError, DatabaseError, NotPermitted
from dbanon.settings import Settings


def test_a_limit_of_connections_is_named(database):
    role = database.role("crowded")
    database.server.run(sql.SQL("ALTER ROLE {} CONNECTION LIMIT 0").format(sql.Identifier(role)))
    with pytest.raises(DatabaseError, match="too many connections") as caught:
        dbanon.list_policies(settings=Settings(dsn=database.dsn_as(role)))
    assert "max_connections" in caught.value.hint


def test_a_role_that_may_have_one_connection_only_is_named(copied):
    database = copied(publish_patients)
    role = database.role("lonely")
    database.admin().execute(
        f"GRANT {database.execute('SELECT current_user')[0][0]} TO {role};"
        f"ALTER ROLE {role} CONNECTION LIMIT 1"
    )
    with pytest.raises(DatabaseError, match="is read by a second connection, and") as caught:
        dbanon.plan("patients", settings=Settings(dsn=database.dsn_as(role)))
    assert "CONNECTION LIMIT" in caught.value.hint


def test_a_pooler_that_loses_settings_is_named(database):
    with connect(database.settings) as session:
        with session.transaction():
            assert session.pg.execute("SELECT 1").fetchone() == (1,)
        session.pg.execute("RESET ALL")
        session.pg.commit()
        with pytest.raises(DatabaseError, match="a pooler gives each transaction"):
            session.transaction().__enter__()


def test_a_settings_check_takes_no_snapshot(database):
    database.execute("CREATE TABLE public.late (id int)")
    with connect(database.settings) as session, session.transaction(snapshot=True):
        database.execute("INSERT INTO public.late VALUES (1)")
        assert session.pg.execute("SELECT count(*) FROM public.late").fetchone() == (1,)


def test_who_may_not_create_schemas_is_told_what_a_dba_is_to_run(bare_database):
    settings = Settings(dsn=bare_database.dsn_as(bare_database.role("powerless")))
    with pytest.raises(NotPermitted, match="powerless may not create schemas") as caught:
        dbanon.init(settings)
    assert "dbanon init --role powerless" in caught.value.hint
    assert "dbanon init --print-sql --role powerless" in caught.value.hint


def test_who_may_not_connect_is_told_the_right_that_is_missing(bare_database):
    name = bare_database.execute("SELECT quote_ident(current_database())")[0][0]
    settings = Settings(dsn=bare_database.dsn_as(bare_database.role("outsider")))
    bare_database.admin().execute(f"REVOKE CONNECT ON DATABASE {name} FROM PUBLIC")
    with pytest.raises(DatabaseError, match="cannot connect") as caught:
        dbanon.doctor(settings=settings)
    assert "GRANT CONNECT" in caught.value.hint


def test_an_unknown_owner_is_named(database):
    with pytest.raises(ConfigError, match="there is no role nobody to own") as caught:
        dbanon.init(Settings(dsn=database.dsn, owner="nobody"))
    assert "--owner" in caught.value.hint


def test_an_owner_that_the_role_is_no_member_of_is_named(database):
    stranger = database.role("stranger_as_owner")
    with pytest.raises(NotPermitted, match="may not act as stranger_as_owner"):
        dbanon.init(Settings(dsn=database.dsn, owner=stranger))


def test_who_can_give_a_right_that_is_missing_is_named(database):
    database.execute("CREATE TABLE public.closed (age int)")
    settings = Settings(dsn=database.dsn_as(database.role("shut_out")))
    with pytest.raises(NotPermitted, match="permission denied for table closed") as caught:
        dbanon.inspect("closed", settings=settings)
    assert caught.value.hint.startswith("let the owner GRANT")


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ("53100", "the disk of the server is full"),
        ("53200", "the server is out of memory"),
        ("XX000", "the server met an internal error"),
    ],
)
def test_what_the_server_lacks_is_named(database, state, message):
    raising = "DO $$ BEGIN RAISE EXCEPTION 'lacking' USING ERRCODE = '{}'; END $$"
    with (
        pytest.raises(DatabaseError, match=message) as caught,
        connect(database.settings) as session,
    ):
        session.pg.execute(raising.format(state))
    assert caught.value.hint


def test_a_machine_without_memory_is_named(monkeypatch, capsys):
    def listing(**_options):
        raise MemoryError

    monkeypatch.setattr(dbanon, "list_policies", listing)
    monkeypatch.setattr(sys, "argv", ["dbanon", "policy", "list"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    assert "out of memory" in capsys.readouterr().err
