"""Attacks that once succeeded, or nearly did: on the rows, on the publisher, on the program."""

import logging
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from live import wait_for_lock
from psycopg import sql
from selection import each_once, exhaustive_after
from servers import Database
from tables import make_patients, patients_policy, rows_proved

import dbanon
from dbanon.cli import main
from dbanon.domain.policy import K_ANONYMITY, L_DIVERSITY, ColumnRule, ModelSpec, Policy, Role
from dbanon.domain.table import TableName

TABLE = TableName("public", "people")
ROLES = {
    "identifier": Role.IDENTIFIER,
    "quasi": Role.QUASI,
    "sensitive": Role.SENSITIVE,
    "insensitive": Role.INSENSITIVE,
}


def policy_of(k=5, l=2, subject=None, **columns):
    """Return a policy of ``people``: column=role, or column=(role, further fields of the rule)."""
    pairs = {c: rule if isinstance(rule, tuple) else (rule, {}) for c, rule in columns.items()}
    rules = tuple(ColumnRule(c, ROLES[role], **more) for c, (role, more) in pairs.items())
    models = [ModelSpec(K_ANONYMITY, {"k": k})] + ([ModelSpec(L_DIVERSITY, {"l": l})] if l else [])
    return Policy(TABLE, rules, tuple(models), "mondrian", subject=subject)


def publish(database, policy=None, **options):
    if policy is not None:
        dbanon.set_policy(TABLE, policy, settings=database.settings)
    return dbanon.publish(TABLE, settings=database.settings, **options)


def make(database, declared, value, *, key="i", key_type="int"):
    """Create ``people``, 100 of them; key and value are SQL over their number i."""
    statement = (
        "CREATE TABLE public.people (id {} PRIMARY KEY, age int, odd {}, disease text);"
        "INSERT INTO public.people"
        " SELECT {}, i % 20, {}, 'd' || i % 7 FROM generate_series(1, 100) AS i"
    )
    words = (sql.SQL(word) for word in (key_type, declared, key, value))
    database.execute(sql.SQL(statement).format(*words))


PEOPLE = {"id": "identifier", "age": "quasi", "odd": "quasi", "disease": "sensitive"}


# What a type may run.


@pytest.fixture
def attacker(database):
    """A role that owns types, casts and functions, and writes down who runs them."""
    name = database.role("attacker_of_types")
    database.execute(f"GRANT CREATE ON SCHEMA public TO {name}")
    connection = database.connect_as(name)
    connection.execute(
        "CREATE SEQUENCE public.runs;"
        "GRANT ALL ON SEQUENCE public.runs TO PUBLIC;"
        "CREATE FUNCTION public.run_as() RETURNS boolean LANGUAGE sql"
        "  AS $$ SELECT current_user = 'attacker_of_types' OR nextval('public.runs') > 0 $$;"
        "CREATE TYPE public.mood AS ENUM ('a', 'b', 'c');"
        "CREATE FUNCTION public.of_mood(public.mood) RETURNS text LANGUAGE plpgsql"
        "  AS $$ BEGIN PERFORM public.run_as(); RETURN 'x'; END $$;"
        "CREATE CAST (public.mood AS text) WITH FUNCTION public.of_mood(public.mood);"
        "CREATE DOMAIN public.number AS int CHECK (public.run_as());"
        "CREATE TYPE public.span AS RANGE (SUBTYPE = int4);"
    )
    yield connection
    database.execute("DROP TABLE IF EXISTS dbanon_data.release_1, public.people CASCADE")
    connection.execute("DROP OWNED BY attacker_of_types CASCADE")


def runs(attacker):
    return attacker.execute("SELECT is_called FROM public.runs").fetchone()[0]


@pytest.mark.parametrize(
    ("role", "kind"),
    each_once(["quasi", "sensitive", "insensitive"], ["table", "view"]),
)
def test_a_cast_of_the_source_s_type_is_not_run(database, attacker, role, kind):
    make(database, "public.mood", "(ARRAY['a', 'b', 'c'])[1 + i % 3]::public.mood")
    release = publish(database, policy_of(**PEOPLE | {"odd": role}), kind=kind)
    assert rows_proved(release) == 100
    dbanon.inspect(TABLE, settings=database.settings)
    taxonomy = dbanon.derive_taxonomy(
        "moods", "odd", table=TABLE, kind="flat", settings=database.settings
    )
    assert ("a", "b", "c") == taxonomy.leaf_labels
    assert not runs(attacker)


