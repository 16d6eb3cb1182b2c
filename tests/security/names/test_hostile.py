"""Names and values that a program could stumble over, or be made to run."""

import psycopg
import pytest
from psycopg import sql
from selection import each_once, exhaustive_after
from tables import rows_proved

import dbanon
from dbanon.domain.policy import K_ANONYMITY, L_DIVERSITY, ColumnRule, ModelSpec, Policy, Role
from dbanon.domain.table import TableName

NAMES = {
    "quotes": 'a"b""c',
    "injection": "x'; DROP SCHEMA dbanon CASCADE; --",
    "newlines": "a\nb\r\nc\td",
    "63 bytes": "n" * 63,
    "63 bytes of umlauts": "ü" * 31,
    "not latin": "患者テーブル🙂",
    "dollar quotes": "$function$ $$ $guard$",
    "percents and braces": "%s %(x)s {slot} {{}} :name",
    "backslashes": "a\\b\\'c\\",
    "spaces": "  two  words  ",
    "a number": "1",
    "a keyword": "select",
    "our own words": "group_id",
}


def make(database, table, columns):
    """Create the table with a key, a number, a category, a sensitive and a plain column."""
    names = [sql.Identifier(name) for name in columns]
    target = sql.Identifier(table.schema, table.name)
    connection = database.connect()
    connection.execute(
        sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(table.schema))
    )
    connection.execute(
        sql.SQL("CREATE TABLE {} ({} int PRIMARY KEY, {} int, {} text, {} text, {} text)").format(
            target, *names
        )
    )
    connection.execute(
        sql.SQL(
            "INSERT INTO {} SELECT i, i % 50, 'c' || i % 3, 'd' || i % 7, 'plain'"
            " FROM generate_series(1, 300) AS i"
        ).format(target)
    )
    roles = (Role.IDENTIFIER, Role.QUASI, Role.QUASI, Role.SENSITIVE, Role.INSENSITIVE)
    rules = tuple(ColumnRule(name, role) for name, role in zip(columns, roles, strict=True))
    models = (ModelSpec(K_ANONYMITY, {"k": 5}), ModelSpec(L_DIVERSITY, {"l": 3}))
    policy = Policy(table, rules, models, "mondrian")
    dbanon.set_policy(table, policy, settings=database.settings)
    return policy


def variants(name):
    """Five different names that are as hostile as the one given, and no longer than 63 bytes."""
    room = name.encode()[: 63 - 2].decode(errors="ignore")
    return [name, *(f"{i}{room}" for i in range(1, 5))]


@pytest.mark.parametrize(("key", "kind"), each_once(NAMES, ["table", "view"]))
def test_hostile_names_publish_and_check(database, key, kind):
    name = NAMES[key]
    table = TableName(name, name)
    columns = variants(name)
    make(database, table, columns)
    settings = database.settings
    options = {"kind": kind, "schema": f"0{name}"[:30], "name": columns[1]}
    release = dbanon.publish(table, settings=settings, **options)
    assert rows_proved(release) == 300
    assert dbanon.check(TableName.parse(str(release.relation)), settings=settings).passed
    published = sql.Identifier(release.relation.schema, release.relation.name)
    assert database.execute(sql.SQL("SELECT count(*) FROM {}").format(published)) == [(300,)]
    if kind == "view":
        source = sql.Identifier(table.schema, table.name)
        database.execute(sql.SQL("DELETE FROM {}").format(source))
        assert database.execute(sql.SQL("SELECT count(*) FROM {}").format(published)) == [(0,)]
    else:
        (refreshed,) = dbanon.refresh(table, new_series=True, settings=settings)
        assert refreshed.changed
    assert database.execute("SELECT to_regnamespace('dbanon') IS NOT NULL") == [(True,)]


@pytest.mark.exhaustive
def test_a_hostile_role_is_granted(database):
    table = TableName("public", "people")
    make(database, table, ["id", "age", "kind", "disease", "plain"])
    role = 'we"ird; DROP ROLE\npostgres'
    database.server.run(sql.SQL("CREATE ROLE {}").format(sql.Identifier(role)))
    try:
        dbanon.publish(table, grants=[role], settings=database.settings)
        found = database.execute("SELECT has_table_privilege(%s, 'anon.people', 'SELECT')", (role,))
        assert found == [(True,)]
    finally:
        database.admin().execute(sql.SQL("DROP OWNED BY {}").format(sql.Identifier(role)))
        database.server.run(sql.SQL("DROP ROLE {}").format(sql.Identifier(role)))


