"""Releases that are remembered without a search or a proof, for tests of what comparing reveals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from dbanon.db import catalog
from dbanon.db.histories import overlay
from dbanon.db.metadata import ledger
from dbanon.db.releases import relations, release_rows
from dbanon.db.releases.publication import Publication
from dbanon.db.session import connect
from dbanon.db.transfer import SourceRows
from dbanon.domain.assignment import Assignment, GroupValues, LossReport, ValueColumn
from dbanon.domain.checks import CheckReport
from dbanon.domain.policy import ColumnRule, ModelSpec, Policy, Role
from dbanon.domain.release import Release, ReleaseKind
from dbanon.domain.table import ColumnKind, TableName

if TYPE_CHECKING:
    from collections.abc import Sequence

    from servers import Database

    from dbanon.domain.checks import Composition

TABLE = TableName("public", "people")
K2 = ModelSpec("k-anonymity", {"k": 2})
L2 = ModelSpec("l-diversity", {"l": 2, "columns": ("disease",)})
RULES = (
    ColumnRule("id", Role.IDENTIFIER),
    ColumnRule("person", Role.IDENTIFIER),
    ColumnRule("zip", Role.QUASI),
    ColumnRule("disease", Role.SENSITIVE),
    ColumnRule("wage", Role.SENSITIVE),
)
Row = tuple[int, str, str | None, str | None]
"""Of whom a row is, in which class it is published, and with which disease and wage."""


def make_people(database: Database) -> None:
    """Create an empty table of people."""
    database.execute(
        "CREATE TABLE public.people (id int PRIMARY KEY, person text, zip text, disease text,"
        " wage numeric)"
    )


def note(
    database: Database,
    number: int,
    rows: Sequence[Row],
    *,
    view: str = "people",
    models: Sequence[ModelSpec] = (K2, L2),
    subject: str | None = None,
) -> Composition:
    """Remember a release that shows some rows, and return what all releases reveal by then."""
    policy = Policy(table=TABLE, columns=RULES, models=tuple(models), subject=subject)
    classes = sorted({row[1] for row in rows})
    if subject is not None:
        database.execute("DELETE FROM public.people")
        for i, (person, *values) in enumerate(rows):
            line = (i, str(person), *values)
            database.execute("INSERT INTO public.people VALUES (%s, %s, %s, %s, %s)", line)
    with connect(database.settings) as session, session.transaction():
        publication = Publication(
            id=number,
            info=catalog.describe(session, TABLE),
            policy=policy,
            kind=ReleaseKind.TABLE,
            view=TableName("anon", view),
            recodings=(("zip", "label"),),
        )
        for statement in relations.build_statements(publication):
            session.pg.execute(statement)
        keys = [row[0] if subject is None else i for i, row in enumerate(rows)]
        source = SourceRows(
            pa.table({"id": pa.array(keys, pa.int32())}),
            pa.table(
                {name: _column(rows, place) for place, name in enumerate(("disease", "wage"), 2)}
            ),
        )
        group = np.array([classes.index(row[1]) for row in rows], np.int32)
        index = np.arange(len(classes), dtype=np.int32)
        column = ValueColumn(
            "zip", "label", ColumnKind.CATEGORY, index, tuple(classes), np.zeros(len(classes))
        )
        release_rows.fill(
            session,
            publication,
            source,
            assignment=Assignment(group, len(classes)),
            values=GroupValues((column,), len(classes)),
        )
        found = overlay.remember(session, publication)
        ledger.add_release(session, _entered(publication, len(rows)))
    return found


def _column(rows: Sequence[Row], place: int) -> pa.ChunkedArray:
    values = pa.array([row[place] for row in rows], pa.string())
    return pa.chunked_array([values.dictionary_encode()])


def _entered(publication: Publication, size: int) -> Release:
    return Release(
        id=publication.id,
        table=TABLE,
        relation=publication.view,
        kind=ReleaseKind.TABLE,
        policy=publication.policy,
        seed=0,
        checks=CheckReport(publication.view, ()),
        loss=LossReport(size, 0, 1, 1, 0.0, {}),
        fingerprint="",
        data_id=publication.id,
    )
