"""A live view must hold at every moment, between two rows of one statement, too."""

import pytest
from moles import MOLE, TABLE, K, add_mole, assert_refused, make_people
from servers import Database

import dbanon

DELETE = "DELETE FROM public.people RETURNING mole.look()"
LEAVE = "DELETE FROM public.people WHERE id % 2 = 0"
RENUMBER = "UPDATE public.people SET id = id + 1000 WHERE id % 2 = 0"


def trap_on(table: str, when: str) -> str:
    """Compose a trigger by which the mole looks at the release before or after each row."""
    return f"CREATE TRIGGER zzz {when} DELETE ON {table} FOR EACH ROW EXECUTE FUNCTION mole.fired()"


OWN_KEY = (
    "CREATE TABLE mole.ids (id int REFERENCES public.people ON DELETE CASCADE);"
    f"INSERT INTO mole.ids SELECT generate_series(1, 40); {trap_on('mole.ids', 'BEFORE')}"
)

# What the mole was given, which trap it set with that, what it then runs itself, or waits for the
# publisher to run, and what is said of it.
WRITES = {
    "a right to delete": (
        "GRANT DELETE ON public.people TO mole",
        "",
        DELETE,
        "mole can write public.people, and look at the live view between two rows",
    ),
    "a right to update one column": (
        "GRANT UPDATE (id) ON public.people TO mole",
        "",
        "UPDATE public.people SET id = nextval('mole.number') RETURNING mole.look()",
        "mole can write public.people, and look at the live view between two rows",
    ),
    "a right to write through a view": (
        "GRANT DELETE ON public.editable TO mole",
        "",
        "DELETE FROM public.editable RETURNING mole.look()",
        "mole can write public.editable, and look at the live view between two rows",
    ),
    "a right as a member": (
        "GRANT mole_writer TO mole; GRANT DELETE ON public.people TO mole_writer",
        "",
        DELETE,
        "and look at the live view between two rows of a statement as mole_writer",
    ),
    "a table that the source depends on": (
        "GRANT DELETE, TRIGGER ON public.practices TO mole",
        trap_on("public.practices", "AFTER"),
        "DELETE FROM public.practices",
        "mole can write public.practices, and look at the live view between two rows",
    ),
}
WAITS = {
    "a trigger on the source": (
        "GRANT TRIGGER ON public.people TO mole",
        trap_on("public.people", "BEFORE"),
        LEAVE,
        "mole can put a trigger on public.people, which sees the rows that others write",
    ),
    "a trigger on what the source depends on": (
        "GRANT TRIGGER ON public.practices TO mole",
        trap_on("public.practices", "AFTER"),
        "DELETE FROM public.practices WHERE id % 2 = 0",
        "mole can put a trigger on public.practices, and look at the live view from it",
    ),
    "a trigger on what depends on the source": (
        "GRANT TRIGGER ON public.visits TO mole",
        trap_on("public.visits", "BEFORE"),
        LEAVE,
        "mole can put a trigger on public.visits, and look at the live view from it",
    ),
    "a foreign key to the source": (
        "GRANT REFERENCES (id) ON public.people TO mole",
        OWN_KEY,
        LEAVE,
        "mole can point a foreign key at public.people, and try out values of its keys",
    ),
    "a foreign key of the mole's, whose right was taken": (
        "GRANT REFERENCES (id) ON public.people TO mole",
        OWN_KEY,
        f"REVOKE ALL ON public.people FROM mole; {LEAVE}",
        "mole can put a trigger on mole.ids, and look at the live view from it",
    ),
}
# What the publisher, or whoever owned the source before, let in: (statement, what is run then).
CODE = {
    "a trigger": (
        trap_on("public.people", "BEFORE"),
        LEAVE,
    ),
    "a trigger of another table": (
        trap_on("public.visits", "BEFORE"),
        LEAVE,
    ),
    "the condition of a trigger": (
        (
            "CREATE FUNCTION public.nothing() RETURNS trigger LANGUAGE plpgsql"
            " AS 'BEGIN RETURN OLD; END';"
            "CREATE TRIGGER t BEFORE DELETE ON public.people FOR EACH ROW WHEN (mole.look())"
            " EXECUTE FUNCTION public.nothing()"
        ),
        LEAVE,
    ),
    "a check": ("ALTER TABLE public.people ADD CHECK (mole.look())", RENUMBER),
    "a rule": (
        (
            "CREATE RULE r AS ON UPDATE TO public.people"
            " DO INSTEAD DELETE FROM public.people WHERE id = OLD.id AND mole.look()"
        ),
        RENUMBER,
    ),
    "a domain": (
        (
            "CREATE DOMAIN public.number AS int;"
            "ALTER TABLE public.people ADD note public.number;"
            "ALTER DOMAIN public.number ADD CHECK (mole.look()) NOT VALID"
        ),
        "UPDATE public.people SET id = id + 1000, note = id WHERE id % 2 = 0",
    ),
}


