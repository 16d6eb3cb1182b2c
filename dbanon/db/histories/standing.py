"""Who of a source is published already, who never was, and a copy that keeps what stays."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from psycopg import sql

from dbanon.db.histories import memory
from dbanon.db.queries import query, template
from dbanon.db.releases import copies, immutability, relations
from dbanon.db.transfer import ROWS_AT_ONCE, write
from dbanon.domain.errors import DatabaseError
from dbanon.domain.text import command

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.db.releases.publication import Publication
    from dbanon.db.session import Session
    from dbanon.domain.release import Entry

_READ = sql.Identifier("pg_temp", "history_read")
_BEFORE = sql.Identifier("pg_temp", "history_before")
_STANDING = sql.Identifier("pg_temp", "history_standing")


@dataclass(frozen=True, eq=False, slots=True)
class Standing:
    """How the rows of a source stand to what is published of them.

    fresh: (m,) the places of those who were never published; withdrawn: the classes of whom is
    gone, by number; kept: rows that stay as they are published; withheld: rows that were published
    and are not any more, since a class goes as a whole; deferred: rows that are published still
    though they are gone, as too few of their class are.
    """

    fresh: NDArray[np.int64]
    withdrawn: tuple[int, ...]
    kept: int
    withheld: int
    deferred: int


def stand(session: Session, release: Entry, keys: pa.Table, *, leavers: int) -> Standing | None:
    """Tell how rows, by their keys, stand to a release; None if it is not remembered by these.

    leavers: how many rows of a class have to be gone for it to be withdrawn.
    """
    known = memory.recall(session, release.table)
    found = None
    if release.id in known.relations and known.person == tuple(keys.column_names):
        _read(session, keys)
        memory.state(session, known, release.id, _BEFORE)
        columns = [sql.Identifier("l", f"k{i}") for i in range(1, keys.num_columns + 1)]
        person = template("histories/person_hash", person=sql.SQL(", ").join(columns))
        slots = {"person": person, "read": _READ, "key": sql.Literal(known.key)}
        session.pg.execute(template("histories/standing", **slots))
        found = _counted(session, leavers)
        for table in (_READ, _BEFORE, _STANDING):
            session.pg.execute(sql.SQL("DROP TABLE {}").format(table))
    memory.forget(session)
    return found


def _read(session: Session, keys: pa.Table) -> None:
    """Write the keys as texts, each with its place."""
    names = [f"k{i}" for i in range(1, keys.num_columns + 1)]
    declared = [sql.SQL("{} text").format(sql.Identifier(name)) for name in names]
    columns = sql.SQL(", ").join(declared)
    session.pg.execute(template("histories/create_read", read=_READ, columns=columns))
    texts = [pc.cast(column, pa.string()) for column in keys.columns]
    table = pa.table([pa.array(np.arange(len(keys), dtype=np.int32)), *texts], ["place", *names])
    parts = (table.slice(i, ROWS_AT_ONCE) for i in range(0, len(table), ROWS_AT_ONCE))
    write(session, _READ, parts, columns=table.column_names)


def _counted(session: Session, leavers: int) -> Standing:
    gone = session.pg.execute(query("standing/withdrawn"), {"leavers": leavers})
    withdrawn = [row[0] for row in gone]
    fresh = [row[0] for row in session.pg.execute(query("standing/fresh"))]
    asked = {"withdrawn": withdrawn}
    row = session.pg.execute(query("standing/count_standing"), asked).fetchone()
    assert row is not None  # noqa: S101 - an aggregate always has a row
    return Standing(np.array(fresh, np.int64), tuple(withdrawn), *row)


def extend(session: Session, publication: Publication, previous: Entry | None) -> Publication:
    """Take classes out of the former copy and add the new ones; every other row stays untouched.

    Returns the publication with the number of the copy. Raises DatabaseError when the former copy
    is not as publishing left it, or has other columns.
    """
    table = publication.info.name
    if previous is None or not copies.is_sealed(session, publication, previous):
        raise DatabaseError(
            f"{publication.view} is not as it was published, and cannot be extended",
            hint=command("dbanon publish", table),
        )
    former = replace(publication, former=previous.data_id)
    key = memory.key_of(session, table)
    for statement in immutability.open_statements(former.release):
        session.pg.execute(statement)
    session.pg.execute(
        template(
            "histories/withdraw",
            **{"class": memory.number_in_copy(former)},
            release=former.release,
            key=sql.Literal(key),
            withdrawn=sql.Literal(list(publication.withdrawn or ())),
        )
    )
    for statement in relations.copy_statements(former, "releases/refill_release"):
        session.pg.execute(statement)
    for statement in immutability.close_statements(former.release):
        session.pg.execute(statement)
    return former
