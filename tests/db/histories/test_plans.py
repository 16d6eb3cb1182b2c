"""How the server goes about comparing releases of values that it knows nothing of yet."""

import pytest
from psycopg import sql

from dbanon.db.queries import template

SIZE = 2000
VALUES = """
INSERT INTO dbanon.history_value (table_schema, table_name, digest, value)
SELECT 'public', %s, sha256(i::text::bytea), jsonb_build_object('wage', i)
  FROM generate_series(1, %s) AS i
"""
ROWS = """
CREATE TEMPORARY TABLE {} AS
SELECT gen_random_uuid() AS person, v.value_id, v.value_id / 6 AS shown, 1::bigint AS place
  FROM dbanon.history_value AS v
 WHERE v.table_name = 'people'
"""


@pytest.fixture
def session(database):
    """Return a connection to a database that counted its values before a table was published."""
    with database.connect() as connection:
        connection.execute(VALUES, ("others", 20))
        connection.execute("ANALYZE dbanon.history_value")
        connection.execute(VALUES, ("people", SIZE))
        for name in ("before", "now"):
            connection.execute(sql.SQL(ROWS).format(sql.Identifier(name)))
            connection.execute(sql.SQL("ANALYZE {}").format(sql.Identifier(name)))
        connection.execute("CREATE TEMPORARY TABLE cells AS SELECT person, shown AS cell FROM now")
        connection.execute("ANALYZE cells")
        yield connection


def plan(session, statement):
    rows = session.execute(sql.SQL("EXPLAIN {}").format(statement))
    return "\n".join(row[0] for row in rows)


def test_unique_numbers_are_not_compared_each_with_each(session):
    names = {"before": "before", "now": "now", "shown": "before"}
    statement = template(
        "overlays/intersect",
        **{slot: sql.Identifier("pg_temp", name) for slot, name in names.items()},
        column=sql.Literal("wage"),
        l=sql.Literal(3),
    )
    found = plan(session, statement)
    assert "Hash" in found
    assert "Join Filter" not in found


def test_unique_numbers_are_found_by_their_numbers(session):
    statement = template(
        "overlays/overlay",
        overlay=sql.Identifier("overlay"),
        state=sql.Identifier("pg_temp", "now"),
        cells=sql.Identifier("pg_temp", "cells"),
        columns=sql.SQL(", v.value ->> 'wage' AS wage"),
        names=sql.SQL(", u.wage"),
        known_as=sql.Identifier("cell"),
        cell=sql.Identifier("c0"),
        person=sql.Identifier("c1"),
    )
    found = plan(session, statement)
    assert "Hash" in found
    assert "Join Filter" not in found