@pytest.fixture(scope="module")
def original(server, template):
    """A database with people who are published live."""
    with server.database(template) as database:
        make_people(database)
        database.close()
        yield database


@pytest.fixture
def live(server, original):
    """A copy of it, with a mole among the readers."""
    with server.database(original.name) as database:
        add_mole(database)
        yield database


def smallest_class(database: Database, *, role: str, run: str) -> int:
    """Return the size of the smallest class that the mole saw while the role ran a statement."""
    connection = database.connect_as(role, autocommit=False)
    connection.execute(run)
    if role == "mole":
        seen = connection.execute("SELECT min(class) FROM mole.seen").fetchone()
        connection.rollback()
        return seen[0]
    connection.commit()
    return database.connect_as("mole").execute("SELECT min(class) FROM mole.seen").fetchone()[0]


@pytest.mark.parametrize("case", WRITES)
def test_who_writes_the_source_does_not_read_its_live_view(live, case):
    given, trap, run, told = WRITES[case]
    live.admin().execute(given)
    live.connect_as("mole").execute(trap)
    assert smallest_class(live, role="mole", run=run) < K
    assert_refused(live, told)


@pytest.mark.pg(">= 14")
def test_who_writes_all_data_does_not_read_a_live_view(live):
    live.admin().execute("GRANT pg_write_all_data TO mole")
    assert smallest_class(live, role="mole", run=DELETE) < K
    assert_refused(live, "as pg_write_all_data")


@pytest.mark.parametrize("case", WAITS)
def test_who_stands_where_the_source_is_written_does_not_read_its_live_view(live, case):
    given, trap, run, told = WAITS[case]
    live.admin().execute(given)
    live.connect_as("mole").execute(trap)
    assert smallest_class(live, role=live.server.owner, run=run) < K
    assert_refused(live, told)


@pytest.mark.parametrize("case", CODE)
def test_code_of_a_reader_does_not_run_where_the_source_is_written(live, case):
    let_in, run = CODE[case]
    live.execute(let_in)
    assert smallest_class(live, role=live.server.owner, run=run) < K
    assert_refused(live, "mole owns the function mole.")


def test_a_type_of_a_reader_is_not_in_the_source(live):
    live.connect_as("mole").execute(
        "CREATE TYPE mole.mood AS ENUM ('good');"
        "CREATE FUNCTION mole.of_text(text) RETURNS mole.mood LANGUAGE plpgsql"
        " AS $$ BEGIN PERFORM mole.look(); RETURN enum_first(NULL::mole.mood); END $$;"
        "CREATE CAST (text AS mole.mood) WITH FUNCTION mole.of_text AS ASSIGNMENT"
    )
    live.execute("ALTER TABLE public.people ADD mood mole.mood")
    run = "UPDATE public.people SET id = id + 1000, mood = disease WHERE id % 2 = 0"
    assert smallest_class(live, role=live.server.owner, run=run) < K
    assert_refused(live, "mole owns the type mole.mood, whose functions run when others")


def test_who_reads_a_live_view_as_everybody_does_not_write_its_source(live):
    live.execute("REVOKE ALL ON anon.people FROM mole; GRANT SELECT ON anon.people TO PUBLIC")
    live.execute("GRANT DELETE ON public.people TO mole")
    assert smallest_class(live, role="mole", run=DELETE) < K
    assert_refused(live, "mole can write public.people", grantee="public")


