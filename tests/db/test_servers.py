from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from servers import Server, available

HAS_ROLE = "SELECT count(*) FROM pg_catalog.pg_roles WHERE rolname = {}"
# A run that is killed while its server runs.
KILLED = """
import os, sys
from pathlib import Path
import servers
with next(c for c in servers.available(None)[0] if c.id == sys.argv[1]).open() as dsn:
    import psycopg
    data = psycopg.connect(dsn).execute("SHOW data_directory").fetchone()[0]
    pid = Path(data, "postmaster.pid").read_text().split()[0]
    print(data, pid, flush=True)
    os.kill(os.getpid(), int(sys.argv[2]))
"""


def count(server, query, *words):
    with psycopg.connect(server.admin_dsn, autocommit=True) as connection:
        statement = sql.SQL(query).format(*map(sql.Literal, words))
        return connection.execute(statement).fetchone()[0]


def test_a_database_belongs_to_an_ordinary_role(bare_database):
    query = """
        SELECT rolsuper, rolcreaterole, rolname = current_user
        FROM pg_catalog.pg_database JOIN pg_catalog.pg_roles AS r ON r.oid = datdba
        WHERE datname = current_database()
        """
    assert [(False, False, True)] == bare_database.execute(query)


def test_a_database_has_the_metadata_schema_and_a_bare_one_has_not(database, bare_database):
    query = "SELECT to_regnamespace('dbanon') IS NOT NULL"

    assert [[(True,)], [(False,)]] == [database.execute(query), bare_database.execute(query)]


def test_settings_reach_the_database_as_its_owner(database):
    with psycopg.connect(database.settings.dsn) as connection:
        found = connection.execute("SELECT current_database(), current_user").fetchone()

    assert (database.name, database.server.owner) == found


def test_rows_without_columns_are_rows(bare_database):
    assert [(), ()] == bare_database.execute("SELECT FROM generate_series(1, 2)")
    assert [] == bare_database.execute("SET work_mem = '5MB'")


def test_databases_do_not_see_each_other(server):
    with server.database() as one, server.database() as other:
        one.execute("CREATE TABLE only_here (n integer)")

        assert [(None,)] == other.execute("SELECT to_regclass('only_here')")


def test_a_role_logs_in_and_is_gone_with_the_database(server):
    with server.database() as database:
        role = database.role('an "analyst"', inherit=False)
        connection = database.connect_as(role)
        name, inherits = connection.execute(
            "SELECT rolname, rolinherit FROM pg_catalog.pg_roles WHERE rolname = current_user"
        ).fetchone()

    assert ('an "analyst"', False) == (name, inherits)
    assert connection.closed
    assert count(server, HAS_ROLE, role) == 0
    assert count(server, "SELECT count(*) FROM pg_database WHERE datname = {}", database.name) == 0


def test_the_administrator_sees_the_same_database(bare_database):
    bare_database.execute("CREATE TABLE here (n integer); INSERT INTO here (n) VALUES (7)")

    assert [(7,)] == bare_database.execute("SELECT n FROM here")
    admin = bare_database.admin().execute("SELECT to_regclass('here') IS NOT NULL").fetchone()
    assert (True,) == admin


def test_an_administrator_need_not_be_a_superuser(server):
    with server.database() as database:
        role = database.role("tester", createdb=True, createrole=True)
        modest = Server(database.dsn_as(role), server.version)
        with modest.prepared(), modest.database() as one, modest.database(one.name) as other:
            other.role("throwaway")
            found = other.execute("SELECT current_user")

        assert [(modest.owner,)] == found
        assert count(server, HAS_ROLE, modest.owner) == 0


@pytest.mark.pg(">= 16")
def test_the_marker_keeps_older_servers_away(server):
    assert server.version >= 16


def is_there(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_server_of_a_killed_run_ends_and_its_folder_is_removed(number):
    choice = next((c for c in available(None)[0] if not c.id.endswith("docker")), None)
    if choice is None:
        pytest.skip("no server that runs without a container")
    command = [sys.executable, "-c", KILLED, choice.id, str(int(number))]
    path = os.pathsep.join(sys.path)
    run = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    assert run.returncode == -number, run.stderr
    data, pid = run.stdout.split()

    waited = time.monotonic() + 30
    while (is_there(pid) or Path(data).exists()) and time.monotonic() < waited:
        time.sleep(0.05)
    assert (False, False) == (is_there(pid), Path(data).parents[1].exists())
