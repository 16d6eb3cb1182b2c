"""Columns as dictionary-encoded arrays, and replacements of their values."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from math import isnan
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dbanon.domain.table import ColumnInfo, ColumnKind, TableInfo

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    Values = Mapping[str, Any]
    """Sensitive values of a row by column: texts, numbers or None."""
    Shown = Sequence[Sequence[Values]]
    """The values of all rows of a person, for each release that changed them; first goes first."""


_OF_ANY_DIGITS = frozenset({ColumnKind.INTEGER, ColumnKind.DECIMAL})


def one_chunk(column: pa.ChunkedArray) -> pa.DictionaryArray:
    """Return a dictionary-encoded column as one array."""
    return column.unify_dictionaries().combine_chunks()


def with_columns(table: pa.Table, columns: Mapping[str, pa.Array]) -> pa.Table:
    """Return a table with columns replaced; unlike ``pa.table({})``, it keeps its rows."""
    for place, name in enumerate(table.column_names):
        if name in columns:
            table = table.set_column(place, name, columns[name])
    return table


def with_own_values(table: pa.Table) -> pa.Table:
    """Return a table with only used values in its dictionaries."""
    for place, name in enumerate(table.column_names):
        column = one_chunk(table.column(name))
        used = pc.unique(column.indices.drop_null())
        places = pc.index_in(column.indices, value_set=used)
        found = pa.DictionaryArray.from_arrays(places, column.dictionary.take(used))
        table = table.set_column(place, name, found)
    return table


def codes_of(column: pa.DictionaryArray) -> NDArray[np.int32]:
    """Return the code of each row, -1 for NULL."""
    found: NDArray[np.int32] = pc.fill_null(column.indices, -1).to_numpy(zero_copy_only=False)
    return found


def in_order(column: pa.DictionaryArray, info: ColumnInfo) -> pa.DictionaryArray:
    """Return a column with values sorted by size, rank or text; labels without a rank come last."""
    values = column.dictionary
    order = np.arange(len(values)) if info.kind.is_ordered else pc.sort_indices(values).to_numpy()
    if info.kind.is_ordered or info.labels:
        order = order[np.argsort(_numbers(values, info)[order], kind="stable")]
    number = np.empty(len(values) + 1, np.int32)
    number[order], number[-1] = np.arange(len(values)), -1
    return with_codes(number[codes_of(column)], values.take(pa.array(order)))


def spelled(column: pa.DictionaryArray, info: ColumnInfo) -> list[str]:
    """Return each value of a column as text; equal numbers and times have equal texts."""
    texts = [str(value) for value in column.dictionary.to_pylist()]
    if not info.kind.is_ordered:
        return texts
    found = (numbers(column.dictionary, info.kind) + 0.0).tolist()  # -0 is 0
    return [text if isnan(x) else repr(x) for text, x in zip(texts, found, strict=True)]


def with_codes(codes: NDArray[np.int32], values: pa.Array) -> pa.DictionaryArray:
    """Return a column of these values without duplicates and unused ones; -1 is NULL."""
    once = values.dictionary_encode()
    codes, values = np.append(once.indices.to_numpy(), -1)[codes], once.dictionary
    used, dense = np.unique(codes[codes >= 0], return_inverse=True)
    indices = np.full(len(codes), -1, np.int32)
    indices[codes >= 0] = dense
    return pa.DictionaryArray.from_arrays(
        pa.array(indices, mask=codes < 0), values.take(pa.array(used))
    )


def numbers_of(column: pa.DictionaryArray, info: ColumnInfo) -> NDArray[np.float64]:
    """Return the number of each row; NaN for NULL, inf for other values without one.

    A value with more digits than a float holds also has none: it would not change, or become
    another. The number of a label is its rank, from 0.
    """
    found = _numbers(column.dictionary, info)
    if info.kind in _OF_ANY_DIGITS and not info.labels:
        found[are_coarse(column.dictionary, found)] = np.nan
    found[np.isnan(found)] = np.inf
    return np.append(found, np.nan)[codes_of(column)]


def with_numbers(
    column: pa.DictionaryArray,
    info: ColumnInfo,
    *,
    before: NDArray[np.float64],
    after: NDArray[np.float64],
) -> pa.DictionaryArray:
    """Return a column with the changed numbers replaced; NaN is NULL.

    Values with the same number become the first of them as text, so that equal results look equal.
    A new number that is already a value gets its text, with all digits: a shorter text would show
    which rows were changed.
    """
    values = column.dictionary
    order = pc.sort_indices(values).to_numpy().astype(np.int64)
    found = _numbers(values, info)
    known, first = np.unique(found[order], return_index=True)
    known, place = np.append(known, np.nan), np.append(order[first], -1)
    codes = np.append(place[np.searchsorted(known, found)], -1)[codes_of(column)]
    changed = np.flatnonzero(before != after)
    distinct, number = np.unique(after[changed], return_inverse=True)
    at = np.searchsorted(known, distinct)
    is_known = known[at] == distinct
    is_new = ~is_known & ~np.isnan(distinct)
    chosen = np.where(is_known, place[at], -1)
    chosen[is_new] = len(values) + np.arange(np.count_nonzero(is_new))
    codes[changed] = chosen[number]
    spelled = written(distinct[is_new], info, values)
    return with_codes(codes.astype(np.int32), pa.concat_arrays([values, spelled]))


def with_numbers_alone(
    column: pa.DictionaryArray, info: ColumnInfo, after: NDArray[np.float64]
) -> pa.DictionaryArray:
    """Return a column of other numbers, in texts that do not depend on each other; NaN is NULL."""
    distinct, number = np.unique(after, return_inverse=True)
    codes = np.where(np.isnan(after), -1, number).astype(np.int32)
    spelled = written(distinct[~np.isnan(distinct)], info, column.dictionary, alone=True)
    return with_codes(codes, spelled)


def _numbers(values: pa.Array, info: ColumnInfo) -> NDArray[np.float64]:
    """Return the number of each value, the rank of a label; NaN if it has none."""
    if not info.labels:
        return numbers(values, info.kind)
    rank = {label: float(i) for i, label in enumerate(info.labels)}
    return np.array([rank.get(value, np.nan) for value in values.to_pylist()], np.float64)


_EPOCH = date(1970, 1, 1)
_INTEGERS = {"int2": 2**15, "int4": 2**31, "int8": 2**63}
_MOST_DECIMALS = 12
_LARGEST = 1e150  # beyond it the square of a number is none
_LARGEST_WHOLE = 2.0**53  # from here on floats skip whole numbers
_MICROSECONDS = 1_000_000
_NUMERIC = re.compile(r"numeric\((\d+)(?:,(-?\d+))?\)")
_FIRST, _LAST = (float((day - _EPOCH).days) for day in (date.min, date.max))
_DAY = 86_400


def numbers(values: pa.Array, kind: ColumnKind) -> NDArray[np.float64]:
    """Return the number of each value, NaN if it is not a number, infinite or beyond 1e150.

    values: texts, or the types of quasi-identifiers. Dates are days and times seconds since 1970,
    from year 1 to 9999.
    """
    if pa.types.is_string(values.type):
        found = np.array([_number(text, kind) for text in values.to_pylist()], np.float64)
    elif pa.types.is_timestamp(values.type):
        whole = values.cast(pa.timestamp("us", values.type.tz)).cast(pa.int64())
        found = whole.to_numpy(zero_copy_only=False).astype(np.float64) / _MICROSECONDS
    else:
        if pa.types.is_date(values.type):
            values = values.cast(pa.int32())
        found = values.to_numpy(zero_copy_only=False).astype(np.float64)
    if kind.is_moment:
        unit = 1 if kind is ColumnKind.DATE else _DAY
        found[(found < _FIRST * unit) | (found >= (_LAST + 1) * unit)] = np.nan
    found[~(np.abs(found) <= _LARGEST)] = np.nan
    return found


def are_coarse(values: pa.Array, found: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return True for numbers that have too many digits before the point for a float."""
    coarse = np.abs(found) >= _LARGEST_WHOLE
    for i in np.flatnonzero(coarse).tolist():
        coarse[i] = Decimal(str(values[i])) != Decimal(repr(float(found[i])))
    return coarse


