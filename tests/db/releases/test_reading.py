"""How published rows are read."""

import pytest

from dbanon.db.releases import reading
from dbanon.db.session import connect
from dbanon.domain.table import TableName


@pytest.mark.parametrize("first", ["hashagg", "sort"])
def test_groups_are_read_in_one_order_however_the_server_finds_them(bare_database, first):
    bare_database.execute(
        "CREATE TABLE public.shown AS SELECT (i * 7919 % 101)::text AS age,"
        " nullif((i % 3)::text, '0') AS sex FROM generate_series(1, 500) AS i"
    )
    with connect(bare_database.settings) as session:
        session.pg.execute(f"SET enable_{first} = off")
        found = reading.texts(session, TableName("public", "shown"), ["age", "sex"])
    rows = [tuple(row.values()) for row in found.to_pylist()]
    assert rows == sorted(rows, key=lambda row: (row[0], row[1] is None, row[1]))
    assert 303 == len({row[:2] for row in rows})
    assert 500 == sum(count for _, _, count in rows)
