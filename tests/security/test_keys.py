"""Keys that do not tell persons apart at every moment: copies of one must not count as members."""

from contextlib import nullcontext
from types import SimpleNamespace

import psycopg
import pytest
from live import K2, policy_of, serve, shown
from psycopg import sql
from tables import make_patients, patients_policy

import dbanon
from dbanon.db.proofs import subjects
from dbanon.db.session import connect
from dbanon.domain.table import ColumnKind, TableName

DEFERRED = "DROP CONSTRAINT patients_pkey, ADD PRIMARY KEY (id) DEFERRABLE INITIALLY DEFERRED"


def publish(database, table, **options):
    dbanon.set_policy(table, patients_policy(table), settings=database.settings)
    return dbanon.publish(table, settings=database.settings, **options)


@pytest.mark.parametrize("kind", ["table", "view"])
def test_a_deferrable_key_is_refused(database, kind):
    table = make_patients(database)
    database.execute(f"ALTER TABLE public.patients {DEFERRED}")
    with pytest.raises(dbanon.PolicyError, match="its primary key is deferrable"):
        publish(database, table, kind=kind)


def test_a_key_that_became_deferrable_is_refused_and_named_by_doctor(database):
    table = make_patients(database)
    publish(database, table)
    database.execute(f"ALTER TABLE public.patients {DEFERRED}")
    with pytest.raises(dbanon.DriftError, match="its primary key is deferrable"):
        dbanon.refresh(table, settings=database.settings)
    found = [f.message for f in dbanon.doctor(settings=database.settings) if f.exit_code]
    assert len(found) == 1
    assert "its primary key is deferrable" in found[0]


def test_a_key_of_a_partitioned_table_that_its_partitions_lack_is_refused(database):
    make_patients(database, name="parted_source")
    database.execute(
        "CREATE TABLE public.parted (LIKE public.parted_source) PARTITION BY RANGE (id);"
        "CREATE TABLE public.part PARTITION OF public.parted DEFAULT;"
        "ALTER TABLE ONLY public.parted ADD PRIMARY KEY (id);"
        "INSERT INTO public.parted SELECT * FROM public.parted_source;"
        "INSERT INTO public.parted SELECT * FROM public.parted_source"
    )
    parted = TableName("public", "parted")
    assert database.execute("SELECT count(*), count(DISTINCT id) FROM public.parted") == [
        (400, 200)
    ]
    with pytest.raises(dbanon.PolicyError, match="index that is not valid"):
        publish(database, parted)


@pytest.mark.parametrize("kind", ["table", "view"])
def test_copies_below_a_damaged_index_are_no_members(database, kind):
    table = make_patients(database)
    admin = database.admin()
    mark = (
        "UPDATE pg_index SET indisready = {0}, indislive = {0}"
        " WHERE indexrelid = 'public.patients_pkey'::regclass"
    )
    admin.execute(mark.format("false"))
    copies = database.connect()
    copies.execute(
        "INSERT INTO public.patients SELECT p.* FROM public.patients AS p,"
        " generate_series(1, 9) WHERE id < 3"
    )
    admin.execute(mark.format("true"))
    assert database.execute("SELECT count(*), count(DISTINCT id) FROM public.patients") == [
        (227, 200)
    ]
    with pytest.raises(dbanon.PolicyError, match="does not tell its rows apart"):
        publish(database, table, kind=kind, l=1)
    assert database.execute("SELECT to_regclass('anon.patients')") == [(None,)]


