"""The secret numbers of persons and rows, which the next release draws again."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from dbanon.domain.chance import keyed
from dbanon.formats.values.coded import codes_of, one_chunk

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from dbanon.db.session import Session
    from dbanon.db.transfer import SourceRows
    from dbanon.domain.policy import Policy

OF_A_DEAL = 3  # numbers of a person, as ``dbanon.anonymization.algorithms.anatomy.deal`` needs


@dataclass(frozen=True, eq=False, slots=True)
class Persons:
    """The person of each row, (n,), and each person as JSON, in which -1 is the last."""

    number: NDArray[np.int64]
    spelled: Sequence[str]


def persons_of(rows: SourceRows, policy: Policy) -> Persons:
    """Return the persons of rows: those of the subject, otherwise the rows by their keys."""
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
    """Return secret numbers of each row, (n, c), by which the policy deals persons or chooses rows.

    subjects: (n,) the person of each row, if some have several. Numbers depend on the person or the
    key of the row alone, so that persons who come or go leave the others as they are. Who has one
    row has zeros where rows are chosen. None if the policy asks for neither. Raises DatabaseError
    when the secret key is missing.
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
