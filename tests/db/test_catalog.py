import pytest

from dbanon.db import catalog
from dbanon.db.session import connect
from dbanon.domain.errors import TableNotFound
from dbanon.domain.table import ColumnKind, TableName

HOSTILE = 'a"b;c\nd — ünï'

WIDE = """
CREATE TYPE public.mood AS ENUM ('sad', 'ok', 'happy');
CREATE DOMAIN public.small AS integer CHECK (VALUE < 100);
CREATE DOMAIN public.smaller AS public.small NOT NULL;
CREATE TABLE public.wide (
    a bigint GENERATED ALWAYS AS IDENTITY,
    b uuid,
    c public.mood,
    d public.smaller,
    e text[],
    f int4range,
    g json,
    h jsonb,
    i inet,
    j bytea,
    k date,
    l timestamptz(0),
    m numeric(12, 4),
    n double precision,
    o boolean DEFAULT true,
    p integer GENERATED ALWAYS AS (1 + 1) STORED,
    q point,
    r varchar(5),
    s char(3),
    PRIMARY KEY (b, a)
);
COMMENT ON COLUMN public.wide.c IS 'dbanon: quasi';
"""


def describe(database, name):
    with connect(database.settings) as session, session.transaction():
        return catalog.describe(session, name)


def test_every_kind_of_column_is_read(bare_database):
    bare_database.execute(WIDE)
    info = describe(bare_database, TableName(None, "wide"))
    kinds = {column.name: column.kind for column in info.columns}
    assert kinds == {
        "a": ColumnKind.INTEGER,
        "b": ColumnKind.CATEGORY,
        "c": ColumnKind.ORDINAL,
        "d": ColumnKind.INTEGER,
        "e": ColumnKind.OTHER,
        "f": ColumnKind.OTHER,
        "g": ColumnKind.OTHER,
        "h": ColumnKind.OTHER,
        "i": ColumnKind.CATEGORY,
        "j": ColumnKind.OTHER,
        "k": ColumnKind.DATE,
        "l": ColumnKind.TIMESTAMPTZ,
        "m": ColumnKind.DECIMAL,
        "n": ColumnKind.FLOAT,
        "o": ColumnKind.BOOLEAN,
        "p": ColumnKind.INTEGER,
        "q": ColumnKind.OTHER,
        "r": ColumnKind.CATEGORY,
        "s": ColumnKind.CATEGORY,
    }
    assert info.name == TableName("public", "wide")
    assert info.primary_key == ("b", "a")
    assert info.column("a").identity
    assert info.column("p").generated
    assert info.column("c").labels == ("sad", "ok", "happy")
    assert info.column("c").comment == "dbanon: quasi"
    assert info.column("d").type == "smaller" or info.column("d").type == "public.smaller"
    assert info.column("d").base_type == "int4"
    assert info.column("l").type == "timestamp(0) with time zone"
    assert not any(column.user_defined for column in info.columns)
    without = {column.name for column in info.columns if not column.has_equality}
    assert without == {"g", "q"}


def test_hostile_names_are_found(bare_database):
    connection = bare_database.connect()
    quoted = '"' + HOSTILE.replace('"', '""') + '"'
    connection.execute(f"CREATE SCHEMA {quoted}")
    connection.execute(f"CREATE TABLE {quoted}.{quoted} ({quoted} int PRIMARY KEY)")
    info = describe(bare_database, TableName.parse(f"{quoted}.{quoted}"))
    assert info.name == TableName(HOSTILE, HOSTILE)
    assert info.primary_key == (HOSTILE,)


def test_an_unqualified_name_follows_the_search_path_of_the_role(bare_database):
    bare_database.execute("CREATE SCHEMA one; CREATE SCHEMA two")
    bare_database.execute("CREATE TABLE one.t (a int); CREATE TABLE two.t (a int)")
    bare_database.execute(f'ALTER ROLE "{bare_database.server.owner}" SET search_path = two, one')
    try:
        assert describe(bare_database, TableName(None, "t")).name == TableName("two", "t")
    finally:
        bare_database.execute(f'ALTER ROLE "{bare_database.server.owner}" RESET search_path')


