"""People served live without a search, for tests of guards."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from psycopg import sql

from dbanon.db import catalog, schemas
from dbanon.db.releases import relations
from dbanon.db.releases.publication import Publication
from dbanon.db.session import connect
from dbanon.domain.policy import ColumnRule, ModelSpec, Policy, Role
from dbanon.domain.release import ReleaseKind
from dbanon.domain.table import TableName

if TYPE_CHECKING:
    from collections.abc import Sequence

    from servers import Database

TABLE, VIEW = TableName("public", "people"), TableName("anon", "people")
K2 = ModelSpec("k-anonymity", {"k": 2})
DISEASES = ["a", "b", "c", None, "it's \\ %s"]
WAGES = ["1.5", "1.50", "2", "4", None]
# (disease, wage) of the six rows of a class: crossed, distinct, skewed, constant.
CLASSES = [
    [(d, w) for w in ("1.5", "2", "4") for d in ("a", "b")],
    [(d, str(i)) for i, d in enumerate([*DISEASES, "a"])],
    [("a", "1.5"), ("a", "1.5"), ("a", "1.50"), ("a", "1.5"), ("b", "2"), ("c", "4")],
    [("a", "2")] * 6,
]
SIZE = 3
VISITS = [(i // 2, f"zip {i // 6}", "abc"[i // 2 % 3], "1") for i in range(12)]
SIXES = [(j, f"zip {i}", *row) for i, rows in enumerate(CLASSES) for j, row in enumerate(rows)]
EIGHT = SIXES + [(j, f"{place}, other", *row) for j, place, *row in SIXES]


def policy_of(*models: ModelSpec, subject: str | None = None) -> Policy:
    """Return a policy for the table of ``serve``."""
    columns = (
        ColumnRule("id", Role.IDENTIFIER),
        ColumnRule("person", Role.IDENTIFIER),
        ColumnRule("zip", Role.QUASI),
        ColumnRule("disease", Role.SENSITIVE),
        ColumnRule("wage", Role.SENSITIVE),
    )
    return Policy(table=TABLE, columns=columns, models=models, subject=subject)


def serve(database: Database, policy: Policy, rows: Sequence[Sequence[object]]) -> Publication:
    """Serve people live without a search: three rows a group, two groups a postcode."""
    database.execute("DROP TABLE IF EXISTS public.people CASCADE")
    with connect(database.settings) as session, session.transaction():
        relations.drop_membership(session, 1)
        relations.drop_copy(session, 1)
    database.execute(
        "CREATE TABLE public.people (id int PRIMARY KEY, person int NOT NULL, zip text,"
        " disease text, wage numeric)"
    )
    with (
        database.connect() as writer,
        writer.cursor().copy("COPY public.people FROM STDIN") as copy,
    ):
        for i, row in enumerate(rows):
            copy.write_row((i, *row))
    groups = len(rows) // SIZE
    with connect(database.settings) as session, session.transaction():
        publication = Publication(
            id=1,
            info=catalog.describe(session, TABLE),
            policy=policy,
            kind=ReleaseKind.VIEW,
            view=VIEW,
            recodings=(("zip", "label"),),
        )
        for statement in relations.build_statements(publication):
            session.pg.execute(statement)
        session.pg.execute(
            sql.SQL("INSERT INTO {} SELECT id, id / {} FROM public.people").format(
                publication.rows, SIZE
            )
        )
        session.pg.execute(
            sql.SQL("INSERT INTO {} (group_id, q1) SELECT g, 'zip ' || g / 2 FROM {} AS g").format(
                publication.groups, sql.SQL("generate_series(0, {})").format(groups - 1)
            )
        )
        for statement in relations.serve_statements(publication):
            session.pg.execute(statement)
        schemas.ensure(session, VIEW.schema)
        relations.replace(session, VIEW, relations.view_statement(publication))
        session.pg.execute(relations.comment_statement(publication))
    return publication


def shown(database: Database) -> int:
    """Count the rows that readers see."""
    return database.execute("SELECT count(*) FROM anon.people")[0][0]


def wait_for_lock(database):
    """Wait until somebody waits for a lock on a relation."""
    waiting = "SELECT count(*) > 0 FROM pg_locks WHERE NOT granted AND relation IS NOT NULL"
    for _ in range(500):
        if database.execute(waiting) == [(True,)]:
            return
        time.sleep(0.02)
    pytest.fail("nobody waits for a lock")
