"""Previously published persons of a source: their groups and published values."""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from psycopg import sql

from dbanon.db.histories import memory
from dbanon.db.person_hashes import person_hash
from dbanon.db.queries import identifiers, named, query, template
from dbanon.db.session import at_once
from dbanon.db.transfer import write_table
from dbanon.domain.errors import DatabaseError
from dbanon.domain.text import command

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from dbanon.db.session import Session
    from dbanon.domain.table import TableName
    from dbanon.formats.column_values import Shown, Values

_READ = sql.Identifier("pg_temp", "history_read")
_PLACES = sql.Identifier("pg_temp", "history_places")
_CELLS = sql.Identifier("pg_temp", "history_cells")
_LATE = sql.Identifier("pg_temp", "history_late")
_OF_LATE = sql.Identifier("pg_temp", "history_of_late")
_LATE_CELLS = sql.Identifier("pg_temp", "history_late_cells")


@dataclass(frozen=True, eq=False, slots=True)
class Remembered:
    """The published history of the persons of a source, over all comparable releases.

    atom: (p,) int32, same number for persons always in the same classes; shown: (p,) int32 into
    ``values``. Both are negative for an unpublished person. is_whole: (a,) bool, the source has all
    persons of the atom; published: of how many persons each value was ever published, by column, if
    requested or if none of these persons was published.
    """

    atom: NDArray[np.int32]
    is_whole: NDArray[np.bool_]
    shown: NDArray[np.int32]
    values: Sequence[Shown]
    published: Mapping[str, Sequence[int]]


def recall(
    session: Session,
    table: TableName,
    persons: pa.Table,
    *,
    relation: TableName,
    counts: bool = False,
) -> Remembered | None:
    """Match persons with all releases of a table; None if no release is comparable.

    persons: their identifying columns, one row each; relation: its values precede those of other
    relations; counts: whether all published values are counted, too.
    """
    known = memory.recall(session, table, relation=relation)
    found, made = None, list[sql.Identifier]()
    if known.relations and known.person == tuple(persons.column_names):
        memory.cells(session, _CELLS)
        found = _placed(session, known, relation, persons, counts=counts)
        made = [_READ, _PLACES, _CELLS]
    memory.forget(session, *made)
    return found


def columns(session: Session, table: TableName) -> frozenset[str]:
    """Return the columns with row-level values in any release of a table."""
    found = session.pg.execute(query("atoms.columns"), named(table))
    return frozenset(row[0] for row in found)


def _placed(
    session: Session, known: memory.Memory, relation: TableName, persons: pa.Table, *, counts: bool
) -> Remembered:
    """Look up persons and their history by keyed hash."""
    person = write_persons(session, _READ, persons, beside={})
    slots = {"person": person, "read": _READ, "key": sql.Literal(known.key)}
    with at_once(session.pg):
        session.pg.execute(template("atoms.places", **slots))
        placed = session.pg.execute(query("atoms.placed"), {"first": known.first(relation)})
        numbered = session.pg.execute(query("atoms.values"), named(known.table))
    values = _numbered(numbered)
    rows, size = placed.fetchall(), len(persons)
    place, number, members, listed = zip(*rows, strict=True) if rows else ((), (), (), ())
    of_atom = np.array(number, np.int64)
    _, first, dense = np.unique(of_atom, return_index=True, return_inverse=True)
    texts, of_text = np.unique(np.array(listed, object).astype(str), return_inverse=True)
    atom, shown = np.full(size, -1, np.int32), np.full(size, -1, np.int32)
    where = np.array(place, np.int64)
    atom[where], shown[where] = dense, of_text
    return Remembered(
        atom=atom,
        is_whole=np.bincount(dense) == np.array(members, np.int64)[first],
        shown=shown,
        values=[_read(text, values, known.table) for text in texts.tolist()],
        published=published(session) if counts or not rows else {},
    )


def published(session: Session) -> dict[str, list[int]]:
    """Count the persons of whom each value was ever published, by column, from ENTRIES."""
    found: dict[str, list[int]] = {}
    for column, persons in session.pg.execute(query("atoms.published")):
        found.setdefault(column, []).append(persons)
    return found


def _read(text: str, values: Mapping[str, Values], table: TableName) -> Shown:
    rows = [part.split(",") for part in text.split(";")]
    if any(number not in values for row in rows for number in row):
        raise DatabaseError(
            f"values that were published of {table} are no longer remembered",
            hint=command("dbanon history", table),
        )
    return [[values[number] for number in row] for row in rows]


@dataclass(frozen=True, eq=False, slots=True)
class Elsewhere:
    """Persons published only in other relations, in atoms without deleted persons.

    places: (n,) of their rows; atom: (n,) from 0, as in ``Remembered``; shown: (n,) into
    ``values``; born: (n,) the first release of each.
    """

    places: NDArray[np.int64]
    atom: NDArray[np.int32]
    shown: NDArray[np.int32]
    values: Sequence[Shown]
    born: NDArray[np.int64]

    def take(self, rows: NDArray[np.int64]) -> Elsewhere:
        """Return some persons, all of each atom."""
        atom = np.unique(self.atom[rows], return_inverse=True)[1].astype(np.int32)
        places, shown, born = self.places[rows], self.shown[rows], self.born[rows]
        return Elsewhere(places, atom, shown, self.values, born)


def elsewhere(session: Session, known: memory.Memory, relation: TableName) -> Elsewhere | None:
    """Return the persons published only in other relations, if any, within ``comparing``."""
    first = known.first(relation)
    if len({*known.relations.values()}) == 1 or known.several:
        return None
    session.pg.execute(query("atoms.late"), {"relation": first})
    slots = {"entries": _OF_LATE, "among": memory.ENTRIES, "persons": _LATE}
    session.pg.execute(template("overlays.entries_of", condition=sql.SQL("true"), **slots))
    memory.cells(session, _LATE_CELLS, entries=_OF_LATE)
    found = session.pg.execute(query("atoms.elsewhere")).fetchall()
    memory.drop(session, _LATE, _OF_LATE, _LATE_CELLS)
    if not found:
        return None
    places, atom, listed, born = zip(*found, strict=True)
    texts, shown = np.unique(np.array(listed, object).astype(str), return_inverse=True)
    values = _numbered(session.pg.execute(query("atoms.values"), named(known.table)))
    return Elsewhere(
        np.array(places, np.int64),
        np.array(atom, np.int32),
        shown.astype(np.int32),
        [_read(text, values, known.table) for text in texts.tolist()],
        np.array(born, np.int64),
    )


def _numbered(rows: Iterable[Sequence[Any]]) -> dict[str, Values]:
    """Return the combination of sensitive values of each number."""
    return {str(n): json.loads(text, parse_float=Decimal) for n, text in rows}


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