@pytest.mark.parametrize("kind", ["table", "view"])
def test_a_constraint_of_the_key_s_domain_is_not_run(database, attacker, kind):
    make(database, "text", "'x'", key_type="int")
    attacker.execute("GRANT USAGE ON TYPE public.number TO PUBLIC")
    database.execute("ALTER TABLE public.people ALTER id TYPE public.number")
    attacker.execute("SELECT setval('public.runs', 1, false)")
    assert rows_proved(publish(database, policy_of(**PEOPLE), kind=kind)) == 100
    assert not runs(attacker)
    assert database.execute("SELECT count(*) FROM anon.people") == [(100,)]


def test_a_range_type_of_the_user_s_is_refused(database, attacker):
    make(database, "public.span", "public.span(i, i + 1)")
    with pytest.raises(dbanon.PolicyError, match="odd"):
        publish(database, policy_of(**PEOPLE | {"odd": "insensitive"}))


KEYS = [
    ("public.size", "'s' || i"),
    ("public.short", "'s' || i"),
    ("public.word", "('s' || i)::public.size"),
    ("public.few", "ARRAY[i, i]"),
    ("char(6)", "'s' || i"),
    ("bit(12)", "i::bit(12)"),
    ("bytea", "int4send(i)"),
    ("numeric", "i / 7.0"),
    ("float8", "i / 7.0"),
    ("timestamptz(3)", "to_timestamp(i / 7.0)"),
    ("interval", "i * interval '1 day 1 second'"),
    ("int4range", "int4range(i, i + 1)"),
    ("inet", "'10.0.0.0'::inet + i"),
    ('text COLLATE "C"', "chr(34) || chr(92) || chr(10) || i || ',é'"),
]


@pytest.mark.parametrize(
    ("key_type", "key", "kind"),
    [
        *((*key, "view") for key in KEYS),
        *exhaustive_after(1, [(*key, "table") for key in KEYS]),
    ],
)
def test_a_key_of_any_type_finds_its_rows_again(database, key_type, key, kind):
    database.execute(
        "DO $$ BEGIN EXECUTE 'CREATE TYPE public.size AS ENUM (' || "
        "(SELECT string_agg(quote_literal('s' || i), ',') FROM generate_series(1, 100) i) || ')';"
        "END $$;"
        "CREATE DOMAIN public.short AS varchar(9) CHECK (VALUE <> '');"
        "CREATE DOMAIN public.word AS public.size CHECK (VALUE IS NOT NULL);"
        "CREATE DOMAIN public.few AS int[] CHECK (cardinality(VALUE) = 2)"
    )
    cast = f"({key})" if "COLLATE" in key_type else f"({key})::{key_type}"
    make(database, "text", "'x' || i % 3", key=cast, key_type=key_type)
    assert rows_proved(publish(database, policy_of(**PEOPLE), kind=kind)) == 100
    assert database.execute("SELECT count(*) FROM anon.people") == [(100,)]
    if kind == "view":
        database.execute("DELETE FROM public.people WHERE age < 19")
        assert database.execute("SELECT count(*) FROM anon.people") in ([(0,)], [(5,)])


# What a reader sees.
def test_the_whole_key_is_never_published_as_it_is(database):
    make(database, "text", "'x'")
    with pytest.raises(dbanon.PolicyError, match="its key would be published"):
        publish(database, policy_of(**PEOPLE | {"id": "insensitive"}))


def test_columns_that_a_key_only_includes_are_no_key(database):
    make(database, "text", "CASE WHEN i % 2 = 0 THEN 'x' END")
    database.execute(
        "ALTER TABLE public.people DROP CONSTRAINT people_pkey;"
        "ALTER TABLE public.people ADD PRIMARY KEY (id) INCLUDE (disease, age)"
    )
    assert rows_proved(publish(database, policy_of(**PEOPLE | {"odd": "insensitive"}))) == 100


