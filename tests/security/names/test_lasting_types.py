"""What a release shows is nobody's to change: no owner of a type, of a collation, or of a table."""

import psycopg
import pytest
from psycopg import sql
from selection import each_once
from tables import patients_policy

import dbanon
from dbanon.domain.policy import ColumnRule, Role
from dbanon.domain.table import TableName

TABLE = TableName("public", "people")
SHOWN = "SELECT odd::text, count(*) FROM anon.people GROUP BY 1 ORDER BY 1"
# Each owner's type, how a value of it is made of the number i, and what it is published as.
TYPES = {
    "an enum": ("mood", "('{high,low}'::text[])[1 + i % 2]::dealer.mood", "text"),
    "enums": ("mood[]", "ARRAY[('{high,low}'::text[])[1 + i % 2], NULL]::dealer.mood[]", "text[]"),
    "a domain over an enum": ("dull", "('{high,low}'::text[])[1 + i % 2]::dealer.dull", "text"),
    "a domain of texts": ("word", "'d ' || i % 2 || ' '", "character varying"),
    "a domain of numbers": ("size", "(i % 2)::dealer.size", "numeric"),
    "domains": ("size[]", "ARRAY[i % 2, 1.50]::dealer.size[]", "numeric[]"),
}


@pytest.fixture
def serve(database):
    """Publish a table with a column whose type belongs to another role; return that role."""

    def publish(column, value, *, role, kind="table"):
        dealer = database.role("dealer")
        database.execute(
            "CREATE SCHEMA dealer AUTHORIZATION CURRENT_USER; GRANT ALL ON SCHEMA dealer TO dealer"
        )
        database.connect_as(dealer).execute(
            "CREATE TYPE dealer.mood AS ENUM ('low', 'high');"
            "CREATE DOMAIN dealer.dull AS dealer.mood; CREATE DOMAIN dealer.size AS numeric(9, 2);"
            "CREATE DOMAIN dealer.word AS varchar(9);"
            """CREATE COLLATION dealer.plain (provider = libc, locale = 'C');"""
        )
        database.execute(
            f"CREATE TABLE public.people (id int PRIMARY KEY, age int, odd {column});"
            f"INSERT INTO public.people SELECT i, i % 20, {value} FROM generate_series(1, 100) AS i"
        )
        roles = {"id": Role.IDENTIFIER, "age": Role.QUASI, "odd": role}
        columns = tuple(ColumnRule(name, role) for name, role in roles.items())
        l = 2 if role is Role.SENSITIVE else None
        policy = patients_policy(TABLE, k=5, l=l)
        policy = type(policy)(table=TABLE, columns=columns, models=policy.models)
        dbanon.set_policy(TABLE, policy, settings=database.settings)
        release = dbanon.publish(TABLE, kind=kind, settings=database.settings)
        assert 100 == database.execute("SELECT count(*) FROM anon.people")[0][0]
        assert release.checks.results[0].achieved >= 5
        return database.connect_as(dealer)

    return publish


def type_shown(database):
    return database.execute(
        "SELECT format_type(atttypid, -1) FROM pg_attribute"
        " WHERE attrelid = 'anon.people'::regclass AND attname = 'odd'"
    )[0][0]


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("name", "role", "kind"),
    each_once(TYPES, [Role.SENSITIVE, Role.INSENSITIVE], ["table", "view"]),
)
def test_values_are_published_in_built_in_types(database, serve, name, role, kind):
    declared, value, shown = TYPES[name]
    serve(f"dealer.{declared}", value, role=role, kind=kind)
    assert shown == type_shown(database)
    source = SHOWN.replace("anon.", "public.")
    assert database.execute(source) == database.execute(SHOWN)
    assert dbanon.check("anon.people", settings=database.settings).passed
    levels = {found.level for found in dbanon.doctor(settings=database.settings)}
    assert "failure" not in levels


@pytest.mark.exhaustive
@pytest.mark.parametrize("role", [Role.SENSITIVE, Role.INSENSITIVE])
def test_who_owns_an_enum_cannot_change_a_released_value(database, serve, role):
    declared, value, _ = TYPES["an enum"]
    dealer = serve(f"dealer.{declared}", value, role=role)
    before = database.execute(SHOWN)
    dealer.execute("ALTER TYPE dealer.mood RENAME VALUE 'low' TO 'bankrupt'")
    assert [("high", 50), ("low", 50)] == before == database.execute(SHOWN)


@pytest.mark.exhaustive
def test_who_owns_a_domain_cannot_run_code_on_released_values(database, serve):
    dealer = serve("dealer.size", "(i % 2)::dealer.size", role=Role.SENSITIVE)
    database.execute("ALTER TABLE public.people ALTER odd TYPE numeric")
    dealer.execute(
        "CREATE TABLE dealer.seen (value numeric);"
        "CREATE FUNCTION dealer.look(value numeric) RETURNS boolean LANGUAGE sql AS"
        " 'INSERT INTO dealer.seen VALUES (value) RETURNING true';"
        "ALTER DOMAIN dealer.size ADD CHECK (dealer.look(VALUE))"
    )
    assert [] == dealer.execute("SELECT * FROM dealer.seen").fetchall()


@pytest.mark.parametrize(
    ("declared", "value", "dropped"),
    [
        ("dealer.mood", TYPES["an enum"][1], "TYPE dealer.mood"),
        ("dealer.size", TYPES["a domain of numbers"][1], "DOMAIN dealer.size"),
        ("text COLLATE dealer.plain", "'x' || i % 2", "COLLATION dealer.plain"),
        ("text[] COLLATE dealer.plain", "ARRAY['x' || i % 2]", "COLLATION dealer.plain"),
    ],
)
def test_who_drops_a_type_or_collation_drops_nothing_of_a_release(
    database, serve, declared, value, dropped
):
    dealer = serve(declared, value, role=Role.SENSITIVE)
    before = database.execute(SHOWN)
    dealer.execute(sql.SQL("DROP {} CASCADE").format(sql.SQL(dropped)))
    assert before == database.execute(SHOWN)
    with pytest.raises(psycopg.errors.UndefinedColumn):
        database.execute("SELECT odd FROM public.people")


def test_names_of_objects_are_published_as_they_were(database, serve):
    dealer = serve("regtype", "'dealer.size'::regtype", role=Role.INSENSITIVE)
    dealer.execute("ALTER DOMAIN dealer.size RENAME TO other")
    assert [("dealer.size", 100)] == database.execute(SHOWN)


def test_doctor_names_a_release_whose_type_has_an_owner(database, serve, monkeypatch):
    from dbanon.db.releases import publication

    monkeypatch.setattr(publication, "lasting_value", lambda _, value: value)
    declared, value, _ = TYPES["an enum"]
    serve(f"dealer.{declared}", value, role=Role.INSENSITIVE)
    found = [found.message for found in dbanon.doctor(settings=database.settings)]
    assert "the owner of the type of column odd can change what it shows, or drop it" in found
    monkeypatch.undo()
    dbanon.refresh(TABLE, settings=database.settings)
    assert "text" == type_shown(database)
    levels = {found.level for found in dbanon.doctor(settings=database.settings)}
    assert "failure" not in levels
