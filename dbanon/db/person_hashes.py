"""Keyed hashes of persons, computed before a release or as its rows are read."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from psycopg import sql

from dbanon.db.queries import equal_text, identifiers, template
from dbanon.db.transfer import write_table
from dbanon.domain.errors import DatabaseError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    import psycopg

    from dbanon.db.releases.publication import Publication
    from dbanon.db.session import Session

_READ = sql.Identifier("pg_temp", "history_keys")
_HASHED = sql.Identifier("pg_temp", "history_hashed")


class Members(NamedTuple):
    """The rows ``r`` of a release, the hash of each person, and temporary tables to drop later."""

    rows: sql.Composable
    person: sql.Composable
    tables: tuple[sql.Identifier, ...] = ()


def members(publication: Publication, key: UUID | None) -> Members:
    """Compose the members of a release; uses existing hashes if they have the same key."""
    rows, subject = publication.rows, publication.policy.subject
    if key is not None and publication.hashed == key:
        joined = sql.SQL("{} AS r JOIN {} AS h ON h.place = r.place").format(rows, _HASHED)
        return Members(joined, sql.Identifier("h", "person"), (_HASHED,))
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


def require_all(publication: Publication, noted: int, shown: psycopg.Cursor) -> None:
    """Raise DatabaseError unless the number of recorded rows equals that of published rows."""
    if shown.fetchone() != (noted,):
        raise DatabaseError(
            f"not everybody whom {publication.view} shows would be remembered; nothing was"
            " published",
            hint="run the command again",
        )


def person_hash(texts: sql.Composable) -> sql.Composed:
    """Compose the hash of a person with key ``k``, from the texts that identify the person."""
    return template("persons.person_hash", person=texts)


def hash_persons(session: Session, persons: pa.Table, key: UUID) -> None:
    """Write the keyed hash of each row's person (its identifying columns) to _HASHED, by place."""
    person = write_persons(session, _READ, persons, beside={})
    slots = {"hashed": _HASHED, "person": person, "read": _READ, "key": sql.Literal(key)}
    session.pg.execute(template("persons.hashed", **slots))
    session.pg.execute(sql.SQL("DROP TABLE {}").format(_READ))


def write_persons(
    session: Session, relation: sql.Identifier, persons: pa.Table, *, beside: Mapping[str, pa.Array]
) -> sql.Composed:
    """Write persons and the integers ``beside`` to a temporary table; returns a row's hash."""
    names = [f"k{i}" for i in range(1, persons.num_columns + 1)]
    texts = [pc.cast(column, pa.string()) for column in persons.columns]
    declared = [sql.SQL("{} integer NOT NULL").format(sql.Identifier(name)) for name in beside]
    declared += [sql.SQL("{} text").format(sql.Identifier(name)) for name in names]
    columns = sql.SQL(", ").join(declared)
    session.pg.execute(template("histories.create_read", read=relation, columns=columns))
    places = pa.array(np.arange(persons.num_rows, dtype=np.int32))
    columns_named = ["place", *beside, *names]
    write_table(session, relation, pa.table([places, *beside.values(), *texts], columns_named))
    return person_hash(identifiers(names, of="l"))