@pytest.mark.parametrize(
    ("declared", "value"),
    [
        ("int8", "CASE WHEN i % 2 = 0 THEN 9223372036854775000 ELSE -9223372036854775000 END"),
        ("float8", "CASE WHEN i % 2 = 0 THEN 1.7e308 ELSE 1.6e308 END"),
        ("float8", "CASE WHEN i % 2 = 0 THEN 1.7e308 ELSE -1.6e308 END"),
    ],
)
def test_a_mean_lies_between_the_extremes(database, declared, value):
    make(database, declared, value)
    rule = ("quasi", {"recoding": "mean", "weight": 1e-9})
    publish(database, policy_of(k=20, **PEOPLE | {"odd": rule}))
    found = database.execute(
        "SELECT bool_and(v.odd BETWEEN (SELECT min(odd) FROM public.people)::numeric"
        "                          AND (SELECT max(odd) FROM public.people)::numeric)"
        "  FROM anon.people AS v"
    )
    assert found == [(True,)]


@pytest.mark.parametrize("digits", [16, 400, 2**40])
def test_a_mean_of_more_digits_than_a_number_has_is_refused(database, tmp_path, digits):
    make(database, "float8", "i / 7.0")
    file = tmp_path / "people.toml"
    file.write_text(
        'table = "public.people"\n[columns]\nid.role = "identifier"\nage.role = "quasi"\n'
        f'disease.role = "sensitive"\n'
        f'odd = {{role = "quasi", recoding = "mean", digits = {digits}}}'
    )
    with pytest.raises(dbanon.PolicyError, match="digits"):
        dbanon.set_policy(TABLE, file, settings=database.settings)


@pytest.mark.parametrize(
    ("declared", "value", "snap"),
    [
        ("date", "date '0001-01-03' + i % 3", 100.0),
        ("date", "date '2020-01-01' + i % 3", 1e12),
        ("timestamp", "timestamp '2020-01-01' + i * interval '1 day'", 1e15),
    ],
)
def test_bounds_that_no_range_can_hold_are_refused_by_column(database, declared, value, snap):
    make(database, declared, value)
    with pytest.raises(dbanon.PolicyError, match="odd"):
        publish(database, policy_of(**PEOPLE | {"odd": ("quasi", {"snap": snap})}))


@pytest.mark.parametrize(
    ("declared", "value", "rule"),
    [
        ("int", "2147483647 - i % 3", {}),
        ("int", "2147483600 - i % 3", {"snap": 1000.0}),
        ("int8", "9223372036854775807 - i % 3", {}),
        ("int", "2147483600 - i % 3", {"bands": 1000}),
        ("int8", "9223372036854775800 - i % 3", {"bands": 1000}),
    ],
)
def test_ranges_that_the_type_cannot_end_are_open_above(database, declared, value, rule):
    make(database, declared, value)
    release = publish(database, policy_of(**PEOPLE | {"odd": ("quasi", rule)}))
    assert 100 == rows_proved(release)
    shown = "SELECT count(*) FROM public.people AS s WHERE EXISTS (SELECT FROM anon.people AS a"
    assert [(100,)] == database.execute(f"{shown} WHERE a.odd @> s.odd)")
    assert [(True,)] == database.execute("SELECT bool_or(upper_inf(odd)) FROM anon.people")


# The encoding of texts.
def test_the_role_s_client_encoding_changes_no_text(database):
    # Read as latin1, these are the utf-8 bytes of other texts.
    make(database, "text", "'Ã¼' || i % 2", key="'Ã¼' || i", key_type="text")
    owner = sql.Identifier(database.server.owner)
    database.execute(sql.SQL("ALTER ROLE {} SET client_encoding = latin1").format(owner))
    try:
        release = publish(database, policy_of(**PEOPLE | {"odd": ("quasi", {"recoding": "set"})}))
    finally:
        database.execute(sql.SQL("ALTER ROLE {} RESET client_encoding").format(owner))
    assert rows_proved(release) == 100
    found = database.execute("SELECT DISTINCT unnest(odd) FROM anon.people ORDER BY 1")
    assert found == [("Ã¼0",), ("Ã¼1",)]