def test_who_reads_a_view_of_a_live_view_does_not_write_its_source(live):
    live.execute(
        "REVOKE ALL ON anon.people FROM mole;"
        "CREATE VIEW public.derived AS SELECT age FROM anon.people;"
        "GRANT SELECT ON public.derived TO mole; GRANT DELETE ON public.people TO mole"
    )
    spy = MOLE[MOLE.index("CREATE FUNCTION") :].replace("CREATE", "CREATE OR REPLACE")
    live.connect_as("mole").execute(spy.format(view="public.derived"))
    assert smallest_class(live, role="mole", run=DELETE) < K
    assert_refused(live, "mole can write public.people")


@pytest.mark.pg(">= 14")
def test_who_reads_a_live_view_by_a_function_does_not_write_its_source(live):
    live.execute(
        "REVOKE ALL ON anon.people FROM mole; CREATE FUNCTION public.smallest() RETURNS bigint"
        " SECURITY DEFINER BEGIN ATOMIC"
        " SELECT min(n) FROM (SELECT count(*) FROM anon.people GROUP BY age) AS c (n); END;"
        "REVOKE EXECUTE ON FUNCTION public.smallest() FROM PUBLIC;"
        "GRANT EXECUTE ON FUNCTION public.smallest() TO mole; GRANT DELETE ON public.people TO mole"
    )
    connection = live.connect_as("mole", autocommit=False)
    seen = connection.execute("DELETE FROM public.people RETURNING public.smallest()").fetchall()
    connection.rollback()
    assert min(n for (n,) in seen if n) < K
    assert_refused(live, "mole can write public.people")


@pytest.mark.pg(">= 14")
def test_who_calls_a_function_of_nothing_published_may_write_the_source_of_a_live_view(live):
    live.execute(
        "REVOKE ALL ON anon.people FROM mole; CREATE FUNCTION public.published() RETURNS bigint"
        " SECURITY DEFINER BEGIN ATOMIC SELECT count(*) FROM anon.people; END;"
        "REVOKE EXECUTE ON FUNCTION public.published() FROM PUBLIC;"
        "CREATE FUNCTION public.today() RETURNS date SECURITY DEFINER RETURN current_date;"
        "GRANT EXECUTE ON FUNCTION public.today() TO mole; GRANT DELETE ON public.people TO mole"
    )
    assert dbanon.publish(TABLE, kind="view", settings=live.settings).kind == "view"


@pytest.mark.parametrize("right", ["INSERT", "TRUNCATE", "INSERT (age)"])
def test_every_right_to_write_the_source_of_a_live_view_counts(live, right):
    live.execute(f"GRANT {right} ON public.people TO mole")
    assert_refused(live, "mole can write public.people")


def test_who_reads_all_of_the_source_anyway_may_read_a_live_view_as_everybody_does(live):
    clerk = live.role("mole_clerk")
    live.execute(
        "REVOKE ALL ON anon.people FROM mole;"
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON public.people TO {clerk}"
    )
    dbanon.grant("anon.people", ["public"], settings=live.settings)
    assert dbanon.publish(TABLE, kind="view", settings=live.settings).kind == "view"


def test_who_writes_the_source_of_a_table_release_may_read_it(live):
    live.execute("REVOKE ALL ON anon.people FROM mole; GRANT DELETE ON public.people TO mole")
    dbanon.publish(TABLE, name="still", grants=["mole"], settings=live.settings)
    assert live.connect_as("mole").execute("SELECT count(*) FROM anon.still").fetchone() == (40,)
    connection = live.connect_as("mole", autocommit=False)
    spy = MOLE[MOLE.index("CREATE FUNCTION") :].replace("CREATE", "CREATE OR REPLACE")
    connection.execute(spy.format(view="anon.still") + DELETE)
    assert connection.execute("SELECT min(class) >= %s FROM mole.seen", (K,)).fetchone() == (True,)
    connection.rollback()
