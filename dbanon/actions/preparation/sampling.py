"""Draw the persons of a sample: by a keyed hash, so that the next release draws the same ones."""

from __future__ import annotations

import hmac
import json
from dataclasses import replace
from typing import TYPE_CHECKING

from dbanon.formats.values.coded import one_chunk, with_own_values

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

    from dbanon.db.session import Session
    from dbanon.db.transfer import SourceRows
    from dbanon.domain.policy import Policy
    from dbanon.domain.table import TableName

_NUMBER = 8  # bytes of a hash that are compared with the fraction


def draw(session: Session, rows: SourceRows, policy: Policy) -> tuple[SourceRows, int]:
    """Return the rows of the persons who are drawn, and how many others there were.

    rows: with the subject, if the policy has one; without one each row is a person. Raises
    DatabaseError when the secret key is gone by which persons are drawn.
    """
    import pyarrow as pa

    from dbanon.db.metadata import store

    if policy.sample is None:
        return rows, 0
    key = store.sampling_key(session)
    if policy.subject is None:
        persons = zip(*(column.to_pylist() for column in rows.keys.columns), strict=True)
        drawn = pa.array(_are_drawn(persons, policy.sample, key=key, of=policy.table))
    else:
        drawn = _with_a_subject(rows.columns.column(policy.subject), policy.sample, key=key)
    kept = None if rows.kept is None else _filtered(rows.kept, drawn)
    found = replace(
        rows,
        keys=rows.keys.filter(drawn),
        columns=_filtered(rows.columns, drawn),
        kept=kept,
    )
    return found, len(rows.keys) - len(found.keys)


def _with_a_subject(subjects: pa.ChunkedArray, fraction: float, *, key: bytes) -> pa.Array:
    """Return of each row whether its person is drawn; a row of nobody stays, to be refused."""
    import pyarrow as pa
    from pyarrow import compute

    column = one_chunk(subjects)
    persons = ((text,) for text in column.dictionary.to_pylist())
    drawn = pa.array(_are_drawn(persons, fraction, key=key, of=None), pa.bool_())
    return compute.fill_null(drawn.take(column.indices), True)  # noqa: FBT003 - a fill value


def _are_drawn(
    persons: Iterable[tuple[object, ...]], fraction: float, *, key: bytes, of: TableName | None
) -> list[bool]:
    """Return of each person, or each row of a table, whether it is drawn.

    A larger sample holds every smaller one. Persons are drawn alike wherever their subject is the
    same; rows of two tables have nothing to do with each other.
    """
    threshold = int(fraction * 2 ** (8 * _NUMBER))
    prefix = [] if of is None else [str(of)]
    drawn = []
    for person in persons:
        message = json.dumps([*prefix, *map(str, person)]).encode()
        number = hmac.digest(key, message, "sha256")[:_NUMBER]
        drawn.append(int.from_bytes(number, "big") < threshold)
    return drawn


def _filtered(table: pa.Table, drawn: pa.Array) -> pa.Table:
    """Return rows whose dictionaries hold no value of the others."""
    return with_own_values(table.filter(drawn))