@pytest.fixture
def encoded(server, request):
    """A database of another encoding."""
    from dbanon.actions.init import init

    name = f"encoded_{request.param.lower()}"
    words = (sql.Identifier(name), sql.Literal(request.param), sql.Identifier(server.owner))
    create = "CREATE DATABASE {} TEMPLATE template0 ENCODING {} LOCALE 'C' OWNER {}"
    server.run(sql.SQL(create).format(*words))
    database = Database(server, name)
    try:
        init(database.settings)
        yield database
    finally:
        database.close()
        server.run(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.mark.exhaustive
@pytest.mark.parametrize("encoded", ["LATIN1"], indirect=True)
def test_a_database_of_another_encoding_is_published(encoded):
    make(encoded, "text", "chr(252) || i % 2", key="chr(252) || i", key_type="text")
    assert rows_proved(publish(encoded, policy_of(**PEOPLE))) == 100


@pytest.mark.parametrize("encoded", ["SQL_ASCII"], indirect=True)
def test_text_of_no_known_encoding_is_refused(encoded):
    make(encoded, "text", "convert_from('\\xfc', 'SQL_ASCII') || i % 2")
    with pytest.raises(dbanon.DatabaseError, match="UTF-8"):
        publish(encoded, policy_of(**PEOPLE))


# Names that are not what they seem.


@pytest.mark.parametrize("schema", ["dbanon", "dbanon_data"])
def test_nothing_is_published_among_what_is_private(database, schema):
    make(database, "text", "'x'")
    with pytest.raises(dbanon.ConfigError, match=schema):
        publish(database, policy_of(**PEOPLE), schema=schema)


@pytest.mark.parametrize("name", ["x" * 64, "ü" * 32, "a\0b", "a\udc80b"])
def test_a_name_that_postgresql_would_change_is_refused(database, name):
    make(database, "text", "'x'")
    for option in ("name", "schema"):
        with pytest.raises(dbanon.ConfigError, match="not a name"):
            publish(database, policy_of(**PEOPLE), **{option: name})


@pytest.mark.parametrize("words", [["inspect", "a\udc80"], ["taxonomy", "import", "\udcff", "x"]])
def test_arguments_that_are_no_text_are_told_so(monkeypatch, capsys, words):
    monkeypatch.setattr("sys.argv", ["dbanon", *words])
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 2
    assert "unforeseen" not in capsys.readouterr().err


def test_a_field_of_a_megabyte_in_a_taxonomy_file_is_read_or_refused(database, tmp_path):
    file = tmp_path / "long.csv"
    file.write_text("l" * 2_000_000 + ";*\n")
    with pytest.raises(dbanon.TaxonomyError):
        dbanon.import_taxonomy("long", file, settings=database.settings)


# Secrets and noise.


@pytest.mark.parametrize(
    "dsn",
    [
        "host=localhost password=my s3cret dbname=x",
        "postgresql://u:p@s3cret@localhost/db",
        "postgresql://u:%s3cret@localhost/db",
        "postgresql://u:pa/s3cret@localhost/db",
        "postgresql://u:s3cret/pa@localhost/db",
    ],
)
def test_a_dsn_that_is_misread_shows_no_part_of_its_password(dsn):
    with pytest.raises(dbanon.DbanonError) as caught:
        dbanon.list_policies(settings=dbanon.Settings(dsn=dsn))
    assert "s3cret" not in str(caught.value)


def test_a_lost_connection_is_one_error_and_no_traceback(database, caplog):
    from dbanon.db.session import connect

    def lose():
        with connect(database.settings) as session:
            pid = session.pg.info.backend_pid
            database.admin().execute("SELECT pg_terminate_backend(%s)", (pid,))
            session.pg.execute("SELECT 1")

    with caplog.at_level(logging.ERROR), pytest.raises(dbanon.DatabaseError):
        lose()
    assert [] == caplog.records


# Live views.


def hierarchy(database, statement):
    """Publish a live view of ``patients`` after the statement that puts it below a parent."""
    table = make_patients(database)
    dbanon.set_policy(table, patients_policy(table), settings=database.settings)
    database.execute(
        "CREATE TABLE public.heir (LIKE public.patients);"
        "CREATE TABLE public.parted (LIKE public.patients) PARTITION BY RANGE (id)"
    )
    if statement:
        database.execute(statement)
    return dbanon.publish(table, kind="view", settings=database.settings)


ADOPTIONS = [
    "ALTER TABLE public.patients INHERIT public.heir",
    "ALTER TABLE public.parted ATTACH PARTITION public.patients FOR VALUES FROM (0) TO (1000)",
]


@pytest.mark.parametrize("adopt", ADOPTIONS)
def test_a_child_is_no_source_of_a_live_view(database, adopt):
    with pytest.raises(dbanon.ConfigError, match="parent"):
        hierarchy(database, adopt)


@pytest.mark.exhaustive
@pytest.mark.parametrize("adopt", ADOPTIONS)
def test_the_source_of_a_live_view_cannot_be_given_a_parent(database, adopt):
    hierarchy(database, None)
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="dbanon_guard_1_fence"):
        database.execute(adopt)
    findings = dbanon.doctor(settings=database.settings)
    assert not [finding for finding in findings if finding.exit_code]


