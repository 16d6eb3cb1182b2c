"""Rules and triggers that read the source for whoever writes: each is tried, then named."""

import psycopg
import pytest
from moles import TABLE, add_mole, assert_refused, make_people

import dbanon
from dbanon.domain.progress import Stages

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


@pytest.mark.parametrize("rule", RULES)
def test_who_writes_a_table_whose_rule_reads_the_source_is_no_reader(live, rule):
    make, right, attack = RULES[rule]
    live.execute(f"{INBOX} {make}; GRANT {right} ON public.inbox TO mole")
    found = live.connect_as("mole").execute(attack).fetchall()
    assert (7, 7, 1, "d2") in found
    assert_refused(live, "mole can write public.inbox, and a rule of it reads what is private")


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
    assert any(told in remark for remark in given.remarks)
    for again in (publish_again, refresh_more):
        notes = []
        again(live, Stages(on_note=notes.append))
        assert [told] == [told for note in notes if told in note], again


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