def publish_columns(database, columns, *, role):
    """Publish a table whose columns ``odd``, ``odd1`` ... cycle through the values of their type.

    ``columns`` are pairs of a type and values.
    """
    names = [f"odd{i or ''}" for i in range(len(columns))]
    types = [sql.SQL(declared) for declared, _ in columns]
    connection = database.connect()
    declared = [
        sql.SQL("{} {}").format(sql.Identifier(n), t) for n, t in zip(names, types, strict=True)
    ]
    connection.execute(
        sql.SQL("CREATE TABLE public.odd (id int PRIMARY KEY, age int, {}, disease text)").format(
            sql.SQL(", ").join(declared)
        )
    )
    casts = sql.SQL(", ").join(sql.SQL("%s::{}").format(t) for t in types)
    insert = sql.SQL("INSERT INTO public.odd VALUES (%s, %s, {}, %s)").format(casts)
    for i in range(100):
        row = [values[i % len(values)] for _, values in columns]
        connection.execute(insert, (i, i % 20, *row, f"d{i % 7}"))
    rules = (
        ColumnRule("id", Role.IDENTIFIER),
        ColumnRule("age", Role.QUASI),
        *(ColumnRule(name, role) for name in names),
        ColumnRule("disease", Role.SENSITIVE if role is not Role.SENSITIVE else Role.INSENSITIVE),
    )
    table = TableName("public", "odd")
    fewest = min(len(set(values)) for _, values in columns)
    l_diversity = ModelSpec(L_DIVERSITY, {"l": min(2, fewest)})
    models = (ModelSpec(K_ANONYMITY, {"k": 5}), l_diversity)
    dbanon.set_policy(table, Policy(table, rules, models), settings=database.settings)
    return dbanon.publish(table, settings=database.settings)


ODD = [
    ("text", ["", "NULL", None, "a,b", '"', "\\", "{x}", "\\.", "line\nbreak", "'"]),
    ("varchar(3)", ["", "abc", None]),
    ("char(4)", ["a", "b   ", None]),
    ("numeric", ["1", "1.0", "1.00", "-0.000001", None]),
    ("numeric(30, 10)", ["12345.0000000001", "0.1", None]),
    ("real", ["0.1", "3.14159", "-0", None]),
    ("double precision", ["0.1", "1e300", "-1e-300", None]),
    ("bigint", ["9223372036854775806", "-9223372036854775807", None]),
    ("smallint", ["-32768", "32766", None]),
    ("date", ["0001-01-01", "2020-02-29", "9999-12-30", None]),
    ("timestamp", ["1999-12-31 23:59:59.999999", "2020-02-29", None]),
    ("timestamptz", ["1999-12-31 23:59:59+05:30", "2020-02-29Z", None]),
    ("boolean", ["true", "false", None]),
    ("uuid", ["00000000-0000-0000-0000-000000000001", None]),
    ("inet", ["10.0.0.1", "::1", None]),
]


# All at once, and each alone, where it decides who shares a class.
@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "columns",
    [ODD, *exhaustive_after(0, [[column] for column in ODD])],
    ids=["all", *(declared for declared, _ in ODD)],
)
def test_odd_values_of_a_quasi_identifier_are_published_truly(database, columns):
    release = publish_columns(database, columns, role=Role.QUASI)
    assert rows_proved(release) == 100
    assert release.loss.n_rows == 100
    assert release.loss.n_classes > 1


@pytest.mark.parametrize(
    ("declared", "value"),
    [
        ("double precision", "NaN"),
        ("double precision", "Infinity"),
        ("real", "-Infinity"),
        ("numeric", "NaN"),
        ("numeric", "9" * 100),
        ("numeric", "1e-350"),
        ("numeric", "1e400"),
        ("date", "infinity"),
        ("timestamp", "-infinity"),
        ("timestamptz", "infinity"),
    ],
)
def test_values_without_a_place_on_a_line_are_refused_by_column(database, declared, value):
    with pytest.raises(dbanon.DbanonError, match="odd") as caught:
        publish_columns(database, [(declared, [value, None])], role=Role.QUASI)
    assert caught.value.hint
    if value[0].isdigit():
        assert value not in str(caught.value)


@pytest.mark.pg(">= 14")
def test_infinite_numerics_are_refused_by_column(database):
    with pytest.raises(dbanon.DbanonError, match="odd"):
        publish_columns(database, [("numeric", ["Infinity", "1"])], role=Role.QUASI)


