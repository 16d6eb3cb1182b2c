"""Compare the persons of releases, and check that their keys are stable."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from psycopg import sql

from dbanon.db import catalog
from dbanon.db.histories import memory
from dbanon.db.metadata import ledger
from dbanon.db.queries import equal_text, query, template
from dbanon.db.releases import beside, copies, relations
from dbanon.db.releases.publication import data_table
from dbanon.domain.release import CheckFailed, CheckReport, ReleaseKind
from dbanon.domain.text import command

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from dbanon.db.histories.memory import Memory
    from dbanon.db.releases.publication import Publication
    from dbanon.db.session import Session
    from dbanon.domain.release import Entry


_SHOWN = sql.Identifier("pg_temp", "history_shown")


def require_lasting_keys(session: Session, publication: Publication, known: Memory) -> None:
    """Raise CheckFailed if a release seems to have replaced its persons.

    It is compared with the relation's previous release, otherwise the newest of the series. If the
    source has less than half of its persons, and new persons number at least half, the keys were
    probably regenerated: each person would count twice, which hides the combined disclosure.
    """
    before = {n: name for n, name in known.relations.items() if n != publication.id}
    if not before:
        return
    own = [number for number, name in before.items() if name == publication.view]
    number = max(own or before)
    (fresh,) = session.one(query("standing.newcomers"), {"release": publication.id})
    if not fresh or 2 * fresh < _least(session, known, number):
        return
    found = shown = _count(session, known, number)
    if 2 * fresh >= shown:  # else nobody has to be looked up in the source
        memory.rows(session, known, number, _SHOWN)
        (counts,) = session.pg.execute(_present_in_source(publication, known))
        (found,) = counts
        memory.drop(session, _SHOWN)
    if 2 * found < shown:
        table = publication.info.name
        raise CheckFailed(
            f"of the {shown:,} persons whom release {number} shows, {found:,} are found in {table}"
            f" by {', '.join(known.person)}, and {fresh:,} come who were never published: if these"
            " are the same persons under other keys, comparing the releases may reveal them;"
            " nothing was published",
            CheckReport(publication.view, ()),
            hint="name a key or a subject that lasts; or start a series of its own: "
            + command("dbanon publish", table, options="--new-series --recipients-changed"),
        )


def _count(session: Session, known: Memory, number: int) -> int:
    """Count the persons of a release."""
    counted = template("overlays.count_shown", shown=known.shown(number))
    persons: int = session.one(counted)[0]
    return persons


def _least(session: Session, known: Memory, number: int) -> int:
    """Return a lower bound on the persons of a release, from the changed rows."""
    if known.several:
        return 0
    relation, changed = known.relations[number], memory.changes(session, known.table)
    own = [n for n, name in known.relations.items() if name == relation and n <= number]
    return changed.get(own[0], 0) - sum(changed.get(n, 0) for n in own[1:])


def _present_in_source(publication: Publication, known: Memory) -> sql.Composed:
    """Count published persons in the source, also those that the policy filters out."""
    columns = [publication.info.column(name) for name in known.person]
    person = [equal_text(column, sql.Identifier("s", column.name)) for column in columns]
    return template(
        "histories.present_in_source",
        person=template("persons.person_hash", person=sql.SQL(", ").join(person)),
        source=publication.reading,
        key=sql.Literal(known.key),
    )


class Apart(NamedTuple):
    """The number of persons by which a release differs from an earlier one of its series.

    came: only in the new release; left: only in the earlier one; is_known: membership is stored.
    """

    number: int
    came: int = 0
    left: int = 0
    is_known: bool = True


def same_values(
    session: Session, publication: Publication, columns: Mapping[int, Collection[str]]
) -> set[int]:
    """Return the served copies with the same values and frequencies as a release.

    columns: to compare, by release number. The release has membership but no copy yet.
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
    """Compare a served copy and its companion relations with the values of a release."""
    dealt = [name for name in names if name == beside.bucket_column(publication)]
    of_rows = [name for name in names if name not in dealt]
    served, release = relations.served_rows(publication), data_table("release", entry.data_id)
    shown = {column.name for column in catalog.describe(session, entry.relation).columns}
    if not shown.issuperset(of_rows) or not _is_same(session, of_rows, served, release):
        return False
    if not dealt:
        return True
    former = beside.values_beside_buckets(session, publication, entry.relation)
    return former is not None and _is_same(
        session, dealt, beside.bucket_values(publication), former
    )


def _is_same(
    session: Session,
    names: Sequence[str],
    served: sql.Composable,
    release: sql.Composable,
) -> bool:
    """Return True if two relations have equal values in some columns, with equal frequencies."""
    values = [sql.SQL("format('%L', s.{})").format(sql.Identifier(name)) for name in names]
    slots = {"values": sql.SQL(", ").join(values), "served": served, "release": release}
    row = session.pg.execute(template("releases.shows_same_values", **slots)).fetchone()
    return row == (True,)


def persons_apart(
    session: Session, publication: Publication, numbers: Collection[int]
) -> list[Apart]:
    """Compare the persons of a stored release with those of earlier ones of its series."""
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
