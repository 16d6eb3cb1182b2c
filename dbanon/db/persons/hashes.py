"""Compose whom a release shows, each person by keyed hash."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from psycopg import sql

from dbanon.db.queries import equal_text, template
from dbanon.domain.errors import DatabaseError

if TYPE_CHECKING:
    from uuid import UUID

    from dbanon.db.releases.publication import Publication
    from dbanon.db.session import Session

HASHED = sql.Identifier("pg_temp", "history_hashed")


class Members(NamedTuple):
    """What to read the rows ``r`` of a release from, and the hash of the person of each.

    tables: those that nobody needs once it was read.
    """

    rows: sql.Composable
    person: sql.Composable
    tables: tuple[sql.Identifier, ...] = ()


def members(publication: Publication, key: UUID | None) -> Members:
    """Compose the members of a release by a key: as they were hashed ahead, if they were by it."""
    rows, subject = publication.rows, publication.policy.subject
    if key is not None and publication.hashed == key:
        joined = sql.SQL("{} AS r JOIN {} AS h ON h.place = r.place").format(rows, HASHED)
        return Members(joined, sql.Identifier("h", "person"), (HASHED,))
    if subject is not None:
        of_subject = equal_text(publication.info.column(subject), sql.Identifier("s", subject))
        source = publication.reading
        joined = sql.SQL("{} AS s JOIN {} AS r ON {}").format(source, rows, publication.join)
        return Members(joined, person_hash(of_subject))
    columns = zip(publication.key_columns, publication.info.primary_key, strict=True)
    parts = [
        equal_text(publication.info.column(column), sql.Identifier("r", name))
        for name, column in columns
    ]
    return Members(sql.SQL("{} AS r").format(rows), person_hash(sql.SQL(", ").join(parts)))


def require_all(session: Session, publication: Publication, noted: int) -> None:
    """Raise DatabaseError unless as many rows are noted as a release shows."""
    count = sql.SQL("SELECT count(*) FROM {}").format(publication.rows)
    if session.pg.execute(count).fetchone() != (noted,):
        raise DatabaseError(
            f"not everybody whom {publication.view} shows would be remembered; nothing was"
            " published",
            hint="run the command again",
        )


def person_hash(texts: sql.Composable) -> sql.Composed:
    """Compose the hash of a person by the key ``k``, from the texts that tell it."""
    return template("persons.person_hash", person=texts)
