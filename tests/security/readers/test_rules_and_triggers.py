"""Rules and triggers that read the source for whoever writes: each is tried, then named."""

import psycopg
import pytest
from moles import TABLE, add_mole, assert_refused, make_people
from selection import exhaustive_after

import dbanon
from dbanon.domain.outcomes import Stages

INBOX = "CREATE TABLE public.inbox (id int, age int); INSERT INTO public.inbox VALUES (1, 1);"


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


# What the publisher makes, and what the mole then runs to read the source.
RULES = {
    "INSERT instead": (
        "CREATE RULE r AS ON INSERT TO public.inbox DO INSTEAD SELECT * FROM public.people",
        "INSERT",
        "INSERT INTO public.inbox VALUES (2, 2)",
    ),
    "DELETE instead": (
        "CREATE RULE r AS ON DELETE TO public.inbox DO INSTEAD SELECT * FROM public.people",
        "DELETE",
        "DELETE FROM public.inbox",
    ),
    "UPDATE of a column instead": (
        "CREATE RULE r AS ON UPDATE TO public.inbox DO INSTEAD SELECT * FROM public.people",
        "UPDATE (age)",
        "UPDATE public.inbox SET age = 2",
    ),
    "INSERT of what a view shows": (
        (
            "CREATE VIEW public.shown AS SELECT * FROM public.people;"
            "CREATE RULE r AS ON INSERT TO public.inbox DO INSTEAD SELECT * FROM public.shown"
        ),
        "INSERT",
        "INSERT INTO public.inbox VALUES (2, 2)",
    ),
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("rule", RULES)
def test_who_writes_a_table_whose_rule_reads_the_source_is_no_reader(live, rule):
    make, right, attack = RULES[rule]
    live.execute(f"{INBOX} {make}; GRANT {right} ON public.inbox TO mole")
    found = live.connect_as("mole").execute(attack).fetchall()
    assert (7, 7, 1, "d2") in found
    assert_refused(live, "mole can write public.inbox, and a rule of it reads what is private")


@pytest.mark.exhaustive
def test_who_writes_a_view_of_a_table_whose_rule_reads_the_source_is_no_reader(live):
    live.execute(
        f"{INBOX} CREATE VIEW public.front AS SELECT * FROM public.inbox;"
        "CREATE RULE r AS ON INSERT TO public.inbox DO INSTEAD SELECT * FROM public.people;"
        "GRANT INSERT ON public.front TO mole"
    )
    mole = live.connect_as("mole")
    found = mole.execute("INSERT INTO public.front VALUES (2, 2)").fetchall()
    assert (7, 7, 1, "d2") in found
    assert_refused(live, "mole can write public.front, and a rule of it reads what is private")


@pytest.mark.exhaustive
def test_who_cannot_set_off_the_rule_is_a_reader(live):
    dbanon.publish(TABLE, name="still", settings=live.settings)
    live.execute(
        f"{INBOX} CREATE RULE r AS ON INSERT TO public.inbox"
        " DO INSTEAD SELECT * FROM public.people;"
        "REVOKE ALL ON anon.people FROM mole; GRANT DELETE ON public.inbox TO mole"
    )
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        live.connect_as("mole").execute("INSERT INTO public.inbox VALUES (2, 2)")
    dbanon.grant("anon.still", ["mole"], settings=live.settings)
    assert live.connect_as("mole").execute("SELECT count(*) FROM anon.still").fetchone() == (40,)


FUNCTION = (
    "CREATE FUNCTION public.answer() RETURNS trigger LANGUAGE plpgsql {rights} AS"
    " 'BEGIN SELECT age INTO NEW.age FROM public.people WHERE id = NEW.id; RETURN NEW; END';"
)
PUT = "INSERT INTO public.{} (id) VALUES (7) RETURNING id, age"
# Whose rights the trigger reads with; where it is; where the mole writes.
TRIGGERS = {
    "on a table": (
        FUNCTION.format(rights="SECURITY DEFINER")
        + "CREATE TRIGGER t BEFORE INSERT ON public.inbox FOR EACH ROW"
        " EXECUTE FUNCTION public.answer(); GRANT SELECT, INSERT ON public.inbox TO mole",
        PUT.format("inbox"),
    ),
    "on the table of a view": (
        FUNCTION.format(rights="SECURITY DEFINER")
        + "CREATE VIEW public.front AS SELECT * FROM public.inbox;"
        "CREATE TRIGGER t BEFORE INSERT ON public.inbox FOR EACH ROW"
        " EXECUTE FUNCTION public.answer(); GRANT SELECT, INSERT ON public.front TO mole",
        PUT.format("front"),
    ),
    "instead, on a view": (
        FUNCTION.format(rights="SECURITY DEFINER")
        + "CREATE VIEW public.front AS SELECT * FROM public.inbox;"
        "CREATE TRIGGER t INSTEAD OF INSERT ON public.front FOR EACH ROW"
        " EXECUTE FUNCTION public.answer(); GRANT SELECT, INSERT ON public.front TO mole",
        PUT.format("front"),
    ),
    "at the end of a foreign key": (
        FUNCTION.format(rights="").partition(" AS ")[0] + " AS"
        " 'BEGIN UPDATE public.outbox SET age ="
        " (SELECT p.age FROM public.people AS p WHERE p.id = 7); RETURN OLD; END';"
        "CREATE TABLE public.outbox AS SELECT 7 AS id, 0 AS age;"
        "CREATE TABLE public.heads (id int PRIMARY KEY); INSERT INTO public.heads VALUES (1);"
        "ALTER TABLE public.inbox ADD FOREIGN KEY (id) REFERENCES public.heads ON DELETE CASCADE;"
        "CREATE TRIGGER t BEFORE DELETE ON public.inbox FOR EACH ROW"
        " EXECUTE FUNCTION public.answer();"
        "GRANT DELETE ON public.heads TO mole; GRANT SELECT ON public.outbox TO mole",
        "DELETE FROM public.heads; SELECT * FROM public.outbox",
    ),
}


def publish_again(database, stages):
    dbanon.publish(TABLE, name="still", settings=database.settings, stages=stages)


def refresh_more(database, stages):
    database.execute(
        "INSERT INTO public.practices SELECT generate_series(41, 50);"
        "INSERT INTO public.people SELECT i, i, 50, 'd' || i FROM generate_series(41, 50) AS i"
    )
    done = dbanon.refresh(TABLE, settings=database.settings, stages=stages)
    assert [True, True] == [one.changed for one in done]


@pytest.mark.exhaustive
@pytest.mark.parametrize("trigger", TRIGGERS)
def test_a_trigger_that_seems_to_read_the_source_for_whoever_writes_is_named(live, trigger):
    dbanon.publish(TABLE, name="still", grants=["mole"], settings=live.settings)
    make, attack = TRIGGERS[trigger]
    live.execute(f"{INBOX} {make}")
    cursor = live.connect_as("mole").execute(attack)
    while cursor.nextset():
        pass
    assert (7, 1) == cursor.fetchone()
    told = "mole can set off public.answer by writing, and it seems to read what is private"
    found = [f for f in dbanon.doctor(settings=live.settings) if told in f.message]
    assert {("warning", "anon.people"), ("warning", "anon.still")} == {
        (f.level, f.subject) for f in found
    }
    (given,) = dbanon.grant("anon.still", ["mole"], settings=live.settings)
    assert any(told in remark.hint for remark in given.remarks)
    for again in (publish_again, refresh_more):
        notes = []
        again(live, Stages(on_note=notes.append))
        assert [told] == [told for note in notes if told in note], again


@pytest.mark.exhaustive
def test_a_trigger_that_reads_with_the_rights_of_whoever_writes_is_not_named(live):
    live.execute(
        f"{INBOX} {FUNCTION.format(rights='')}"
        "CREATE TRIGGER t BEFORE INSERT ON public.inbox FOR EACH ROW"
        " EXECUTE FUNCTION public.answer(); GRANT SELECT, INSERT ON public.inbox TO mole"
    )
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        live.connect_as("mole").execute(PUT.format("inbox"))
    messages = [f.message for f in dbanon.doctor(settings=live.settings)]
    assert [] == [message for message in messages if "public.answer" in message]


GUESSES = (
    "CREATE TABLE public.guess AS SELECT i AS id, 'd' || d AS disease"
    " FROM generate_series(1, 40) AS i, generate_series(0, 4) AS d;"
    "ALTER TABLE public.guess ENABLE ROW LEVEL SECURITY;"
    "CREATE POLICY p ON public.guess USING (EXISTS (SELECT FROM public.people AS x"
    " WHERE x.id = guess.id AND x.disease = guess.disease));"
)
FRONT = "CREATE VIEW public.front AS SELECT * FROM public.guess;"
ATOMIC = (
    "CREATE FUNCTION public.step(s text, i int) RETURNS text LANGUAGE sql SECURITY DEFINER"
    " BEGIN ATOMIC SELECT disease FROM public.people WHERE id = i; END;"
)
STEP = (
    "CREATE FUNCTION public.step(s text, i int) RETURNS text LANGUAGE sql SECURITY DEFINER"
    " AS 'SELECT disease FROM public.people WHERE id = i';"
)
AGGREGATE = (
    "REVOKE ALL ON FUNCTION public.step(text, int) FROM PUBLIC;"
    "CREATE AGGREGATE public.agg(int) (sfunc = public.step, stype = text);"
)
HEADS = (
    f"{INBOX} CREATE TABLE public.heads (id int PRIMARY KEY); INSERT INTO public.heads VALUES (1);"
    "ALTER TABLE public.inbox ADD FOREIGN KEY (id) REFERENCES public.heads"
    " ON DELETE CASCADE ON UPDATE CASCADE;"
    "CREATE TABLE public.outbox (id int, disease text);"
    "CREATE RULE r AS ON {event} TO public.inbox DO ALSO"
    " INSERT INTO public.outbox SELECT id, disease FROM public.people;"
    "GRANT SELECT ON public.outbox TO mole;"
)
# What the publisher makes, what the mole runs, what that finds, and what is told.
REFUSED = {
    "row-level policy below a view": (
        (
            f"{GUESSES} ALTER TABLE public.guess FORCE ROW LEVEL SECURITY;"
            f"{FRONT} GRANT SELECT ON public.front TO mole"
        ),
        "SELECT * FROM public.front WHERE id = 7",
        (7, "d2"),
        "mole can read public.front, a view of what is private",
    ),
    "row-level policy of another's table": (
        (
            f"{GUESSES} CREATE ROLE app; GRANT SELECT ON public.guess, public.people TO app;"
            "GRANT CREATE ON SCHEMA public TO app; SET ROLE app;"
            f"{FRONT} GRANT SELECT ON public.front TO mole"
        ),
        "SELECT * FROM public.front WHERE id = 7",
        (7, "d2"),
        "mole can read public.front, a view of what is private",
    ),
    "row-level policy for what is written": (
        (
            "CREATE TABLE public.guess (id int, disease text);"
            "ALTER TABLE public.guess ENABLE ROW LEVEL SECURITY;"
            "ALTER TABLE public.guess FORCE ROW LEVEL SECURITY;"
            "CREATE POLICY p ON public.guess USING (true) WITH CHECK (EXISTS (SELECT"
            " FROM public.people AS x WHERE x.id = guess.id AND x.disease = guess.disease));"
            f"{FRONT} GRANT INSERT ON public.front TO mole"
        ),
        "INSERT INTO public.front VALUES (7, 'd2'); SELECT 7, 'd2'",
        (7, "d2"),
        "mole can write public.front, a view of a table whose row-level policy reads what is",
    ),
    "step of an aggregate": (
        ATOMIC + AGGREGATE,
        "SELECT public.agg(7)",
        ("d2",),
        "mole can call public.agg, which reads what is private as its owner",
    ),
    "rule behind a foreign key": (
        HEADS.format(event="DELETE") + "GRANT DELETE ON public.heads TO mole",
        "DELETE FROM public.heads; SELECT * FROM public.outbox",
        (7, "d2"),
        "mole can write public.heads, and a rule of it reads what is private",
    ),
    "rule behind a foreign key that is updated": (
        HEADS.format(event="UPDATE") + "GRANT UPDATE ON public.heads TO mole",
        "UPDATE public.heads SET id = 2; SELECT * FROM public.outbox",
        (7, "d2"),
        "mole can write public.heads, and a rule of it reads what is private",
    ),
}


def last_rows(connection, statements):
    cursor = connection.execute(statements)
    while cursor.nextset():
        pass
    return cursor.fetchall()


@pytest.fixture
def app(live):
    """A role for the statements of a test to name."""
    return live.role("app")


def run(live, make):
    """Run statements as the publisher, and what comes after SET ROLE as that role."""
    first, _, rest = make.replace("CREATE ROLE app;", "").partition("SET ROLE app;")
    live.execute(first)
    if rest:
        live.connect_as("app").execute(rest)


@pytest.mark.exhaustive
@pytest.mark.pg(">= 14")
@pytest.mark.usefixtures("app")
@pytest.mark.parametrize("way", REFUSED)
def test_who_reads_the_source_by_something_between_is_no_reader(live, way):
    dbanon.publish(TABLE, name="still", grants=["mole"], settings=live.settings)
    make, attack, expected, told = REFUSED[way]
    run(live, make)
    assert expected in last_rows(live.connect_as("mole"), attack)
    messages = [f.message for f in dbanon.doctor(settings=live.settings)]
    assert [told] == [told for message in messages if told in message][:1]
    with pytest.raises(dbanon.DriftError) as drifted:
        dbanon.publish(TABLE, name="still", settings=live.settings)
    assert told in str(drifted.value)
    with pytest.raises(dbanon.NotPermitted) as refused:
        dbanon.grant("anon.still", ["mole"], settings=live.settings)
    assert told in str(refused.value)


@pytest.mark.exhaustive
def test_a_row_level_policy_that_is_not_asked_of_the_owner_of_a_view_is_no_obstacle(live):
    live.execute(f"{GUESSES} {FRONT} GRANT SELECT ON public.front, public.guess TO mole")
    mole = live.connect_as("mole")
    assert 200 == len(mole.execute("SELECT * FROM public.front").fetchall())
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        mole.execute("SELECT * FROM public.guess")
    dbanon.publish(TABLE, name="still", grants=["mole"], settings=live.settings)
    assert mole.execute("SELECT count(*) FROM anon.still").fetchone() == (40,)


REPORTER = (
    'CREATE VIEW public."sho""wn" AS SELECT * FROM public.people;'
    'GRANT SELECT ON public."sho""wn" TO app; GRANT CREATE ON SCHEMA public TO app;'
    "SET ROLE app;"
)
# What the publisher or app makes, what the mole runs, what that finds, and what is told.
NAMED = {
    "step of an aggregate": (
        STEP + AGGREGATE,
        "SELECT public.agg(7)",
        ("d2",),
        "mole can call public.agg, which runs as its owner and seems to read what is private",
    ),
    "function of a role that reads a view": (
        (
            f"{REPORTER} CREATE FUNCTION public.f(i int) RETURNS text LANGUAGE sql SECURITY DEFINER"
            ' AS \'SELECT disease FROM public."sho""wn" WHERE id = i\''
        ),
        "SELECT public.f(7)",
        ("d2",),
        "mole can call public.f, which runs as its owner and seems to read what is private",
    ),
    "trigger of a role that reads a view": (
        (
            f"{REPORTER} CREATE FUNCTION public.f() RETURNS trigger LANGUAGE plpgsql"
            " SECURITY DEFINER"
            ' AS \'BEGIN NEW.d := (SELECT disease FROM public."sho""wn" WHERE id = NEW.id);'
            " RETURN NEW; END';"
            "CREATE TABLE public.box (id int, d text);"
            "CREATE TRIGGER t BEFORE INSERT ON public.box FOR EACH ROW EXECUTE FUNCTION public.f();"
            "GRANT SELECT, INSERT ON public.box TO mole"
        ),
        "INSERT INTO public.box VALUES (7); SELECT id, d FROM public.box",
        (7, "d2"),
        "mole can set off public.f by writing, and it seems to read what is private",
    ),
    "function of a role that reads the metadata": (
        (
            "GRANT USAGE ON SCHEMA dbanon TO app; GRANT SELECT ON dbanon.policy TO app;"
            "GRANT CREATE ON SCHEMA public TO app; SET ROLE app;"
            "CREATE FUNCTION public.f() RETURNS bigint LANGUAGE sql SECURITY DEFINER"
            " AS 'SELECT count(*) FROM dbanon.policy'"
        ),
        "SELECT public.f()",
        (1,),
        "mole can call public.f, which runs as its owner and seems to read what is private",
    ),
    "trigger behind a rule of another event": (
        INBOX + FUNCTION.format(rights="SECURITY DEFINER") + "CREATE TRIGGER t BEFORE INSERT"
        " ON public.inbox FOR EACH ROW EXECUTE FUNCTION public.answer();"
        "CREATE TABLE public.front (id int); INSERT INTO public.front VALUES (1);"
        "CREATE RULE r AS ON UPDATE TO public.front"
        " DO INSTEAD INSERT INTO public.inbox (id) VALUES (NEW.id);"
        "GRANT UPDATE (id) ON public.front TO mole; GRANT SELECT ON public.inbox TO mole",
        "UPDATE public.front SET id = 7; SELECT id, age FROM public.inbox",
        (7, 1),
        "mole can set off public.answer by writing, and it seems to read what is private",
    ),
}


@pytest.mark.usefixtures("app")
@pytest.mark.parametrize("way", exhaustive_after(1, NAMED))
def test_what_seems_to_read_for_others_with_whatever_right_is_named(live, way):
    dbanon.publish(TABLE, name="still", grants=["mole"], settings=live.settings)
    make, attack, expected, told = NAMED[way]
    run(live, make)
    assert expected in last_rows(live.connect_as("mole"), attack)
    found = [f for f in dbanon.doctor(settings=live.settings) if told in f.message]
    assert ("warning", "anon.still") in {(f.level, f.subject) for f in found}
    (given,) = dbanon.grant("anon.still", ["mole"], settings=live.settings)
    assert any(told in remark.hint for remark in given.remarks)
    notes = []
    publish_again(live, Stages(on_note=notes.append))
    assert [told] == [told for note in notes if told in note]


def test_an_event_trigger_that_seems_to_read_the_source_for_others_is_named(live):
    admin = live.admin()
    admin.execute(
        "CREATE FUNCTION public.ev() RETURNS event_trigger LANGUAGE plpgsql SECURITY DEFINER AS"
        " $$ BEGIN IF session_user = 'mole' THEN"
        " RAISE 'it is %', (SELECT disease FROM public.people WHERE id = 7); END IF; END $$;"
        "CREATE EVENT TRIGGER ev ON ddl_command_end EXECUTE FUNCTION public.ev()"
    )
    with pytest.raises(psycopg.errors.RaiseException, match="it is d2"):
        live.connect_as("mole").execute("CREATE TABLE mole.bait (id int)")
    told = (
        "mole can set off public.ev by changing definitions, and it seems to read what is private"
    )
    found = [f.level for f in dbanon.doctor(settings=live.settings) if told in f.message]
    assert ["warning"] == found


# What a role makes that may connect, and nothing else.
IDLE = {
    "a view": "CREATE TEMP VIEW v AS SELECT * FROM public.people; GRANT SELECT ON v TO PUBLIC",
    "a view of a view of its reader": (
        "CREATE TEMP VIEW u WITH (security_invoker = true) AS SELECT * FROM public.people;"
        "CREATE TEMP VIEW v AS SELECT * FROM u; GRANT SELECT ON u, v TO PUBLIC"
    ),
    "a view of a function": (
        "CREATE FUNCTION pg_temp.f() RETURNS SETOF public.people LANGUAGE sql"
        " BEGIN ATOMIC SELECT * FROM public.people; END;"
        "CREATE TEMP VIEW v AS SELECT * FROM pg_temp.f(); GRANT SELECT ON v TO PUBLIC"
    ),
    "a function": (
        "CREATE FUNCTION pg_temp.f() RETURNS bigint LANGUAGE sql SECURITY DEFINER"
        " BEGIN ATOMIC SELECT count(*) FROM public.people; END"
    ),
    "a function of a row": (
        "CREATE FUNCTION pg_temp.f(public.people) RETURNS text LANGUAGE plpgsql SECURITY DEFINER"
        " AS 'BEGIN RETURN $1.disease; END'"
    ),
    "a rule": (
        "CREATE TEMP TABLE t (id int); GRANT INSERT ON t TO PUBLIC;"
        "CREATE RULE r AS ON INSERT TO t DO INSTEAD SELECT * FROM public.people"
    ),
    "a rule of a view of its reader": (
        "CREATE TEMP VIEW u WITH (security_invoker = true) AS SELECT * FROM public.people;"
        "CREATE TEMP TABLE t (id int); GRANT INSERT ON t TO PUBLIC;"
        "CREATE RULE r AS ON INSERT TO t DO INSTEAD SELECT * FROM u"
    ),
    "a row-level policy": (
        "CREATE TEMP TABLE t (id int); ALTER TABLE t ENABLE ROW LEVEL SECURITY;"
        "ALTER TABLE t FORCE ROW LEVEL SECURITY;"
        "CREATE POLICY p ON t USING (EXISTS (SELECT FROM public.people AS x WHERE x.id = t.id));"
        "CREATE TEMP VIEW v AS SELECT * FROM t; GRANT ALL ON v TO PUBLIC"
    ),
    "a view of the release": (
        "CREATE TEMP VIEW v AS SELECT * FROM anon.people; GRANT SELECT ON v TO PUBLIC"
    ),
}


@pytest.mark.exhaustive
@pytest.mark.pg(">= 15")
@pytest.mark.parametrize("make", IDLE)
def test_what_shows_nothing_as_its_owner_has_no_right_is_no_obstacle(live, make):
    passer_by = live.connect_as(live.role("passer_by"))
    live.role("clerk")
    live.execute("GRANT INSERT ON public.people TO clerk")
    passer_by.execute(IDLE[make])
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        passer_by.execute("SELECT FROM public.people")
    assert dbanon.publish(TABLE, kind="view", settings=live.settings).id == 2
    read = "anon.people" if make == "a view of the release" else "public.people"
    live.execute(f"GRANT SELECT ON {read} TO passer_by")
    with pytest.raises(dbanon.DriftError, match=r"mole can|clerk can write public\.people"):
        dbanon.publish(TABLE, kind="view", settings=live.settings)


@pytest.mark.exhaustive
def test_a_reader_s_view_of_the_metadata_is_no_obstacle(live):
    live.execute("GRANT USAGE ON SCHEMA dbanon TO mole")
    mole = live.connect_as("mole")
    mole.execute("CREATE VIEW mole.meta AS SELECT * FROM dbanon.policy")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        mole.execute("SELECT FROM mole.meta")
    assert dbanon.publish(TABLE, kind="view", settings=live.settings).id == 2


@pytest.mark.exhaustive
def test_a_materialized_view_whose_owner_lost_the_right_is_named(live):
    live.role("app")
    live.execute("GRANT SELECT ON public.people TO app; GRANT CREATE ON SCHEMA public TO app")
    live.connect_as("app").execute(
        "CREATE MATERIALIZED VIEW public.kept AS SELECT * FROM public.people;"
        "GRANT SELECT ON public.kept TO mole"
    )
    live.execute("REVOKE SELECT ON public.people FROM app")
    assert (7, 7, 1, "d2") in live.connect_as("mole").execute("TABLE public.kept").fetchall()
    assert_refused(live, "mole can read public.kept, a materialized view of what is private")