def written(
    found: NDArray[np.float64], column: ColumnInfo, like: pa.Array, *, alone: bool = False
) -> pa.Array:
    """Return numbers as values of the column, of the type of ``like``.

    Integers, days and seconds are whole. Other numbers have at most the decimals of ``like``, and
    are clipped to the range of the column's type. alone: with each number's own decimals, without
    trailing zeros.
    """
    kind = column.kind
    if kind is ColumnKind.INTEGER:
        end = _INTEGERS[column.base_type]
        whole = [min(max(int(x), -end), end - 1) for x in np.rint(found).tolist()]
        if pa.types.is_string(like.type):
            return pa.array(map(str, whole), pa.string())
        return pa.array(whole, like.type)
    if kind.is_moment:
        return _moments(found, kind, like.type)
    decimals = _declared_decimals(column.type) if alone else _decimals(like)
    greatest, found = _greatest(column.type, decimals), found.round(decimals)
    if greatest is not None:
        found = np.clip(found, -greatest, greatest)
    if not pa.types.is_string(like.type):
        return pa.array(found, like.type)
    spell = "{:.15g}" if kind is ColumnKind.FLOAT else f"{{:.{decimals}f}}"
    texts = [spell.format(x) for x in found.tolist()]
    if alone and kind is ColumnKind.DECIMAL and decimals:
        texts = [text.rstrip("0").rstrip(".") for text in texts]
    return pa.array(texts, pa.string())


