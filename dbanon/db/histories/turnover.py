"""Ask who of the source was published, and whether persons can still be told by their keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from psycopg import sql

from dbanon.db.histories import memory
from dbanon.db.queries import equal_text, query, template
from dbanon.domain.checks import CheckFailed, CheckReport
from dbanon.domain.text import command

if TYPE_CHECKING:
    from dbanon.db.histories.memory import Memory
    from dbanon.db.releases.publication import Publication
    from dbanon.db.session import Session

_SHOWN = sql.Identifier("pg_temp", "history_shown")


def require_lasting_keys(session: Session, publication: Publication, known: Memory) -> None:
    """Raise CheckFailed when a release shows others instead of those who were published.

    known: what ``memory.remember`` returned of the release. It is held against its relation's
    release before, else against the newest of the series. When less than half of the persons of
    that one are in the source, and at least half as many come who were never published, their keys
    were most likely made anew. Each person would count as two, and what comparing the releases
    reveals would be hidden.
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
    """Count everybody whom a release showed."""
    counted = template("overlays.count_shown", shown=known.shown(number))
    persons: int = session.one(counted)[0]
    return persons


def _least(session: Session, known: Memory, number: int) -> int:
    """Return how many persons a release shows at least, by how many rows each one changed."""
    if known.several:
        return 0
    relation, changed = known.relations[number], memory.changes(session, known.table)
    own = [n for n, name in known.relations.items() if name == relation and n <= number]
    return changed.get(own[0], 0) - sum(changed.get(n, 0) for n in own[1:])


def _present_in_source(publication: Publication, known: Memory) -> sql.Composed:
    """Compose how many of those shown are in the source, whatever the policy leaves out of it."""
    columns = [publication.info.column(name) for name in known.person]
    person = [equal_text(column, sql.Identifier("s", column.name)) for column in columns]
    return template(
        "histories.present_in_source",
        person=template("persons.person_hash", person=sql.SQL(", ").join(person)),
        source=publication.reading,
        key=sql.Literal(known.key),
    )
