"""What a transaction has opened, and whether its names still mean that: no more, and no less."""

import pytest
from psycopg import sql

from dbanon.db import catalog, identity
from dbanon.db.queries import query
from dbanon.db.session import connect
from dbanon.domain.errors import DatabaseError
from dbanon.domain.table import TableName

RELATIONS = """
CREATE TABLE public.plain (id int PRIMARY KEY, note text);
CREATE TABLE public.child () INHERITS (public.plain);
CREATE INDEX ON public.child (id);
CREATE TABLE public.parted (id int PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE public.part PARTITION OF public.parted DEFAULT;
CREATE TABLE public.base (id int PRIMARY KEY);
CREATE VIEW public.seen AS SELECT id FROM public.base;
CREATE VIEW public.deep AS SELECT id FROM public.seen;
CREATE TABLE public.other (id int PRIMARY KEY);
"""
WHOLE = ["plain", "parted", "deep"]  # each consists of others, and shares none of them
PARTS = {
    "plain": {"plain", "child"},
    "parted": {"parted", "part"},
    "deep": {"deep", "seen", "base"},
}


@pytest.fixture(scope="module")
def opened(server, template):
    with server.database(template) as database:
        database.execute(RELATIONS)
        yield database


@pytest.fixture
def session(opened):
    with connect(opened.settings) as session:
        yield session


def read(session, name):
    statement = sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier("public", name))
    session.pg.execute(statement)


def admit(session, name):
    identity.admit(session, catalog.describe(session, TableName("public", name)))


def opened_by(session):
    """Return the names of what the open transaction holds a lock of, as every reader does."""
    rows = session.pg.execute(
        "SELECT c.relname FROM pg_locks AS l JOIN pg_class AS c ON c.oid = l.relation"
        " WHERE l.locktype = 'relation' AND l.pid = pg_backend_pid()"
    )
    return {name for (name,) in rows}


@pytest.mark.parametrize("name", WHOLE)
def test_what_was_admitted_is_read_with_all_that_it_consists_of(session, name):
    with session.transaction(read_only=True, keep=False):
        admit(session, name)
        for part in PARTS[name]:
            read(session, part)
        assert opened_by(session) >= PARTS[name]
        identity.require_admitted(session)


@pytest.mark.parametrize("name", WHOLE)
def test_nothing_else_is_read_beside_it(session, name):
    others = {part for parts in PARTS.values() for part in parts} - PARTS[name]
    for other in sorted({"other", *others}):
        with session.transaction(read_only=True, keep=False):
            admit(session, name)
            read(session, name)
            read(session, other)
            with pytest.raises(DatabaseError, match="was opened in place of what was to be read"):
                identity.require_admitted(session)


def test_beside_what_was_admitted_only_what_is_named_may_be_opened(session, opened):
    ((other,),) = opened.execute("SELECT 'public.other'::regclass::oid")
    with session.transaction(read_only=True, keep=False):
        read(session, "other")
        identity.require_nothing_else(session, [other])
        with pytest.raises(DatabaseError, match="was opened in place of what was to be read"):
            identity.require_nothing_else(session)


def test_what_the_transaction_itself_has_made_is_no_matter(session):
    with session.transaction(keep=False):
        session.pg.execute(
            "CREATE TEMP TABLE own AS SELECT repeat(md5(i::text), 9999) AS note"
            " FROM generate_series(1, 9) AS i;"
            "CREATE TABLE public.gone (id int PRIMARY KEY, note text); DROP TABLE public.gone"
        )
        session.pg.execute("SELECT max(note) FROM own")
        assert "own" in opened_by(session)
        identity.require_admitted(session)


def test_a_name_means_what_the_snapshot_sees_under_it(session, opened):
    ((other,),) = opened.execute("SELECT 'public.other'::regclass::oid")
    with session.transaction(snapshot=True, keep=False):
        session.pg.execute("SELECT count(*) FROM pg_class")
        opened.execute("CREATE TABLE public.later (id int)")
        ((later,),) = opened.execute("SELECT 'public.later'::regclass::oid")
        asked = {
            "same": (other, "public.other"),
            "another": (other, "public.plain"),
            "none": (other, "public.nothing"),
            "later": (later, "public.later"),
        }
        oids, names = zip(*asked.values(), strict=True)
        moved = {"oids": list(oids), "names": list(names)}
        found = session.pg.execute(query("identity.moved_names"), moved, prepare=False).fetchall()
    opened.execute("DROP TABLE public.later")
    assert {(name,) for key, (_, name) in asked.items() if key != "same"} == {*found}
