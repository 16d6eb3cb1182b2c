"""Secret numbers of persons and rows, and the sample; the next release draws the same again.

It stands alone so that a test can require that no repeatable chance is used here.
"""

from __future__ import annotations

import hmac
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from dbanon.domain.chance import keyed
from dbanon.formats.values.coded import codes_of, one_chunk, with_own_values

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from dbanon.db.session import Session
    from dbanon.db.transfer import SourceRows
    from dbanon.domain.policy import Policy
    from dbanon.domain.table import TableName

_NUMBER = 8  # bytes of a hash that are compared with the fraction
OF_A_DEAL = 3  # numbers of a person, as ``dbanon.anonymization.buckets.deal`` needs


@dataclass(frozen=True, eq=False, slots=True)
class Persons:
    """The person of each row, (n,), and each person as JSON, of which -1 is the last."""

    number: NDArray[np.int64]
    spelled: Sequence[str]


def persons_of(rows: SourceRows, policy: Policy) -> Persons:
    """Return the persons of rows: by subject, or else by the key of each row."""
    if policy.subject is None:
        spelled = _spelled(rows.keys)
        return Persons(np.arange(len(spelled)), spelled)
    tables = [table for table in (rows.columns, rows.kept, rows.keys) if table is not None]
    found = next(t.column(policy.subject) for t in tables if policy.subject in t.column_names)
    column = one_chunk(found if pa.types.is_dictionary(found.type) else found.dictionary_encode())
    spelled = [json.dumps([str(value)]) for value in column.dictionary.to_pylist()]
    return Persons(codes_of(column).astype(np.int64), [*spelled, "[]"])


def draws(
    session: Session, rows: SourceRows, policy: Policy, subjects: NDArray[np.int32] | None
) -> NDArray[np.uint64] | None:
    """Return secret numbers of each row, (n, c), for dealing persons and choosing rows.

    subjects: (n,) the person of each row, if some have several. Numbers depend on the person or the
    key of the row alone, so other persons do not change them. Rows of persons with one row have
    zeros where rows are chosen. None if the policy needs no numbers. Raises DatabaseError if the
    secret key is missing.
    """
    from dbanon.db.metadata import store

    of_table = [] if policy.subject is not None else [str(policy.table)]
    if policy.anatomy:
        persons = persons_of(rows, policy)
        key = store.secret_for(session, "anatomy")
        texts = (json.dumps([*of_table, text]) for text in persons.spelled)
        return keyed(texts, OF_A_DEAL, key=key)[persons.number]
    if policy.rows_per_subject is None or subjects is None:
        return None
    several = np.flatnonzero(np.bincount(subjects)[subjects] > 1)
    found = np.zeros((len(subjects), 1), np.uint64)
    key = store.secret_for(session, "rows of a person")
    texts = (json.dumps([str(policy.table), text]) for text in _spelled(rows.keys.take(several)))
    found[several] = keyed(texts, 1, key=key)
    return found


def _spelled(keys: pa.Table) -> list[str]:
    found = zip(*(column.to_pylist() for column in keys.columns), strict=True)
    return [json.dumps([*map(str, key)]) for key in found]


def draw(session: Session, rows: SourceRows, policy: Policy) -> tuple[SourceRows, int]:
    """Return the rows of the sampled persons, and the number of other rows.

    rows: with the subject, if the policy has one; otherwise each row is a person. Raises
    DatabaseError if the secret key of the sample is missing.
    """
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
    """Return a mask of the rows of sampled persons, and of rows without a person, refused later."""
    from pyarrow import compute

    column = one_chunk(subjects)
    persons = ((text,) for text in column.dictionary.to_pylist())
    drawn = pa.array(_are_drawn(persons, fraction, key=key, of=None), pa.bool_())
    return compute.fill_null(drawn.take(column.indices), True)  # noqa: FBT003 - a fill value


def _are_drawn(
    persons: Iterable[tuple[object, ...]], fraction: float, *, key: bytes, of: TableName | None
) -> list[bool]:
    """Return a mask of the sampled persons, or rows of a table.

    A larger sample contains every smaller one. The same subject is sampled alike in all tables;
    rows of two tables are independent.
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
    """Return rows whose dictionaries hold only their own values."""
    return with_own_values(table.filter(drawn))