def test_rows_of_a_later_child_are_not_shown(database):
    hierarchy(database, None)
    database.execute(
        "CREATE TABLE public.child () INHERITS (public.patients);"
        "INSERT INTO public.child SELECT * FROM public.patients"
    )
    assert database.execute("SELECT count(*) FROM anon.patients") == [(200,)]
    database.execute("DELETE FROM ONLY public.patients WHERE id % 10 > 0")
    found = database.execute(
        "SELECT min(n) FROM (SELECT count(*) AS n FROM anon.patients"
        " GROUP BY age, sex, born, weight) AS c"
    )
    assert found[0][0] is None or found[0][0] >= 5


@pytest.mark.exhaustive
def test_doctor_tells_the_guards_of_one_release_from_those_of_another(database):
    table = make_patients(database)
    dbanon.set_policy(table, patients_policy(table), settings=database.settings)
    options = {"kind": "view", "settings": database.settings}
    dbanon.publish(table, **options)
    database.execute("SELECT setval(pg_get_serial_sequence('dbanon.release', 'release_id'), 10)")
    dbanon.publish(table, name="other", **options)

    def failing():
        findings = dbanon.doctor(settings=database.settings)
        return {finding.subject for finding in findings if finding.exit_code}

    assert set() == failing()
    for event in ("delete", "update", "truncate", "fence"):
        database.execute(f"DROP TRIGGER dbanon_guard_1_{event} ON public.patients")
    assert {"anon.patients"} == failing()


@pytest.mark.exhaustive
def test_a_guard_cannot_be_set_on_another_table(database):
    table = make_patients(database)
    dbanon.set_policy(table, patients_policy(table), settings=database.settings)
    dbanon.publish(table, kind="view", settings=database.settings)
    found = database.execute(
        "SELECT proname FROM pg_proc WHERE pronamespace = 'dbanon_data'::regnamespace"
        " AND has_function_privilege('public', oid, 'EXECUTE')"
    )
    assert found == [("seen_1",)]  # which every reader calls, and which is no trigger function


# Time.
@pytest.mark.parametrize("kind", ["table", "view"])
def test_columns_that_change_their_names_meanwhile_are_not_mistaken(database, kind):
    make(database, "text", "'secret ' || i")
    policy = policy_of(**PEOPLE | {"odd": "identifier"})
    dbanon.set_policy(TABLE, policy, settings=database.settings)
    other = database.connect(autocommit=False)
    other.execute(
        "ALTER TABLE public.people RENAME disease TO old;"
        "ALTER TABLE public.people RENAME odd TO disease;"
        "ALTER TABLE public.people RENAME age TO odd"
    )
    with ThreadPoolExecutor() as pool:
        published = pool.submit(publish, database, kind=kind)
        wait_for_lock(database)
        other.commit()
        with pytest.raises(dbanon.PolicyError, match="age"):
            published.result()
    assert database.execute("SELECT to_regclass('anon.people')") == [(None,)]