KEYS = {
    "one of each number": ("k1 int", "(1), (2)", True),
    "a number twice": ("k1 int", "(1), (2), (1)", False),
    "a number that is NULL": ("k1 int, k2 int", "(1, 1), (1, NULL)", False),
    "one of each": ("k1 text", "('a'), ('b')", True),
    "no rows": ("k1 text", None, True),
    "a copy": ("k1 text", "('a'), ('b'), ('a')", False),
    "a NULL": ("k1 text", "('a'), (NULL)", False),
    "nothing but NULL": ("k1 text", "(NULL), (NULL)", False),
    "a pair": ("k1 text, k2 int", "('a', 1), ('a', 2), ('b', 1)", True),
    "a pair twice": ("k1 text, k2 int", "('a', 1), ('a', 2), ('a', 1)", False),
    "half a pair": ("k1 text, k2 int", "('a', 1), ('a', NULL)", False),
    "numbers spelled otherwise": ("k1 numeric", "(1), (1.00)", False),
    "zeros of two signs": ("k1 float8", "('-0'), ('0')", False),
    "no numbers": ("k1 float8", "('NaN'), ('NaN')", False),
    "letters of two cases": ("k1 text COLLATE public.caseless", "('a'), ('A')", False),
    "such a pair": ("k1 int, k2 text COLLATE public.caseless", "(1, 'a'), (1, 'A')", False),
    "blanks at the end": ("k1 char(3)", "('a'), ('a ')", False),
    "fields that are NULL": ("k1 public.pair", "(ROW(1, NULL)), (ROW(NULL, NULL))", True),
    "a row of them twice": ("k1 public.pair", "(ROW(NULL, NULL)), (ROW(NULL, NULL))", False),
}


@pytest.mark.parametrize("case", KEYS)
def test_a_key_is_proved_by_its_own_equality(database, case):
    columns, values, is_key = KEYS[case]
    if "caseless" in columns:
        try:
            database.execute(
                "CREATE COLLATION public.caseless"
                " (provider = icu, locale = 'und-u-ks-level2', deterministic = false)"
            )
        except psycopg.errors.FeatureNotSupported:
            pytest.skip("this server was built without ICU")
    database.execute("CREATE TYPE public.pair AS (a int, b int)")
    database.execute(f"CREATE TABLE public.keys ({columns})")
    if values is not None:
        database.execute(f"INSERT INTO public.keys VALUES {values}")
    whole = all(name.split()[1] == "int" for name in columns.split(", "))
    kind = ColumnKind.INTEGER if whole else ColumnKind.OTHER
    publication = SimpleNamespace(
        rows=sql.Identifier("public", "keys"),
        key_columns=[name.split()[0] for name in columns.split(", ")],
        info=SimpleNamespace(
            name=TableName("public", "keys"),
            primary_key=("id",),
            column=lambda _: SimpleNamespace(kind=kind),
        ),
        policy=SimpleNamespace(key=()),
        reading=None,
        stage=sql.Identifier("pg_temp", "stage_1"),
    )
    expected = nullcontext() if is_key else pytest.raises(dbanon.PolicyError, match="same key")
    with connect(database.settings) as session, expected:
        subjects.require_unique(session, publication)


def test_copies_of_a_person_keep_no_class_in_sight(database):
    """One statement that takes the copies away again looks, as a set, as if nothing had changed."""
    serve(database, policy_of(K2), [(j, f"zip {j // 3}", "a", "1") for j in range(6)])
    database.execute(
        "ALTER TABLE public.people DROP CONSTRAINT people_pkey,"
        " ADD PRIMARY KEY (id) DEFERRABLE INITIALLY DEFERRED"
    )
    assert shown(database) == 0  # the key that guards rely on was dropped
    judged = "SELECT bool_or(shown) FROM dbanon_data.groups_1"
    assert database.execute(judged) == [(True,)]
    with psycopg.connect(database.dsn) as attacker:
        attacker.execute(
            "INSERT INTO public.people SELECT p.* FROM public.people AS p, generate_series(1, 9)"
            " WHERE id = 0"
        )
        attacker.execute("DELETE FROM public.people WHERE id > 0")
        attacker.execute(
            "WITH numbered AS (SELECT ctid AS place, row_number() OVER () AS n"
            "                    FROM public.people WHERE id = 0)"
            "UPDATE public.people AS p SET id = CASE WHEN n = 1 THEN 0 ELSE 100 + n END,"
            "       zip = CASE WHEN n = 1 THEN zip ELSE 'none' END"
            "  FROM numbered AS o WHERE p.ctid = o.place"
        )
    assert database.execute(judged) == [(False,)]
