"""Hash persons before it is known which of them are shown, while the database has nothing to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from psycopg import sql

from dbanon.db.persons.hashes import HASHED, person_hash
from dbanon.db.queries import identifiers, template
from dbanon.db.transfer import ROWS_AT_ONCE, write

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from dbanon.db.session import Session

_READ = sql.Identifier("pg_temp", "history_keys")


def hash_persons(session: Session, persons: pa.Table, key: UUID) -> None:
    """Write the keyed hash of every person who was read, by the place of the row, to HASHED.

    persons: the columns that tell the person of each row.
    """
    person = write_persons(session, _READ, persons, beside={})
    slots = {"hashed": HASHED, "person": person, "read": _READ, "key": sql.Literal(key)}
    session.pg.execute(template("persons.hashed", **slots))
    session.pg.execute(sql.SQL("DROP TABLE {}").format(_READ))


def write_persons(
    session: Session, relation: sql.Identifier, persons: pa.Table, *, beside: Mapping[str, pa.Array]
) -> sql.Composed:
    """Write persons to a temporary table, each with its place; return the hash of a row ``l``.

    beside: what else to write of each, whole numbers by name.
    """
    names = [f"k{i}" for i in range(1, persons.num_columns + 1)]
    texts = [pc.cast(column, pa.string()) for column in persons.columns]
    declared = [sql.SQL("{} integer NOT NULL").format(sql.Identifier(name)) for name in beside]
    declared += [sql.SQL("{} text").format(sql.Identifier(name)) for name in names]
    columns = sql.SQL(", ").join(declared)
    session.pg.execute(template("histories.create_read", read=relation, columns=columns))
    places = pa.array(np.arange(persons.num_rows, dtype=np.int32))
    table = pa.table([places, *beside.values(), *texts], ["place", *beside, *names])
    parts = (table.slice(i, ROWS_AT_ONCE) for i in range(0, len(table), ROWS_AT_ONCE))
    write(session, relation, parts, columns=table.column_names)
    return person_hash(identifiers(names, of="l"))
