"""A table whose owner wants code to run as the role that publishes it."""

import psycopg
import pytest
from tables import rows_proved

import dbanon
from dbanon.db import catalog, identity
from dbanon.db.session import connect
from dbanon.domain.policy import K_ANONYMITY, ColumnRule, ModelSpec, Policy, Role
from dbanon.domain.table import TableName

TABLE = TableName("public", "people")
ROLES = {
    "id": Role.IDENTIFIER,
    "age": Role.QUASI,
    "disease": Role.SENSITIVE,
    "extra": Role.INSENSITIVE,
}
# The spy notes that somebody else than the attacker runs it; SELECT's functions may write, too.
SPY = """
CREATE SEQUENCE public.caught;
GRANT ALL ON SEQUENCE public.caught TO PUBLIC;
CREATE FUNCTION public.spy(anyelement) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF current_user <> 'owner_of_people' THEN PERFORM nextval('public.caught'); END IF;
    RETURN true;
END $$;
CREATE FUNCTION public.spy_zero(anyelement) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF current_user <> 'owner_of_people' THEN PERFORM nextval('public.caught'); END IF;
    RETURN 0;
END $$;
"""
PEOPLE = """
CREATE TABLE public.people (id int, age int, disease text, extra text) {};
INSERT INTO public.people SELECT i, i % 20, 'd' || i % 5, 'x' FROM generate_series(1, 100) AS i;
ALTER TABLE public.people ALTER id SET NOT NULL;
"""
KEY = "ALTER TABLE public.people ADD PRIMARY KEY (id);"

# What the owner does to the table, and what a hurried publisher does with it.
READ = "SELECT count(*) FROM public.people"
WRITE = "UPDATE public.people SET extra = 'published'"
COPY = "CREATE TABLE public.naive (LIKE public.people INCLUDING ALL); INSERT INTO public.naive"
HARMLESS = {
    "a trigger": (
        (
            "CREATE FUNCTION public.fired() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN PERFORM public.spy(1); RETURN NULL; END $$;"
            "CREATE TRIGGER t AFTER UPDATE ON public.people EXECUTE FUNCTION public.fired()"
        ),
        WRITE,
    ),
    "a rule": (
        "CREATE RULE r AS ON UPDATE TO public.people DO ALSO SELECT public.spy(1)",
        WRITE,
    ),
    "a default": (
        "ALTER TABLE public.people ALTER extra SET DEFAULT public.spy(1)::text",
        f"{COPY} (id, age, disease) SELECT id, age, disease FROM public.people",
    ),
    "a check": (
        "ALTER TABLE public.people ADD CHECK (public.spy(age))",
        f"{COPY} SELECT * FROM public.people",
    ),
    "a constant check": (
        "ALTER TABLE public.people ADD CHECK (public.spy(1))",
        f"SET constraint_exclusion = on; {READ} WHERE age > 1",
    ),
    "a stored column": (
        (
            "ALTER TABLE public.people DROP extra, ADD extra text GENERATED ALWAYS AS"
            " (public.spy(age)::text) STORED"
        ),
        f"{COPY} (id, age, disease) SELECT id, age, disease FROM public.people",
    ),
    "a domain": (
        (
            "CREATE DOMAIN public.word AS text CHECK (public.spy(VALUE));"
            "ALTER TABLE public.people ALTER extra TYPE public.word"
        ),
        "SELECT upper(extra)::public.word FROM public.people",
    ),
    "a cast": (
        (
            "CREATE TYPE public.mood AS ENUM ('x', 'y');"
            "CREATE FUNCTION public.of_mood(public.mood) RETURNS text LANGUAGE plpgsql AS"
            " $$ BEGIN PERFORM public.spy(1); RETURN 'x'; END $$;"
            "CREATE CAST (public.mood AS text) WITH FUNCTION public.of_mood(public.mood);"
            "ALTER TABLE public.people ALTER extra TYPE public.mood USING 'x'::public.mood"
        ),
        "SELECT extra::text FROM public.people",
    ),
}
REFUSED = {
    "an index on some rows": "CREATE INDEX ON public.people (age) WHERE public.spy(1)",
    "an index on an expression": "CREATE INDEX ON public.people ((age + public.spy_zero(1)))",
    "statistics": "CREATE STATISTICS public.s ON (age + public.spy_zero(1)), id FROM public.people",
    "an operator": (
        "CREATE FUNCTION public.beats(integer, text) RETURNS boolean LANGUAGE sql IMMUTABLE"
        " AS 'SELECT public.spy(1)';"
        "CREATE OPERATOR public.>> (LEFTARG = integer, RIGHTARG = text, FUNCTION = public.beats);"
        "CREATE INDEX ON public.people (age) WHERE 1 OPERATOR(public.>>) 'x'::text"
    ),
    "a row-level policy": (
        "ALTER TABLE public.people ENABLE ROW LEVEL SECURITY;"
        "CREATE POLICY p ON public.people USING (public.spy(age))"
    ),
}