def _number(text: str, kind: ColumnKind) -> float:
    try:
        if kind is ColumnKind.DATE:
            return float((date.fromisoformat(text) - _EPOCH).days)
        if kind.is_moment:
            moment = datetime.fromisoformat(text)
            since = moment.replace(tzinfo=moment.tzinfo or UTC)
            return (since - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(seconds=1)
        return float(text)
    except ValueError:  # before Christ, after the year 9999, infinity
        return float("nan")


def _moments(found: NDArray[np.float64], kind: ColumnKind, of: pa.DataType) -> pa.Array:
    unit = 1 if kind is ColumnKind.DATE else _DAY
    whole = np.clip(np.rint(found), _FIRST * unit, (_LAST + 1) * unit - 1).astype(np.int64)
    if pa.types.is_date(of):
        return pa.array(whole.astype(np.int32)).cast(of)
    if pa.types.is_timestamp(of):
        return pa.array(whole).cast(pa.timestamp("s", of.tz)).cast(of)
    moments = whole.astype("datetime64[D]" if kind is ColumnKind.DATE else "datetime64[s]")
    zone = "+00" if kind is ColumnKind.TIMESTAMPTZ else ""
    texts = np.datetime_as_string(moments).tolist()
    return pa.array([text.replace("T", " ") + zone for text in texts], pa.string())


def _declared_decimals(declared: str) -> int:
    fits = _NUMERIC.fullmatch(declared)
    return _MOST_DECIMALS if fits is None else min(max(int(fits[2] or 0), 0), _MOST_DECIMALS)


def _greatest(declared: str, decimals: int) -> float | None:
    """Return the greatest number of a numeric type with a precision, None for others."""
    fits = _NUMERIC.fullmatch(declared)
    if fits is None:
        return None
    greatest = Decimal(f"{'9' * int(fits[1])}e{-int(fits[2] or 0)}")
    end = float(greatest)
    while Decimal(f"{end:.{decimals}f}") > greatest:
        end = float(np.nextafter(end - 10.0**-decimals / 2, 0.0))
    return end


def _decimals(like: pa.Array) -> int:
    if pa.types.is_string(like.type):
        parts = (text.partition(".")[2] for text in like.to_pylist() if "e" not in text.lower())
        return min(max(map(len, parts), default=0), _MOST_DECIMALS)
    found = like.to_numpy(zero_copy_only=False)
    found = found[np.isfinite(found)]
    return next(
        (d for d in range(_MOST_DECIMALS) if (found.round(d) == found).all()), _MOST_DECIMALS
    )


_JSON_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")


def number(
    columns: pa.Table, info: TableInfo
) -> tuple[NDArray[np.int32], NDArray[np.int64], list[str]]:
    """Return the code of each row, and a row and a JSON object for each code.

    Numbers are numbers in JSON.
    """
    codes, indices = np.zeros(len(columns), np.int64), []
    first = codes[:1]
    for column in columns.columns:
        size = len(column.chunk(0).dictionary) if column.num_chunks else 0
        parts = [pc.fill_null(chunk.indices, size) for chunk in column.chunks]
        index = np.concatenate([part.to_numpy() for part in parts] or [codes[:0]]).astype(np.int64)
        indices.append(index)
        codes, first = _dense(codes * (size + 1) + index, max(len(first), 1) * (size + 1))
    texts = [
        _spelled(column, index[first], is_number=info.column(name).kind.is_number)
        for name, column, index in zip(columns.column_names, columns.columns, indices, strict=True)
    ]
    names = [json.dumps(name, ensure_ascii=False) for name in columns.column_names]
    objects = [
        "{" + ", ".join(f"{n}: {text}" for n, text in zip(names, row, strict=True)) + "}"
        for row in (zip(*texts, strict=True) if texts else [()] * len(first))
    ]
    return codes.astype(np.int32), first, objects


def _dense(codes: NDArray[np.int64], size: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return codes below ``size`` without gaps, in their order, and the first row of each."""
    if size > 2 * len(codes):
        _, first, dense = np.unique(codes, return_index=True, return_inverse=True)
        return dense, first
    first = np.full(size, -1, np.int64)
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    used = np.flatnonzero(first >= 0)
    place = np.empty(size, np.int64)
    place[used] = np.arange(len(used))
    return place[codes], first[used]


def _spelled(column: pa.ChunkedArray, index: NDArray[np.int64], *, is_number: bool) -> list[str]:
    """Return values as JSON; the last index is that of NULL."""
    values = column.chunk(0).dictionary.to_pylist() if column.num_chunks else []
    spelled = [
        str(value)
        if is_number and _JSON_NUMBER.fullmatch(str(value))
        else json.dumps(str(value), ensure_ascii=False)
        for value in values
    ]
    spelled.append("null")
    return [spelled[i] for i in index.tolist()]


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
    codes, _, objects = number(columns, info)
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
