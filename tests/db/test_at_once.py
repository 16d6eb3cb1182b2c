"""Statements that are sent in one message fail as they do one by one."""

from __future__ import annotations

import logging

import psycopg
import pytest
from psycopg import sql

from dbanon.db import identity
from dbanon.db.session import at_once, connect, only
from dbanon.domain.errors import DatabaseError, NotPermitted

INSERT = "INSERT INTO pg_temp.written VALUES (1)"


@pytest.fixture
def session(bare_database):
    with connect(bare_database.settings) as opened:
        opened.pg.execute("CREATE TEMPORARY TABLE written (i integer)")
        opened.pg.commit()
        yield opened


def test_the_results_of_all_statements_can_be_fetched_after_the_block(session):
    with at_once(session.pg):
        numbers = [session.pg.execute("SELECT %s::integer", (i,)) for i in range(3)]
        written = session.pg.execute(INSERT)
    assert [(0,), (1,), (2,)] == [only(number) for number in numbers]
    assert 1 == written.rowcount


def test_the_error_is_that_of_the_first_statement_that_fails_and_none_runs_after_it(
    session, caplog
):
    statements = [INSERT, "LOCK TABLE missing", "SELECT 1 / 0", INSERT]
    with (
        pytest.raises(psycopg.errors.UndefinedTable, match='relation "missing" does not exist'),
        session.pg.transaction(),
    ):
        session.run(statements)
    assert [] == [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert (0,) == session.one("SELECT count(*) FROM pg_temp.written")


def test_an_error_that_is_known_before_the_last_statement_is_sent_is_the_one_that_is_raised(
    session, caplog
):
    with pytest.raises(psycopg.errors.DivisionByZero):
        session.run(["SELECT 1 / 0", *["SELECT repeat('a', 2000)"] * 2_000])
    assert [] == [record for record in caplog.records if record.levelno >= logging.WARNING]
    session.pg.rollback()
    assert (1,) == session.one("SELECT 1")


def test_a_savepoint_around_a_message_that_fails_leaves_the_transaction_open(session):
    session.pg.execute(INSERT)
    with pytest.raises(psycopg.errors.DivisionByZero), session.pg.transaction():
        session.run([INSERT, "SELECT 1 / 0"])
    assert (1,) == session.one("SELECT count(*) FROM pg_temp.written")


def test_a_block_within_a_block_is_part_of_its_message(session, monkeypatch):
    opened, original = [], psycopg.Connection.pipeline
    monkeypatch.setattr(
        psycopg.Connection, "pipeline", lambda self: opened.append(None) or original(self)
    )
    with at_once(session.pg):
        session.run([INSERT, INSERT])
        with session.sparing_memory():
            counted = session.pg.execute("SELECT count(*) FROM pg_temp.written")
    assert (2,) == only(counted)
    assert [None] == opened


def test_a_connection_that_is_lost_in_a_message_is_told_as_such(bare_database):
    with (
        pytest.raises(DatabaseError, match=r"the connection was lost|somebody ended the session"),
        connect(bare_database.settings) as session,
    ):
        # Whether the reason arrives before the end of the connection is a matter of time.
        session.run(["SELECT pg_terminate_backend(pg_backend_pid())", "SELECT 2"])


def test_what_a_reading_may_not_write_is_refused_and_the_transaction_goes_on(session):
    session.pg.execute("CREATE SCHEMA own")
    session.pg.execute("CREATE TABLE own.kept (i integer)")
    session.pg.commit()
    with session.transaction():
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            identity.harmless(session, sql.SQL("INSERT INTO own.kept VALUES (1)"))
        assert (0,) == session.one("SELECT count(*) FROM own.kept")


def test_a_reading_that_changes_what_the_session_acts_as_is_refused(session):
    with session.transaction(), pytest.raises(NotPermitted, match="acts as"):
        identity.harmless(session, sql.SQL("SELECT set_config('search_path', 'public', true)"))
