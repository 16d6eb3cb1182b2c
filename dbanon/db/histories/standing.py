"""Who of a source is published already, and who never was."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from psycopg import sql

from dbanon.db.histories import atoms, leavers, memory
from dbanon.db.person_hashes import write_persons
from dbanon.db.proofs import keys
from dbanon.db.queries import identifiers, query, template
from dbanon.db.session import at_once
from dbanon.db.transfer import write_codes
from dbanon.domain.policy import Role
from dbanon.domain.release import Growth
from dbanon.formats.values import coded

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import timedelta

    from numpy.typing import NDArray

    from dbanon.db.histories.atoms import Elsewhere
    from dbanon.db.histories.memory import Memory
    from dbanon.db.releases.publication import Publication
    from dbanon.db.session import Session
    from dbanon.db.transfer import SourceRows

_READ = sql.Identifier("pg_temp", "history_read")
_CODES = sql.Identifier("pg_temp", "history_codes")
_SOURCE = sql.Identifier("pg_temp", "history_source")
_STANDING = sql.Identifier("pg_temp", "history_standing")
_MISSED = sql.Identifier("pg_temp", "history_missed")
_DEPARTED = sql.Identifier("pg_temp", "history_departed")


@dataclass(frozen=True, slots=True)
class Terms:
    """When a class is withdrawn: by how many of it are gone, and for how long.

    share: of its persons who are gone, where fewer than ``k`` stay; deadline: since when anybody of
    it may be gone at most.
    """

    share: float
    k: int
    deadline: timedelta | None = None


@dataclass(frozen=True, eq=False, slots=True)
class Standing:
    """How the rows of a source stand to what is published of them.

    fresh: the places of those who were never published; withdrawn: the classes that go, by number;
    growth: the rows that stay and go; published: how often each value of a sensitive column is
    published, of so many persons; failed: how many new persons were in the last pool, if that did
    not meet the models; elsewhere: those whom only other relations ever showed.
    """

    fresh: NDArray[np.int64]
    withdrawn: tuple[int, ...]
    growth: Growth
    published: Mapping[str, Sequence[int]]
    persons: int
    failed: int
    elsewhere: Elsewhere | None = None


def stand(
    session: Session,
    publication: Publication,
    rows: SourceRows,
    *,
    terms: Terms,
    persons: pa.Table | None = None,
) -> Standing:
    """Return how rows stand to a publication that is served.

    persons: the column that tells the person of each row, where it is not the key.
    Whom the next one shows no more is in the table ``history_departed`` until the transaction ends.
    What is remembered, and whom the publication shows, stays unpacked for whoever remembers it.

    Raises PolicyError when two rows have one key.
    """
    with standing(session, publication, rows, rows.keys if persons is None else persons) as known:
        if persons is None:
            columns = identifiers(publication.key_columns, of="r")
            keys.require_key(session, publication, _READ, columns)
        found = _counted(session, publication, terms)
        if persons is None:
            others = atoms.elsewhere(session, known, publication.view)
            found = replace(found, elsewhere=others)
        else:
            growth = _of_rows(session, len(rows.keys), found)
            found = replace(found, growth=growth)
        memory.drop(session, _MISSED)
    return found


def _of_rows(session: Session, size: int, found: Standing) -> Growth:
    """Return what becomes of rows whose persons may have got or lost some; size: of all rows."""
    growth, fresh = count_rows(session, _DEPARTED)
    withheld = size - growth.kept - growth.later - fresh
    former = found.growth
    return replace(
        growth,
        withdrawn=former.withdrawn,
        withheld=withheld,
        overdue=former.overdue,
        due=former.due,
    )


def count_rows(session: Session, departed: sql.Identifier) -> tuple[Growth, int]:
    """Count the rows that stay and go, within ``standing``, and those of whom none were published.

    departed: whom the next release shows no more.
    """
    counted = template("standing.count_standing_of_members", departed=departed)
    *rows, of_nobody = session.one(counted)
    names = ("kept", "deferred", "left", "changed", "later")
    return Growth(**dict(zip(names, rows, strict=True))), of_nobody


@contextmanager
def standing(
    session: Session, publication: Publication, rows: SourceRows, persons: pa.Table
) -> Iterator[Memory]:
    """Hold rows against a publication that is served during the block; give what is remembered.

    persons: the columns that tell the person of each row.
    """
    known = memory.unpack_shown(session, publication)
    person = _read(session, publication, rows, persons)
    table = publication.info.name
    slots = {
        "person": person,
        "read": _READ,
        "codes": _CODES,
        "key": sql.Literal(known.key),
        "table_schema": sql.Literal(table.schema),
        "table_name": sql.Literal(table.name),
    }
    one_row = publication.policy.subject is None
    with at_once(session.pg):
        session.pg.execute(template("histories.source", **slots))
        session.pg.execute(sql.SQL("ANALYZE {} (person)").format(_SOURCE))
        session.pg.execute(query("standing.differing" if one_row else "standing.differing_persons"))
    yield known
    memory.drop(session, _READ, _CODES, _SOURCE, _STANDING)


def _read(
    session: Session, publication: Publication, rows: SourceRows, persons: pa.Table
) -> sql.Composable:
    """Write persons and values, each with its place; return the hash of a row's person."""
    codes, objects = coded.number(rows.columns, publication.info)
    person = write_persons(session, _READ, persons, beside={"code": pa.array(codes)})
    write_codes(session, _CODES, objects)
    return person


def _counted(session: Session, publication: Publication, terms: Terms) -> Standing:
    leavers.find(session, publication.view, deadline=terms.deadline)
    session.pg.execute(query("standing.departed"), {"share": terms.share, "k": terms.k})
    gone = withdrawn(session, _DEPARTED)
    fresh = [row[0] for row in session.pg.execute(query("standing.fresh"))]
    counts = session.one(query("standing.count_standing"), {"fresh": len(fresh)})
    leavers.keep(session, publication.view)
    lingering = leavers.count(session, publication.view, deadline=terms.deadline)
    names = ("kept", "withheld", "deferred", "left", "changed", "overdue")
    growth = Growth(withdrawn=len(gone), due=lingering.due, **dict(zip(names, counts, strict=True)))
    shown = published_values(session, publication)
    return Standing(np.array(fresh, np.int64), gone, growth, *shown, lingering.failed)


def withdrawn(session: Session, departed: sql.Identifier) -> tuple[int, ...]:
    """Return the classes of which the next release shows nobody, within ``standing``."""
    found = session.pg.execute(template("standing.withdrawn", departed=departed))
    return tuple(row[0] for row in found)


def published_values(
    session: Session, publication: Publication
) -> tuple[dict[str, list[int]], int]:
    """Return how often each sensitive value is published, and of how many persons.

    Within ``standing``.
    """
    columns = [rule.column for rule in publication.policy.with_role(Role.SENSITIVE)]
    found: dict[str, list[int]] = {name: [] for name in columns}
    persons = 0
    for name, rows in session.pg.execute(query("standing.published_values"), {"columns": columns}):
        if name is None:
            persons = rows
        else:
            found[name].append(rows)
    return found, persons