@pytest.fixture
def owner(database):
    """The table's owner, an ordinary role that is nobody to the publishing one."""
    name = database.role("owner_of_people")
    database.execute(f"GRANT CREATE ON SCHEMA public TO {name}")
    connection = database.connect_as(name)
    connection.execute(SPY)
    yield connection
    database.execute("DROP TABLE IF EXISTS public.naive; DROP SCHEMA IF EXISTS anon CASCADE")
    connection.execute("DROP OWNED BY owner_of_people CASCADE")


def make(owner, database, kind=""):
    owner.execute(PEOPLE.format(kind) + KEY)
    owner.execute(f'GRANT ALL ON public.people TO "{database.server.owner}"')
    rules = tuple(ColumnRule(column, role) for column, role in ROLES.items())
    policy = Policy(TABLE, rules, (ModelSpec(K_ANONYMITY, {"k": 5}),), "mondrian")
    dbanon.set_policy(TABLE, policy, settings=database.settings)


def caught(owner):
    """Return whether the spy ran as somebody else since the last time."""
    (found,) = owner.execute("SELECT is_called FROM public.caught").fetchone()
    owner.execute("SELECT setval('public.caught', 1, false)")
    return found


def everything_that_reads(database):
    settings = database.settings
    yield lambda: dbanon.inspect(TABLE, settings=settings)
    yield lambda: dbanon.suggest_policy(TABLE, settings=settings)
    yield lambda: dbanon.derive_taxonomy(
        "values", "disease", table=TABLE, kind="flat", settings=settings
    )
    yield lambda: dbanon.plan(TABLE, settings=settings)
    yield lambda: dbanon.publish(TABLE, settings=settings)


@pytest.mark.parametrize("trap", HARMLESS)
def test_what_is_published_runs_nothing_of_its_owner(owner, database, trap):
    set_up, naive = HARMLESS[trap]
    make(owner, database)
    owner.execute(set_up)
    database.execute(naive)
    assert caught(owner)
    dbanon.inspect(TABLE, settings=database.settings)
    dbanon.publish(TABLE, settings=database.settings)
    assert database.execute("SELECT count(*) FROM anon.people") == [(100,)]
    assert not caught(owner)


@pytest.mark.parametrize("trap", REFUSED)
def test_a_table_that_cannot_be_read_without_running_others_code_is_not_read(owner, database, trap):
    if trap == "statistics" and database.server.version < 14:
        pytest.skip("needs PostgreSQL 14")
    make(owner, database)
    owner.execute(REFUSED[trap])
    database.execute(READ)
    assert caught(owner)
    for read in everything_that_reads(database):
        with pytest.raises(dbanon.NotPermitted, match=r"public\.\w+ of owner_of_people"):
            read()
    assert not caught(owner)


# What calls the spy, and is no part of the table that is read.
BESIDE = """
CREATE TABLE public.beside (id int, age int, disease text);
CREATE INDEX ON public.beside (age) WHERE public.spy(1);
CREATE POLICY p ON public.beside USING (public.spy(age));
CREATE TABLE public.under () INHERITS (public.beside);
CREATE INDEX ON public.under (age) WHERE public.spy(1);
CREATE DOMAIN public.said AS text CHECK (public.spy(VALUE));
CREATE VIEW public.watched AS SELECT * FROM public.people WHERE public.spy(age);
"""


def test_what_calls_others_code_beside_the_table_is_no_matter(owner, database):
    make(owner, database)
    owner.execute(BESIDE)
    if database.server.version >= 14:
        owner.execute(REFUSED["statistics"].replace("people", "beside"))
    with connect(database.settings) as session, session.transaction(keep=False):
        assert [] == found_in(session, "people")
        for name in ("beside", "under", "watched"):
            assert found_in(session, name) != [], name


def found_in(session, name):
    return identity.foreign_code(session, catalog.describe(session, TableName("public", name)))


# The function that a view calls, by schema and name, with whose rights it runs, whose it is, and
# whether it is what tells a snapshot that a release is too old.
SEEN = [
    ("dbanon_data", "seen_7", "SECURITY DEFINER", "owner_of_people", True),
    ("public", "seen_7", "SECURITY DEFINER", "owner_of_people", False),
    ("dbanon_data", "seen_7_too", "SECURITY DEFINER", "owner_of_people", False),
    ("dbanon_data", "seen_7", "SECURITY INVOKER", "owner_of_people", False),
    ("dbanon_data", "seen_7", "SECURITY DEFINER", "another_owner", False),
]


