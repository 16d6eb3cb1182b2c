"""A partitioned table served live: no way to its rows is without a guard."""

import psycopg
import pytest
from tables import make_patients, patients_policy, rows_proved

import dbanon
from dbanon.domain.table import TableName

TREE = """
CREATE TABLE public.parted (LIKE public.patients, PRIMARY KEY (id)) PARTITION BY RANGE (id);
CREATE TABLE public.low PARTITION OF public.parted FOR VALUES FROM (MINVALUE) TO (100);
CREATE TABLE public.high PARTITION OF public.parted FOR VALUES FROM (100) TO (1000)
    PARTITION BY RANGE (id);
CREATE TABLE public.high_1 PARTITION OF public.high FOR VALUES FROM (100) TO (150);
CREATE TABLE public.high_2 PARTITION OF public.high FOR VALUES FROM (150) TO (1000);
INSERT INTO public.parted SELECT * FROM public.patients
"""
SMALLEST = """
SELECT min(n) FROM (SELECT count(*) AS n FROM anon.parted GROUP BY age, sex, born, weight) AS c
"""


def serve_parts(database):
    make_patients(database)
    database.execute(TREE)
    table = TableName("public", "parted")
    dbanon.set_policy(table, patients_policy(table, l=None), settings=database.settings)
    options = {"kind": "view", "algorithm": "mondrian", "settings": database.settings}
    assert rows_proved(dbanon.publish(table, **options)) == 200


@pytest.fixture
def live(copied):
    """Two hundred people in three partitions on two levels, served with k = 5."""
    return copied(serve_parts)


def shown(database):
    return database.execute("SELECT count(*) FROM anon.parted")[0][0]


def mates(database, least, most):
    """Return the members with these keys of the class that has most of them, and its size."""
    rows = database.execute(
        "SELECT array_agg(k1 ORDER BY k1) FILTER (WHERE here), count(*)"
        " FROM (SELECT *, k1 >= %s AND k1 < %s AS here FROM dbanon_data.rows_1) AS r"
        " GROUP BY group_id ORDER BY count(*) FILTER (WHERE here) DESC, group_id LIMIT 1",
        (least, most),
    )
    return rows[0]


def assert_holds(database):
    smallest = database.execute(SMALLEST)[0][0]
    assert smallest is None or smallest >= 5


@pytest.mark.parametrize(
    ("table", "least", "most"),
    [("parted", 0, 100), ("low", 0, 100), ("high", 150, 200), ("high_2", 150, 200)],
)
def test_a_write_is_guarded_whichever_table_it_names(live, table, least, most):
    gone, size = mates(live, least, most)
    assert size - len(gone) < 5
    for key in gone:
        live.execute(f"DELETE FROM public.{table} WHERE id = %s", (key,))
        assert_holds(live)
    assert shown(live) == 200 - size


def test_a_row_that_moves_to_another_partition_is_not_shown(live):
    key = mates(live, 0, 100)[0][0]
    live.execute("UPDATE public.parted SET id = 900 WHERE id = %s", (key,))
    assert live.execute("SELECT count(*) FROM anon.parted WHERE note = %s", (f"note {key}",)) == [
        (0,)
    ]
    assert_holds(live)


@pytest.mark.pg(">= 15")
def test_merge_through_the_root_is_guarded(live):
    gone, size = mates(live, 150, 200)
    assert 0 < size - len(gone) < 5
    live.execute(
        "MERGE INTO public.parted AS p USING unnest(%s::int[]) AS x (id) ON p.id = x.id"
        " WHEN MATCHED THEN DELETE",
        (gone,),
    )
    assert live.execute("SELECT count(*) FROM public.parted") == [(200 - len(gone),)]
    assert shown(live) == 200 - size


@pytest.mark.parametrize("table", ["parted", "high", "low"])
def test_truncating_a_part_hides_everything(live, table):
    live.execute(f"TRUNCATE public.{table}")
    assert shown(live) == 0


def test_a_detached_partition_stays_as_it_was_until_it_is_written(live):
    live.execute("ALTER TABLE public.parted DETACH PARTITION public.low")
    assert shown(live) == 200
    live.execute("INSERT INTO public.low (id, note) VALUES (120, 'another')")
    found = live.execute("SELECT count(*) FROM anon.parted WHERE note = 'another'")
    assert found == [(0,)]  # it has a key of the release, but in another partition
    live.execute("DELETE FROM public.low WHERE id = %s", (mates(live, 0, 100)[0][0],))
    assert shown(live) == 0


STRANGERS = {
    "another root": "CREATE TABLE public.stranger (LIKE public.patients, PRIMARY KEY (id))"
    " PARTITION BY RANGE (id)",
    "the same root": "CREATE TABLE public.stranger PARTITION OF public.parted"
    " FOR VALUES FROM (100) TO (1000) PARTITION BY RANGE (id)",
}


@pytest.mark.parametrize("create", STRANGERS.values(), ids=STRANGERS)
@pytest.mark.parametrize(
    "write", ["DELETE FROM public.stranger", "UPDATE public.stranger SET sex = NULL"]
)
def test_a_partition_is_not_written_unseen_through_a_table_without_guards(live, create, write):
    live.execute(
        "ALTER TABLE public.high DETACH PARTITION public.high_2;"
        "ALTER TABLE public.parted DETACH PARTITION public.high"
    )
    live.execute(create)
    live.execute(
        "ALTER TABLE public.stranger ATTACH PARTITION public.high_2 FOR VALUES FROM (150) TO (1000)"
    )
    assert shown(live) == 200
    live.execute(f"{write} WHERE id = 160")
    assert shown(live) == 0


def test_rows_of_a_partition_attached_later_wait_for_the_next_release(live):
    live.execute(
        "CREATE TABLE public.later (LIKE public.patients);"
        "INSERT INTO public.later (id, age) SELECT i, 50 FROM generate_series(1000, 1009) AS i;"
        "ALTER TABLE public.parted ATTACH PARTITION public.later FOR VALUES FROM (1000) TO (1010)"
    )
    assert shown(live) == 200
    live.execute("UPDATE public.parted SET age = 51 WHERE id >= 1000")
    dbanon.refresh("parted", settings=live.settings)
    assert shown(live) == 210


def test_a_partition_that_is_served_cannot_be_dropped_unseen(live):
    with pytest.raises(psycopg.errors.DependentObjectsStillExist):
        live.execute("DROP TABLE public.low")


def test_doctor_looks_at_the_guards_of_every_partition(live):
    assert not [f for f in dbanon.doctor(settings=live.settings) if f.exit_code]
    live.execute("ALTER TABLE public.high_1 DISABLE TRIGGER ALL")
    assert any("guard" in finding.message for finding in dbanon.doctor(settings=live.settings))
