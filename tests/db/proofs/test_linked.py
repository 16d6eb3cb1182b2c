"""What is proved of the tables of a dataset together, against a definition in Python."""

from collections import Counter, defaultdict

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg import sql

from dbanon.db import catalog
from dbanon.db.histories.cells import of_persons
from dbanon.db.proofs.subjects import prove_linked
from dbanon.db.queries import template
from dbanon.db.releases import relations
from dbanon.db.releases.publication import Publication
from dbanon.db.session import connect
from dbanon.domain.policy import ColumnRule, ModelSpec, Policy, Role
from dbanon.domain.release import ReleaseKind
from dbanon.domain.table import TableName

NAMES = ("stays", "tests")
POSTCODES = ["zip 0", "zip 0", "zip 1"]  # of the groups, two of which are one class
RULES = (
    ColumnRule("id", Role.IDENTIFIER),
    ColumnRule("person", Role.IDENTIFIER),
    ColumnRule("zip", Role.QUASI),
)


@pytest.fixture(scope="module")
def session(server, template):
    with server.database(template) as database, connect(database.settings) as session:
        yield session


def published(session, number, rows, *, k, by_number):
    """Return a publication of a table whose rows are (group, person)."""
    name = TableName("public", NAMES[number])
    session.pg.execute(f"CREATE TABLE {name} (id int PRIMARY KEY, person int NOT NULL, zip text)")
    policy = Policy(
        name,
        RULES,
        (ModelSpec("k-anonymity", {"k": k}),),
        subject="person",
        rows_per_subject="group" if by_number else None,
    )
    publication = Publication(
        id=number + 1,
        info=catalog.describe(session, name),
        policy=policy,
        kind=ReleaseKind.TABLE,
        view=TableName("anon", name.name),
        recodings=(("zip", "label"),),
    )
    for statement in relations.build_statements(publication):
        session.pg.execute(statement)
    insert = sql.SQL("INSERT INTO {} VALUES (%s, %s)").format(publication.rows)
    groups = sql.SQL("INSERT INTO {} (group_id, q1) VALUES (%s, %s)").format(publication.groups)
    with session.pg.cursor() as cursor:
        cursor.executemany(
            f"INSERT INTO {name} VALUES (%s, %s, 'z')", [(i, p) for i, (_, p) in enumerate(rows)]
        )
        cursor.executemany(insert, [(i, group) for i, (group, _) in enumerate(rows)])
        cursor.executemany(groups, enumerate(POSTCODES))
    return publication


def figures(tables, k, *, by_number):
    """Return the figures of a proof of those who are in the same classes of all tables."""
    rows = Counter(
        (person, part, POSTCODES[group])
        for part, table in enumerate(tables)
        for group, person in table
    )
    classes = defaultdict(set)
    for (person, *class_), number in rows.items():
        classes[person].add((*class_, number if by_number else 0))
    sizes = Counter(map(frozenset, classes.values())).values()
    return k, min(sizes), len(sizes), sum(n < k for n in sizes), sum(sizes)


def shown(result):
    """Return the same figures as a result has them."""
    return (
        result.required,
        result.achieved,
        result.classes,
        result.failing_classes,
        result.n_rows,
    )


ROWS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 5)), min_size=1, max_size=12)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.tuples(ROWS, ROWS), st.integers(1, 4), st.booleans())
def test_k_of_all_tables_counts_who_is_in_the_same_classes_of_each(session, tables, k, by_number):
    with session.transaction(keep=False):
        publications = [
            published(session, number, rows, k=k, by_number=by_number)
            for number, rows in enumerate(tables)
        ]
        found = prove_linked(session, publications)
        left = session.pg.execute("SELECT relname FROM pg_class WHERE relname ~ '^cells'")
        assert [] == left.fetchall()
    for (result,) in found:
        assert figures(tables, k, by_number=by_number) == shown(result)


# Of a table, the class of each of six persons, and whose rows there are.
REMEMBERED = st.tuples(
    st.lists(st.integers(0, 2), min_size=6, max_size=6),
    st.lists(st.integers(0, 5), min_size=1, max_size=12),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.tuples(REMEMBERED, REMEMBERED), st.integers(1, 4), st.booleans())
def test_k_of_remembered_tables_counts_them_the_same_way(session, drawn, k, by_number):
    """Both tables have classes of the same numbers, as tables do that show the same columns."""
    tables = [[(classes[person], person) for person in persons] for classes, persons in drawn]
    linked, rows, found = (
        sql.Identifier("pg_temp", name) for name in ("linked", "remembered", "history_cells")
    )
    times = sql.SQL("count(*)" if by_number else "''")
    create = sql.SQL("CREATE TABLE {} (shown text, person uuid)").format(rows)
    insert = sql.SQL("INSERT INTO {} VALUES (%s, lpad(%s, 32, '0')::uuid)").format(rows)
    with session.transaction(keep=False):
        session.pg.execute(template("overlays.create_linked", linked=linked))
        for part, table in enumerate(tables):
            session.pg.execute(create)
            with session.pg.cursor() as cursor:
                cursor.executemany(insert, [(POSTCODES[c], str(person)) for c, person in table])
            slots = {"linked": linked, "rows": rows, "part": sql.Literal(part), "times": times}
            session.pg.execute(template("overlays.link", **slots))
            session.pg.execute(sql.SQL("DROP TABLE {}").format(rows))
        slots = {"cells": found, "linked": linked, "parts": sql.Literal([0, 1])}
        session.pg.execute(template("overlays.linked_cells", **slots))
        result = of_persons(session, k)
    assert figures(tables, k, by_number=by_number) == shown(result)