@pytest.mark.usefixtures("owner")
@pytest.mark.parametrize("case", SEEN, ids=lambda case: " ".join(case[:4]))
def test_only_what_tells_who_sees_a_release_may_be_another_s(database, case):
    schema, name, rights, whose, is_ours = case
    database.role("another_owner")
    admin = database.admin()
    admin.execute(
        f"CREATE FUNCTION {schema}.{name}() RETURNS boolean LANGUAGE plpgsql {rights}"
        " AS 'BEGIN RETURN true; END';"
        f"ALTER FUNCTION {schema}.{name}() OWNER TO {whose};"
        "CREATE TABLE dbanon_data.release_7 (age int);"
        "ALTER TABLE dbanon_data.release_7 OWNER TO owner_of_people;"
        "CREATE VIEW public.shown AS SELECT age FROM dbanon_data.release_7"
        f" WHERE {schema}.{name}();"
        "ALTER VIEW public.shown OWNER TO owner_of_people"
    )
    with connect(database.settings) as session, session.transaction(keep=False):
        found = found_in(session, "shown")
    expected = [] if is_ours else [(TableName(schema, name), whose)]
    assert expected == found
    admin.execute("DROP OWNED BY another_owner CASCADE")


def test_a_partition_s_index_is_looked_at_too(owner, database):
    make(
        owner,
        database,
        "PARTITION BY RANGE (id); CREATE TABLE public.part PARTITION OF public.people DEFAULT",
    )
    owner.execute("CREATE INDEX ON public.part (age) WHERE public.spy(1)")
    database.execute(READ)
    assert caught(owner)
    with pytest.raises(dbanon.NotPermitted, match=r"public\.spy"):
        dbanon.publish(TABLE, settings=database.settings)
    assert not caught(owner)


def test_a_function_of_the_publisher_s_own_is_no_stranger(owner, database):
    make(owner, database)
    database.execute(
        "CREATE FUNCTION public.twice(integer) RETURNS integer LANGUAGE sql IMMUTABLE"
        " AS 'SELECT 2 * $1'; GRANT EXECUTE ON FUNCTION public.twice TO PUBLIC"
    )
    owner.execute("CREATE INDEX ON public.people ((age + public.twice(1)))")
    assert rows_proved(dbanon.publish(TABLE, settings=database.settings)) == 100
    database.execute("DROP FUNCTION public.twice CASCADE")


# What is made, how one would look at it, its name as that of a table, and why that is refused.
NO_TABLES = {
    "a view": (
        "VIEW public.seen AS SELECT *, public.spy(id) FROM public.people",
        "TABLE public.seen",
        "public.seen",
        "may run code of others",
    ),
    "a function": (
        (
            "FUNCTION public.seen() RETURNS SETOF public.people LANGUAGE sql AS"
            " 'SELECT p.* FROM public.people AS p WHERE public.spy(p.id)'"
        ),
        "SELECT * FROM public.seen()",
        'public."seen()"',
        "there is no table",
    ),
}


@pytest.mark.parametrize("case", NO_TABLES)
def test_a_view_or_function_as_source_runs_nothing(owner, database, case):
    source, naive, name, reason = NO_TABLES[case]
    make(owner, database)
    owner.execute(f"CREATE {source}; GRANT ALL ON ALL TABLES IN SCHEMA public TO PUBLIC")
    database.execute(naive)
    assert caught(owner)
    for action in (dbanon.inspect, dbanon.suggest_policy, dbanon.plan, dbanon.publish):
        with pytest.raises(dbanon.DbanonError, match=reason):
            action(name, settings=database.settings)
    assert not caught(owner)


def test_an_index_made_after_the_publication_is_told_by_doctor(owner, database):
    make(owner, database)
    dbanon.publish(TABLE, settings=database.settings)
    owner.execute(REFUSED["an index on some rows"])
    found = [f.message for f in dbanon.doctor(settings=database.settings) if f.exit_code]
    assert found == ["reading public.people may run public.spy of owner_of_people"]
    with pytest.raises(dbanon.NotPermitted):
        dbanon.refresh(TABLE, settings=database.settings)
    assert not caught(owner)


def test_a_virtual_column_can_call_nobody_s_function(owner, database):
    make(owner, database)
    with pytest.raises((psycopg.errors.FeatureNotSupported, psycopg.errors.SyntaxError)):
        owner.execute(
            "ALTER TABLE public.people ADD o boolean GENERATED ALWAYS AS (public.spy(age)) VIRTUAL"
        )
