"""Number the combinations of sensitive values that rows have."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from dbanon.domain.table import ColumnKind

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from dbanon.domain.table import TableInfo

NUMBERS = frozenset({ColumnKind.INTEGER, ColumnKind.DECIMAL, ColumnKind.FLOAT})
_JSON_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")


def number(columns: pa.Table, info: TableInfo) -> tuple[NDArray[np.int32], list[str]]:
    """Return the code of each row, and what each code stands for: a JSON object of texts.

    columns: dictionary-encoded, as ``SourceRows`` has them. Values of numeric columns are numbers.
    """
    codes = np.zeros(len(columns), np.int64)
    indices = []
    for column in columns.columns:
        size = len(column.chunk(0).dictionary) if column.num_chunks else 0
        parts = [pc.fill_null(chunk.indices, size) for chunk in column.chunks]
        index = np.concatenate([part.to_numpy() for part in parts] or [codes[:0]]).astype(np.int64)
        indices.append(index)
        codes = np.unique(codes * (size + 1) + index, return_inverse=True)[1]
    _, first, codes = np.unique(codes, return_index=True, return_inverse=True)
    texts = [
        _spelled(column, index[first], is_number=info.column(name).kind in NUMBERS)
        for name, column, index in zip(columns.column_names, columns.columns, indices, strict=True)
    ]
    names = [json.dumps(name, ensure_ascii=False) for name in columns.column_names]
    objects = [
        "{" + ", ".join(f"{n}: {text}" for n, text in zip(names, row, strict=True)) + "}"
        for row in (zip(*texts, strict=True) if texts else [()] * len(first))
    ]
    return codes.astype(np.int32), objects


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
