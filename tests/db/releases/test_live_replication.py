"""Logical replication applies rows and no statements; the guards see them all the same."""

import time

import pytest
from live import CLASSES, policy_of, serve, shown
from psycopg import sql
from psycopg.conninfo import make_conninfo

from dbanon.domain.policy import ModelSpec

K5 = ModelSpec("k-anonymity", {"k": 5})
L2 = ModelSpec("l-diversity", {"l": 2})
PEOPLE = [(j, f"zip {i}", *row) for i in range(4) for j, row in enumerate(CLASSES[0])]
PATIENCE = 30


@pytest.fixture
def subscribed(server, template, database):
    """A live view in one database, whose source repeats what is written in another."""
    if database.execute("SHOW wal_level") != [("logical",)]:
        pytest.skip("the server has no logical replication")
    with server.database(template) as publisher:
        for side in (publisher, database):
            serve(side, policy_of(K5, L2), PEOPLE)
        slot = database.name
        publisher.admin().execute("CREATE PUBLICATION everything FOR TABLE public.people")
        publisher.admin().execute(
            "SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", (slot,)
        )
        dsn = make_conninfo(server.admin_dsn, dbname=publisher.name)
        database.admin().execute(
            sql.SQL(
                "CREATE SUBSCRIPTION {} CONNECTION {} PUBLICATION everything"
                " WITH (create_slot = false, slot_name = {}, copy_data = false)"
            ).format(sql.Identifier(slot), sql.Literal(dsn), sql.Literal(slot))
        )
        yield publisher, database
        for statement in (
            "ALTER SUBSCRIPTION {} DISABLE",
            "ALTER SUBSCRIPTION {} SET (slot_name = NONE)",
            "DROP SUBSCRIPTION {}",
        ):
            database.admin().execute(sql.SQL(statement).format(sql.Identifier(slot)))
        drop_slot(publisher, slot)


def drop_slot(publisher, slot):
    waiting = "SELECT active FROM pg_replication_slots WHERE slot_name = %s"
    end = time.monotonic() + PATIENCE
    while publisher.execute(waiting, (slot,)) == [(True,)] and time.monotonic() < end:
        time.sleep(0.05)
    publisher.admin().execute("SELECT pg_drop_replication_slot(%s)", (slot,))


def applied(database, condition):
    """Wait until the condition on the source holds on the side that repeats."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if database.execute(f"SELECT {condition} FROM public.people") == [(True,)]:
            return True
        time.sleep(0.02)
    return False


def test_what_replication_applies_is_guarded(subscribed):
    publisher, live = subscribed
    publisher.execute("DELETE FROM public.people WHERE id = 0")
    assert applied(live, "count(*) = 23")
    assert shown(live) == 23
    publisher.execute("DELETE FROM public.people WHERE id = 1")
    assert applied(live, "count(*) = 22")
    assert shown(live) == 18
    publisher.execute("UPDATE public.people SET disease = 'a' WHERE id BETWEEN 6 AND 11")
    assert applied(live, "count(*) FILTER (WHERE disease = 'b') = 8")
    assert shown(live) == 12
    publisher.execute("INSERT INTO public.people VALUES (0, 0, 'zip 0', 'impostor', 2)")
    publisher.execute("UPDATE public.people SET zip = 'x' WHERE id IN (12, 13)")
    assert applied(live, "count(*) FILTER (WHERE zip = 'x') = 2")
    assert shown(live) == 6
    publisher.execute("TRUNCATE public.people")
    assert applied(live, "count(*) = 0")
    assert live.execute("SELECT count(*) FROM dbanon_data.groups_1 WHERE shown") == [(0,)]
