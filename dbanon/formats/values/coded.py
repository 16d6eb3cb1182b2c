"""Columns as dictionary-encoded arrays: their codes, and other values in their place."""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dbanon.domain.table import ColumnKind
from dbanon.formats.values.numbers import are_coarse, numbers, written

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from dbanon.domain.table import ColumnInfo

_OF_ANY_DIGITS = frozenset({ColumnKind.INTEGER, ColumnKind.DECIMAL})


def one_chunk(column: pa.ChunkedArray) -> pa.DictionaryArray:
    """Return a dictionary-encoded column as one array."""
    return column.unify_dictionaries().combine_chunks()


def with_columns(table: pa.Table, columns: Mapping[str, pa.Array]) -> pa.Table:
    """Return a table with these columns in place of its own of the same names.

    A table without columns keeps its rows, which ``pa.table({})`` does not have.
    """
    for place, name in enumerate(table.column_names):
        if name in columns:
            table = table.set_column(place, name, columns[name])
    return table


def with_own_values(table: pa.Table) -> pa.Table:
    """Return a table whose dictionaries hold no value that none of its rows has."""
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
    """Return a column whose values are in order: numbers by size, labels by rank, others as texts.

    Labels that the order lacks come last.
    """
    values = column.dictionary
    order = np.arange(len(values)) if info.kind.is_ordered else pc.sort_indices(values).to_numpy()
    if info.kind.is_ordered or info.labels:
        order = order[np.argsort(_numbers(values, info)[order], kind="stable")]
    number = np.empty(len(values) + 1, np.int32)
    number[order], number[-1] = np.arange(len(values)), -1
    return with_codes(number[codes_of(column)], values.take(pa.array(order)))


def spelled(column: pa.DictionaryArray, info: ColumnInfo) -> list[str]:
    """Return each value of a column as a text; numbers and times alike, however they were read."""
    texts = [str(value) for value in column.dictionary.to_pylist()]
    if not info.kind.is_ordered:
        return texts
    found = (numbers(column.dictionary, info.kind) + 0.0).tolist()  # -0 is 0
    return [text if isnan(x) else repr(x) for text, x in zip(texts, found, strict=True)]


def with_codes(codes: NDArray[np.int32], values: pa.Array) -> pa.DictionaryArray:
    """Return a column of these values, each once and only if a row has it; -1 is NULL."""
    once = values.dictionary_encode()
    codes, values = np.append(once.indices.to_numpy(), -1)[codes], once.dictionary
    used, dense = np.unique(codes[codes >= 0], return_inverse=True)
    indices = np.full(len(codes), -1, np.int32)
    indices[codes >= 0] = dense
    return pa.DictionaryArray.from_arrays(
        pa.array(indices, mask=codes < 0), values.take(pa.array(used))
    )


def numbers_of(column: pa.DictionaryArray, info: ColumnInfo) -> NDArray[np.float64]:
    """Return the number of each row, NaN for NULL; inf for a value that is none or infinite.

    Nor is a value of more digits before its point than a float holds: it would stay as it is, or
    become another. The number of a label is its rank, from 0.
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
    """Return a column with other numbers where they differ; NaN is NULL.

    Values that are one number become the first of them in the order of texts: what a method makes
    alike is shown alike. So is a number that is a value of the column already, with all its digits:
    fewer would show which rows have the value of another.
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
    """Return a column with other numbers, each written as if it had no other value; NaN is NULL."""
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
