"""How the server goes about comparing releases of values that it knows nothing of yet."""

import pytest
from psycopg import sql

from dbanon.db.histories import memory
from dbanon.db.queries import template

SIZE = 2000
VALUES = """
INSERT INTO dbanon.history_value (table_schema, table_name, digest, value)
SELECT 'public', %s, sha256(i::text::bytea), jsonb_build_object('wage', i)
  FROM generate_series(1, %s) AS i
"""
ENTRIES = """
CREATE TEMPORARY TABLE entries AS
SELECT r.release_id, 1::bigint AS relation, v.person, v.value_id / 6 AS class, v.value_id,
       nullif(r.release_id + 1, 3) AS until, v.value_id / 6 AS shown, v.value_id AS held,
       1::bigint AS place, 1::bigint AS persons
  FROM generate_series(1::bigint, 2) AS r (release_id)
 CROSS JOIN (SELECT gen_random_uuid() AS person, h.value_id
               FROM dbanon.history_value AS h
              WHERE h.table_name = 'people') AS v
"""
NOW = """
CREATE TEMPORARY TABLE now AS
SELECT e.person, e.class, e.value_id, e.shown, e.place, e.persons
  FROM entries AS e
 WHERE e.release_id = 2
"""
HERE = sql.Identifier("pg_temp", "entries")


@pytest.fixture
def session(database):
    """Return a connection to a database that counted its values before a table was published."""
    with database.connect() as connection:
        connection.execute(VALUES, ("others", 20))
        connection.execute("ANALYZE dbanon.history_value")
        connection.execute(VALUES, ("people", SIZE))
        connection.execute(ENTRIES)
        connection.execute(NOW)
        connection.execute("CREATE TEMPORARY TABLE cells AS SELECT person, shown AS cell FROM now")
        connection.execute("ANALYZE entries, now, cells")
        yield connection


@pytest.fixture
def alike(session):
    """Return the session with many classes of the same few values."""
    session.execute("UPDATE entries SET value_id = 21 + value_id % 14")
    session.execute("UPDATE now SET value_id = 21 + value_id % 14")
    session.execute("ANALYZE entries, now")
    return session


def plan(session, statement):
    rows = session.execute(sql.SQL("EXPLAIN {}").format(statement))
    return "\n".join(row[0] for row in rows)


@pytest.mark.parametrize("counted", ["counted_all", "counted_among"])
def test_unique_numbers_are_not_compared_each_with_each(session, counted):
    found = plan(session, compare(counted))
    assert "Hash" in found
    assert [] == compared_each(found)


def test_classes_of_the_same_values_are_not_compared_each_with_each(alike):
    found = plan(alike, compare("counted_all"))
    by_word = [line for line in found.splitlines() if "Cond: " in line and "word = " in line]
    assert by_word
    assert [] == [line for line in by_word if ".shown" not in line]


def compare(counted):
    return template(
        "overlays.compare",
        releases=memory.listed([(1, 1, 1, 5)], "release_id", "shown_id", "relation", "k"),
        numbers=sql.Literal([1]),
        places=sql.Literal([0]),
        columns=sql.Literal(["wage"]),
        least=sql.Literal([3]),
        now=sql.Identifier("pg_temp", "now"),
        shown=template(f"overlays.{counted}", shown=HERE, before=HERE),
        never=memory.NEVER,
    )


def test_unique_numbers_are_found_by_their_numbers(session):
    overlay = template(
        "overlays.overlay",
        entries=HERE,
        never=memory.NEVER,
        cells=sql.Identifier("pg_temp", "cells"),
        names=sql.SQL(", u.wage"),
        known_as=sql.Identifier("cell"),
        run=sql.Identifier("c2"),
        cell=sql.Identifier("c0"),
        person=sql.Identifier("c1"),
        persons=sql.Identifier("c3"),
    )
    listed = memory.listed([(1, 1, 1), (2, 2, 1)], "release_id", "shown_id", "relation")
    statement = template(
        "overlays.judge",
        columns=sql.SQL(", v.value ->> 'wage' AS wage"),
        codes=sql.SQL(", dense_rank() OVER (ORDER BY c.wage) AS code"),
        among=HERE,
        runs=template("overlays.runs", releases=listed, entries=HERE, never=memory.NEVER),
        overlay=overlay,
        judged=sql.SQL("SELECT c2 AS run, count(*) FROM overlay GROUP BY c2"),
    )
    found = plan(session, statement)
    assert "Hash" in found
    assert [] == compared_each(found)


MEMBERS = """
INSERT INTO dbanon.history_member (release_id, part, persons, classes, value_ids)
SELECT 1, i, array_agg(gen_random_uuid()), array_agg(j), array_agg(j)
  FROM generate_series(1, 40) AS i
 CROSS JOIN generate_series(1, 100) AS j
 GROUP BY i
 UNION ALL
SELECT 2, 1, array_agg(gen_random_uuid()), array_agg(j), array_agg(j)
  FROM generate_series(1, 20) AS j;
ANALYZE dbanon.history_member
"""


@pytest.mark.parametrize("members", ["", MEMBERS])
def test_no_row_of_a_release_is_compared_with_each_change(database, session, members):
    with database.admin() as admin:
        admin.execute("SET session_replication_role = replica")  # no release is needed
        admin.execute(members)
    found = plan(session, memory.entries_of({1: 1, 2: 1})).splitlines()
    assert [line for line in found if "Cond: " in line and line.endswith(" = c.person)")]


def compared_each(found):
    """Return the joins of a plan that look at every pair of rows."""
    nodes = found.split("->  ")
    return [node for node in nodes if node.startswith("Nested Loop") and "Join Filter" in node]
