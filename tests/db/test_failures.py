"""What the server or the machine lacks is named as such."""

import sys

import pytest
from psycopg import sql

import dbanon
from dbanon.actions import policy
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

    monkeypatch.setattr(policy, "list_policies", listing)
    monkeypatch.setattr(sys, "argv", ["dbanon", "policy", "list"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    assert "out of memory" in capsys.readouterr().err
