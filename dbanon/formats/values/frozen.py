"""Replace the present values of persons by those that were published before."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dbanon.formats.values import coded

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from dbanon.domain.table import TableInfo

    Values = Mapping[str, Any]
    """Sensitive values of a row by column: texts, numbers or None."""
    Shown = Sequence[Sequence[Values]]
    """The values of all rows of a person, for each release that changed them; first goes first."""


@dataclass(frozen=True, eq=False, slots=True)
class Frozen:
    """Columns with previously published values.

    changed: (m,) rows with replaced values; unknown: (p,) persons with other rows than before, so
    that values cannot be assigned to rows.
    """

    columns: pa.Table
    changed: NDArray[np.int64]
    unknown: NDArray[np.bool_]


def freeze(
    columns: pa.Table,
    info: TableInfo,
    *,
    persons: NDArray[np.int32],
    shown: NDArray[np.int32],
    values: Sequence[Shown],
) -> Frozen:
    """Return columns as they were published for each person; new persons keep their values.

    columns: dictionary-encoded texts; persons: (n,) the person of each row; shown: (p,) the
    published values of each person as an index into ``values``, negative if there are none.
    """
    codes, objects = coded.number(columns, info)
    current = [json.loads(text, parse_float=Decimal) for text in objects]
    several = np.bincount(persons, minlength=len(shown)) > 1
    several |= np.array([*(any(len(r) > 1 for r in one) for one in values), False])[shown]
    of_row = shown[persons]
    alone = np.flatnonzero((of_row >= 0) & ~several[persons])
    pairs = np.stack([of_row[alone], codes[alone]])
    kinds, kind = np.unique(pairs, axis=1, return_inverse=True)
    before = [{**current[code], **_known(values[one], current[code])} for one, code in kinds.T]
    differs = [new != current[code] for new, (_, code) in zip(before, kinds.T, strict=True)]
    moved = np.array(differs, bool)[kind.ravel()] if len(alone) else np.zeros(0, bool)
    changed, which = alone[moved], kind.ravel()[moved]
    unknown = np.zeros(len(shown), bool)
    rows_of = _rows_of(persons, np.flatnonzero(several & (shown >= 0)))
    for person, rows in rows_of:
        unknown[person] = not _same([current[codes[row]] for row in rows], values[shown[person]])
    return Frozen(_replaced(columns, changed, [before[i] for i in which]), changed, unknown)


def columns_of(shown: Shown) -> frozenset[str]:
    """Return the columns that some release had."""
    return frozenset(name for rows in shown for row in rows for name in row)


def as_published(columns: pa.Table) -> pa.Table:
    """Return dictionary-encoded quasi-identifiers as texts, like sensitive values."""
    found = columns
    kind = pa.dictionary(pa.int32(), pa.string())
    for place, name in enumerate(columns.column_names):
        chunks = [
            pa.DictionaryArray.from_arrays(
                chunk.indices,
                pa.array([_read(value) for value in chunk.dictionary.to_pylist()], pa.string()),
            )
            for chunk in columns.column(name).chunks
        ]
        found = found.set_column(place, name, pa.chunked_array(chunks, kind))
    return found


def _read(value: object) -> str:
    if isinstance(value, float):
        return format(Decimal(repr(value)), "f")
    if isinstance(value, datetime):
        zone = "" if value.tzinfo is None else "+00"
        plain = value if value.tzinfo is None else value.astimezone(UTC)
        text = plain.replace(tzinfo=None).isoformat(" ")
        return (text.rstrip("0") if value.microsecond else text) + zone
    return str(value)


def _known(shown: Shown, wanted: Iterable[str]) -> dict[str, Any]:
    """Return the values of a person with one row, from the first release with each column."""
    found: dict[str, Any] = {}
    for (row,) in shown:
        found = {**row, **found}
    return {name: found[name] for name in wanted if name in found}


def _rows_of(
    persons: NDArray[np.int32], wanted: NDArray[np.int64]
) -> list[tuple[int, NDArray[np.int64]]]:
    order = np.argsort(persons, kind="stable")
    starts = np.searchsorted(persons[order], wanted, side="left")
    ends = np.searchsorted(persons[order], wanted, side="right")
    spans = zip(wanted.tolist(), starts.tolist(), ends.tolist(), strict=True)
    return [(person, order[start:end]) for person, start, end in spans]


def _same(current: Sequence[Values], shown: Shown) -> bool:
    """Return True if a person has the same number of rows with the same values as before."""
    left = set(current[0])
    for rows in shown:
        names = sorted(left & set(rows[0]))
        left -= set(names)
        before = Counter(tuple(row.get(name) for name in names) for row in rows)
        if before != Counter(tuple(row[name] for name in names) for row in current):
            return False
    return True


def _replaced(
    columns: pa.Table, rows: NDArray[np.int64], values: Sequence[Mapping[str, Any]]
) -> pa.Table:
    if not len(rows):
        return columns
    found = columns
    for place, name in enumerate(columns.column_names):
        new = [None if row[name] is None else _text(row[name]) for row in values]
        texts = pc.cast(columns.column(name), pa.string()).combine_chunks()
        mask = np.zeros(len(texts), bool)
        mask[rows] = True
        texts = pc.replace_with_mask(texts, pa.array(mask), pa.array(new, pa.string()))
        found = found.set_column(place, name, pa.chunked_array([texts.dictionary_encode()]))
    return found


def _text(value: object) -> str:
    return format(value, "f") if isinstance(value, Decimal) else str(value)
