"""Who of a source is published already, who never was, and a copy that keeps what stays."""

from __future__ import annotations

import json
from collections import defaultdict
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
from dbanon.formats.values import combinations

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from dbanon.db.releases.publication import Publication
    from dbanon.db.session import Session
    from dbanon.db.transfer import SourceRows
    from dbanon.domain.release import Entry
    from dbanon.domain.table import TableInfo

_READ = sql.Identifier("pg_temp", "history_read")
_BEFORE = sql.Identifier("pg_temp", "history_before")
_CELLS = sql.Identifier("pg_temp", "history_cells")
_STANDING = sql.Identifier("pg_temp", "history_standing")


@dataclass(frozen=True, slots=True)
class Terms:
    """When a class goes, and when those who stay of it may be published in another one.

    leavers: how many rows of it have to be gone; k, required: what those who are gone have to be
    for the others to come back, so many, with so many values of each sensitive column. Without
    ``required`` nobody comes back; with it and ``patient``, no class goes before.
    """

    leavers: int
    k: int
    required: Mapping[str, int] | None
    patient: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class Standing:
    """How the rows of a source stand to what is published of them.

    pools: the places of those who may form classes, each pool by itself: first those who were never
    published, then those who stay of classes that go; withdrawn: the classes that go, by number;
    kept: rows that stay as they are published; withheld: rows that were published and are in no
    class now; deferred: rows that are published still though they are gone.
    """

    pools: tuple[NDArray[np.int64], ...]
    withdrawn: tuple[int, ...]
    kept: int
    withheld: int
    deferred: int


def stand(
    session: Session, release: Entry, rows: SourceRows, info: TableInfo, *, terms: Terms
) -> Standing | None:
    """Tell how rows stand to a release; None if its persons are not remembered by their keys."""
    keys, known = rows.keys, memory.recall(session, release.table, relation=release.relation)
    found = None
    if release.id in known.relations and known.person == tuple(keys.column_names):
        _read(session, keys)
        memory.state(session, known, release.id, _BEFORE)
        memory.cells(session, _CELLS)
        columns = [sql.Identifier("l", f"k{i}") for i in range(1, keys.num_columns + 1)]
        person = template("histories/person_hash", person=sql.SQL(", ").join(columns))
        slots = {"person": person, "read": _READ, "key": sql.Literal(known.key)}
        session.pg.execute(template("histories/standing", **slots))
        found = _counted(session, rows, info, terms)
        for table in (_READ, _BEFORE, _CELLS, _STANDING):
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


def _counted(session: Session, rows: SourceRows, info: TableInfo, terms: Terms) -> Standing:
    required = terms.required or {}
    asked = {"k": terms.k, "columns": list(required), "required": list(required.values())}
    withdrawn, parted = [], []
    for class_, gone, members, is_safe in session.pg.execute(query("standing/leavers"), asked):
        may_return = is_safe and terms.required is not None
        if may_return:
            parted.append(class_)
        waits = terms.patient and terms.required is not None and gone < members
        if may_return or not (waits or gone < terms.leavers):
            withdrawn.append(class_)
    fresh = [row[0] for row in session.pg.execute(query("standing/fresh"))]
    pools = [np.array(fresh, np.int64), *_left_behind(session, rows, info, parted)]
    row = session.pg.execute(query("standing/count_standing"), {"withdrawn": withdrawn}).fetchone()
    assert row is not None  # noqa: S101 - an aggregate always has a row
    return Standing(tuple(pools), tuple(withdrawn), *row)


def _left_behind(
    session: Session, rows: SourceRows, info: TableInfo, classes: Sequence[int]
) -> list[NDArray[np.int64]]:
    """Return the places of those who stay of each class with the values that were published.

    Whose values changed is withheld: to be published with others would tell them apart, and those
    of before need not differ among them.
    """
    if not classes:
        return []
    codes, objects = combinations.number(rows.columns, info)
    values = [json.loads(text) for text in objects]
    pools: dict[int, list[int]] = defaultdict(list)
    found = session.pg.execute(query("standing/left_behind"), {"classes": list(classes)})
    for place, class_, value in found:
        if values[codes[place]] == value:
            pools[class_].append(place)
    return [np.array(places, np.int64) for places in pools.values()]


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
    key = memory.key_of(session, table, publication.view)
    for statement in immutability.open_statements(former.release):
        session.pg.execute(statement)
    session.pg.execute(
        template(
            "histories/withdraw",
            **memory.of_copy(former),
            key=sql.Literal(key),
            withdrawn=sql.Literal(list(publication.withdrawn or ())),
        )
    )
    for statement in relations.copy_statements(former, "releases/refill_release"):
        session.pg.execute(statement)
    for statement in immutability.close_statements(former.release):
        session.pg.execute(statement)
    return former
