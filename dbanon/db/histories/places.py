"""Persons that were read, each in the place that the program knows, by their keyed hashes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from psycopg import sql

from dbanon.db.queries import template
from dbanon.db.transfer import ROWS_AT_ONCE, write

if TYPE_CHECKING:
    from dbanon.db.session import Session

READ = sql.Identifier("pg_temp", "history_read")


def read_in(session: Session, persons: pa.Table) -> sql.Composed:
    """Write the columns that tell persons as texts, each with its place, into ``READ``.

    Returns the keyed hash of a person of it, whose alias is ``l`` beside that of the key, ``k``.
    """
    names = [f"k{i}" for i in range(1, persons.num_columns + 1)]
    declared = [sql.SQL("{} text").format(sql.Identifier(name)) for name in names]
    columns = sql.SQL(", ").join(declared)
    session.pg.execute(template("histories/create_read", read=READ, columns=columns))
    texts = [pc.cast(column, pa.string()) for column in persons.columns]
    places = pa.array(np.arange(len(persons), dtype=np.int32))
    table = pa.table([places, *texts], ["place", *names])
    parts = (table.slice(i, ROWS_AT_ONCE) for i in range(0, len(table), ROWS_AT_ONCE))
    write(session, READ, parts, columns=table.column_names)
    told = sql.SQL(", ").join(sql.Identifier("l", name) for name in names)
    return template("histories/person_hash", person=told)