def test_a_missing_table_names_the_one_that_differs_in_case(bare_database):
    bare_database.execute('CREATE TABLE public."Patients" (id int)')
    with pytest.raises(TableNotFound) as caught:
        describe(bare_database, TableName(None, "patients"))
    assert caught.value.hint == 'did you mean public."Patients"?'


@pytest.mark.parametrize(
    ("slip", "hint"),
    [
        ("pateints", "did you mean public.patients?"),
        ("Pateints", "did you mean public.patients?"),
        ("hospital", "dbanon inspect schema.table"),
        ("%_s", "dbanon inspect schema.table"),
    ],
)
def test_a_slip_of_the_pen_is_answered_with_the_nearest_name(bare_database, slip, hint):
    bare_database.execute("CREATE TABLE public.patients (id int)")
    with pytest.raises(TableNotFound) as caught:
        describe(bare_database, TableName(None, slip))
    assert hint == caught.value.hint


def test_partitions_children_and_row_security_are_seen(bare_database):
    bare_database.execute("CREATE TABLE public.p (a int) PARTITION BY RANGE (a)")
    bare_database.execute("CREATE TABLE public.c PARTITION OF public.p DEFAULT")
    bare_database.execute("CREATE TABLE public.r (a int)")
    bare_database.execute("ALTER TABLE public.r ENABLE ROW LEVEL SECURITY")
    parent = describe(bare_database, TableName("public", "p"))
    assert (parent.relkind, parent.has_children, parent.row_security) == ("p", True, False)
    assert describe(bare_database, TableName("public", "r")).row_security


def test_types_of_extensions_are_user_defined(bare_database):
    bare_database.admin().execute("CREATE TYPE public.pair AS (a int, b int)")
    bare_database.execute("CREATE TABLE public.t (a public.pair, b public.pair[], c int)")
    info = describe(bare_database, TableName("public", "t"))
    assert [column.user_defined for column in info.columns] == [True, True, False]


def test_statistics_count_rows_nulls_and_distinct_values(database):
    database.execute("CREATE TABLE public.t (a int, b json)")
    database.execute("INSERT INTO public.t VALUES (1, '{}'), (1, NULL), (NULL, '[]')")
    with connect(database.settings) as session, session.transaction():
        info = catalog.describe_source(session, TableName("public", "t"))
        n_rows, stats = catalog.statistics(session, info)
    assert n_rows == 3
    assert set(stats) == {"a"}
    assert (stats["a"].n_rows, stats["a"].n_null, stats["a"].n_distinct) == (3, 1, 1)


def test_distinct_pairs_of_a_column_count_null_as_a_value(database):
    database.execute("CREATE TABLE public.t (a int, b text, c json, d inet)")
    database.execute(
        "INSERT INTO public.t VALUES (1, 'x', '{}', '::1'), (1, NULL, '{}', '::1'),"
        " (2, 'x', '{}', NULL), (2, 'x', '[]', NULL), (NULL, 'y', '[]', NULL)"
    )
    with connect(database.settings) as session, session.transaction():
        info = catalog.describe_source(session, TableName("public", "t"))
        assert catalog.statistics_and_pairs(session, info, ["a"])[2] == {"a": {"b": 4, "d": 3}}


def test_what_a_view_makes_is_made_once_however_much_is_counted(database):
    database.execute("CREATE TABLE public.t (a int, i int)")
    database.execute("INSERT INTO public.t SELECT i % 50, i FROM generate_series(1, 2000) AS i")
    database.execute(
        "CREATE VIEW public.v AS SELECT a, i, random() AS r FROM public.t WHERE random() < 0.5"
    )
    with connect(database.settings) as session, session.transaction():
        info = catalog.describe_source(session, TableName("public", "v"))
        n_rows, stats, pairs = catalog.statistics_and_pairs(session, info, ["a", "i"])
    assert 800 < n_rows < 1200
    assert n_rows == stats["i"].n_distinct == pairs["a"]["i"] == pairs["a"]["r"] == pairs["i"]["r"]