@pytest.mark.parametrize("role", [Role.SENSITIVE, Role.INSENSITIVE])
def test_any_value_of_another_column_is_published_as_it_is(database, role):
    columns = [
        ("double precision", ["NaN", "Infinity", "-Infinity", "0", None]),
        ("date", ["infinity", "-infinity", "2020-01-01"]),
        ("numeric", ["NaN", "9" * 100, "1.00", "1.0"]),
        ("text", ["", "NULL", None, "\\N", "\\."]),
        ("jsonb", ['{"a": 1}', "null", None]),
        ("int4range", ["[1,5)", "empty", None]),
        ("text[]", ["{}", '{"a",NULL}', None]),
    ]
    assert rows_proved(publish_columns(database, columns, role=role)) == 100
    compare = "SELECT odd{0}::text FROM {1} GROUP BY 1 ORDER BY 1"
    for i, (declared, values) in enumerate(columns):
        found = database.execute(compare.format(i or "", "anon.odd"))
        assert found == database.execute(compare.format(i or "", "public.odd")), declared
        assert len(values) == len(found), declared


@pytest.mark.exhaustive
def test_a_megabyte_in_an_insensitive_column_is_published(database):
    values = ["x" * 1_000_000, "short"]
    release = publish_columns(database, [("text", values)], role=Role.INSENSITIVE)
    assert rows_proved(release) == 100
    found = database.execute("SELECT max(length(odd)), min(length(odd)) FROM anon.odd")
    assert found == [(1_000_000, 5)]


@pytest.mark.parametrize(
    "declared", ["json", "jsonb", "xml", "bytea", "text[]", "int4range", "point"]
)
def test_types_that_cannot_be_quasi_identifiers_are_refused_by_name(database, declared):
    with pytest.raises(dbanon.PolicyError, match="odd"):
        publish_columns(database, [(declared, [None])], role=Role.QUASI)


@pytest.mark.parametrize("declared", ["json", "xml", "point"])
def test_a_sensitive_type_without_equality_is_refused(database, declared):
    with pytest.raises(dbanon.PolicyError, match="odd"):
        publish_columns(database, [(declared, [None])], role=Role.SENSITIVE)


def test_a_label_cannot_be_run(database):
    labels = ["x'); DROP SCHEMA dbanon CASCADE; --", '"; DROP TABLE public.odd; --', "{}%s"]
    assert rows_proved(publish_columns(database, [("text", labels)], role=Role.QUASI)) == 100
    assert database.execute("SELECT to_regnamespace('dbanon') IS NOT NULL") == [(True,)]


def test_the_source_s_own_functions_are_not_run_with_search_path_tricks(database):
    database.execute(
        "CREATE FUNCTION public.count(anyelement) RETURNS bigint LANGUAGE sql"
        " AS 'SELECT 99::bigint'"
    )
    database.execute(
        "CREATE FUNCTION public.evil(int, int) RETURNS boolean LANGUAGE sql AS 'SELECT true'"
    )
    database.execute(
        "CREATE OPERATOR public.= (LEFTARG = int, RIGHTARG = int, FUNCTION = public.evil)"
    )
    table = TableName("public", "people")
    make(database, table, ["id", "age", "kind", "disease", "plain"])
    path = "ALTER ROLE {} SET search_path = public, pg_catalog"
    owner = sql.Identifier(database.server.owner)
    database.execute(sql.SQL(path).format(owner))
    try:
        release = dbanon.publish("people", settings=database.settings)
    finally:
        database.execute(sql.SQL("ALTER ROLE {} RESET search_path").format(owner))
    assert rows_proved(release) == 300
    assert database.execute("SELECT pg_catalog.count(*) FROM anon.people") == [(300,)]


@pytest.mark.parametrize("relkind", ["view", "materialized view"])
def test_a_view_as_source_needs_a_key(database, relkind):
    make(database, TableName("public", "people"), ["id", "age", "kind", "disease", "plain"])
    database.execute(f"CREATE {relkind} public.seen AS SELECT * FROM public.people")
    policy = dbanon.load_policy("people", settings=database.settings)
    with pytest.raises(dbanon.PolicyError, match=r"key = \["):
        dbanon.set_policy(
            "seen",
            Policy(TableName("public", "seen"), policy.columns, policy.models),
            settings=database.settings,
        )


def test_row_level_security_stops_publication(database):
    table = TableName("public", "people")
    make(database, table, ["id", "age", "kind", "disease", "plain"])
    database.execute("ALTER TABLE public.people ENABLE ROW LEVEL SECURITY")
    with pytest.raises(dbanon.PolicyError, match="row-level security"):
        dbanon.publish(table, settings=database.settings)


def test_a_connection_error_shows_no_password(server):
    parts = psycopg.conninfo.conninfo_to_dict(server.admin_dsn)
    dsn = psycopg.conninfo.make_conninfo(
        **{**parts, "user": "nobody_at_all", "password": "s3cret-w0rd", "dbname": "nowhere"}
    )
    with pytest.raises(dbanon.DatabaseError) as caught:
        dbanon.list_policies(settings=dbanon.Settings(dsn=dsn))
    assert "s3cret-w0rd" not in str(caught.value)
    assert "s3cret-w0rd" not in repr(dbanon.Settings(dsn=dsn))
