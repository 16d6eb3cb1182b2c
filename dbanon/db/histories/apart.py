"""How far a release differs from earlier ones of its series: in persons, and in masked values."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from psycopg import sql

from dbanon.db import catalog
from dbanon.db.histories import memory
from dbanon.db.metadata import ledger
from dbanon.db.queries import template
from dbanon.db.releases import copies, relations
from dbanon.db.releases.beside import buckets
from dbanon.db.releases.publication import data_table
from dbanon.domain.release import ReleaseKind

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from dbanon.db.releases.publication import Publication
    from dbanon.db.session import Session
    from dbanon.domain.release import Entry


class Apart(NamedTuple):
    """By how many persons a release differs from an earlier one of its series.

    came: those the earlier one does not show; left: those it alone shows; is_known: whether its
    persons are remembered.
    """

    number: int
    came: int = 0
    left: int = 0
    is_known: bool = True


def same_values(
    session: Session, publication: Publication, columns: Mapping[int, Collection[str]]
) -> set[int]:
    """Return the served copies that show the values of some columns as a release will, as often.

    columns: which are compared, by the number of the release. The membership of the release is
    written, and its copy is not yet made.
    """
    found = set()
    for entry in ledger.served_entries(session, table=publication.info.name):
        names = columns.get(entry.id)
        if not names or entry.kind is not ReleaseKind.TABLE or not copies.is_closed(session, entry):
            continue
        if _shows_same(session, publication, entry, names):
            found.add(entry.id)
    return found


def _shows_same(
    session: Session, publication: Publication, entry: Entry, names: Collection[str]
) -> bool:
    """Whether a served copy, and what is beside it, shows the values that a release will."""
    beside = [name for name in names if name == buckets.column(publication)]
    of_rows = [name for name in names if name not in beside]
    served, release = relations.served_rows(publication), data_table("release", entry.data_id)
    shown = {column.name for column in catalog.describe(session, entry.relation).columns}
    if not shown.issuperset(of_rows) or not _is_same(session, of_rows, served, release):
        return False
    if not beside:
        return True
    former = buckets.values_beside(session, publication, entry.relation)
    return former is not None and _is_same(session, beside, buckets.values(publication), former)


def _is_same(
    session: Session,
    names: Sequence[str],
    served: sql.Composable,
    release: sql.Composable,
) -> bool:
    """Whether two relations have the same values in some columns, each as often."""
    values = [sql.SQL("format('%L', s.{})").format(sql.Identifier(name)) for name in names]
    slots = {"values": sql.SQL(", ").join(values), "served": served, "release": release}
    row = session.pg.execute(template("releases.shows_same_values", **slots)).fetchone()
    return row == (True,)


def persons_apart(
    session: Session, publication: Publication, numbers: Collection[int]
) -> list[Apart]:
    """Return how a remembered release differs from some of the earlier ones of its series."""
    table, view = publication.info.name, publication.view
    session.allow_memory()
    known = memory.recall(session, table, relation=view)
    series, live = memory.series(session, table), ledger.live_releases(session, table)
    own = [
        number
        for number in sorted(numbers)
        if number != publication.id
        and number not in live
        and memory.series_of(series, number, known.series) == known.series
    ]
    compared = [number for number in own if number in known.relations]
    found = [Apart(number, is_known=False) for number in own if number not in known.relations]
    if compared:
        first = known.firsts()
        counted = template(
            "histories.persons_apart",
            new=known.shown(publication.id),
            former=memory.shown_by_each(),
            releases=memory.listed([(n, first[n]) for n in compared], "shown_id", "relation"),
        )
        found += [Apart(*counts) for counts in session.pg.execute(counted)]
    memory.forget(session)
    return sorted(found)