@pytest.mark.parametrize(
    ("change", "seen"),
    [
        ("UPDATE public.t SET a = a", False),
        ("UPDATE public.t SET c = c + 1", False),
        ("UPDATE public.t SET a = 3 WHERE a = 1", True),
        ("UPDATE public.t SET b = '' WHERE b IS NULL", True),
        ("UPDATE public.t SET b = 'x ' WHERE b = 'x'", True),
        ("UPDATE public.t SET a = 3 - a", True),
        ("UPDATE public.t SET a = b::int, b = a WHERE a = 2", False),
        ("DELETE FROM public.t WHERE a = 1", True),
        ("INSERT INTO public.t VALUES (1, 'x', 5)", True),
    ],
)
def test_a_digest_tells_other_contents_and_no_other_order(database, change, seen):
    database.execute("CREATE TABLE public.t (a int, b text, c int)")
    database.execute("INSERT INTO public.t VALUES (1, 'x', 0), (2, '2', 0), (4, NULL, 0)")

    def digest():
        with connect(database.settings) as session, session.transaction():
            info = catalog.describe_source(session, TableName("public", "t"))
            return catalog.content_digest(session, info, ["a", "b"])

    before = digest()
    database.execute(change)
    assert (digest() != before) == seen


def test_columns_of_a_domain_are_known(database):
    database.execute("CREATE DOMAIN public.small AS int")
    database.execute("CREATE TABLE public.t (a public.small, b int)")
    info = describe(database, TableName("public", "t"))
    assert [column.is_domain for column in info.columns] == [True, False]


def test_the_columns_of_unique_indexes_are_those_that_tell_rows_apart(database):
    database.execute(
        "CREATE TABLE public.keys (id int PRIMARY KEY, a text, b text, c int, d int, e int)"
        " PARTITION BY HASH (id);"
        "CREATE TABLE public.part PARTITION OF public.keys"
        " FOR VALUES WITH (MODULUS 1, REMAINDER 0);"
        "CREATE UNIQUE INDEX ON public.part (d) INCLUDE (e);"
        "CREATE UNIQUE INDEX ON public.part (lower(a), c) WHERE e > 0;"
        "CREATE INDEX ON public.part (b)"
    )
    with connect(database.settings) as session, session.transaction():
        info = catalog.describe(session, TableName("public", "keys"))
        assert [("a", "c"), ("d",), ("id",)] == catalog.unique_columns(session, info)
        info = catalog.describe(session, TableName("public", "part"))
        assert [("a", "c"), ("d",), ("id",)] == catalog.unique_columns(session, info)


def test_the_foreign_keys_to_other_tables_are_told_once_each_and_through_views(database):
    database.execute(
        "CREATE TABLE public.people (a int, b int, PRIMARY KEY (b, a));"
        "CREATE TABLE public.parted (id int PRIMARY KEY) PARTITION BY RANGE (id);"
        "CREATE TABLE public.part PARTITION OF public.parted FOR VALUES FROM (0) TO (9);"
        "CREATE TABLE public.visits (id int PRIMARY KEY, above int REFERENCES public.visits, x int,"
        " y int REFERENCES public.parted, FOREIGN KEY (y, x) REFERENCES public.people);"
        "CREATE VIEW public.of_visits AS SELECT id, above, y FROM public.visits;"
        "CREATE VIEW public.of_view AS SELECT y, x.id FROM public.of_visits, public.parted AS x"
    )
    with connect(database.settings) as session:
        found = {}
        for name in ("visits", "of_visits", "of_view"):
            info = catalog.describe(session, TableName("public", name))
            keys = catalog.foreign_keys(session, info)
            found[name] = [(key.columns, str(key.table)) for key in keys]
    assert found == {
        "visits": [(("y",), "public.parted"), (("y", "x"), "public.people")],
        "of_visits": [(("y",), "public.parted")],
        "of_view": [(("y",), "public.parted")],
    }
