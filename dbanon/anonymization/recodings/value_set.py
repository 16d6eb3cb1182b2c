"""Sets of values."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.encoding.text import value_texts
from dbanon.anonymization.recodings.groups import column_boxes, value_column
from dbanon.domain.table import Structure

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.domain.assignment import Assignment, EncodedColumn, ValueColumn

_PLAIN = re.compile(r"(?!(?i:null)\Z)[A-Za-z0-9_.:+-]+\Z")


@dataclass(frozen=True, slots=True)
class ValueSet:
    """The distinct values of the group, as a PostgreSQL array literal; NULL is an element.

    Loses the share of the column's values (NULL among them if it occurs) that the set holds, and
    nothing when it holds one.
    """

    accepts = frozenset(Structure)

    def publish(self, column: EncodedColumn, assignment: Assignment) -> ValueColumn:
        """Return an array for every group; O(n log n) and one text for each distinct set."""
        published = assignment.group >= 0
        base = np.int64(column.size + 1)
        keys = np.unique(assignment.group[published] * base + column.codes[published])
        counts = np.bincount(keys // base, minlength=assignment.n_groups)
        codes = (keys % base).astype(np.int32)
        stops = np.cumsum(counts)
        place_of: dict[bytes, int] = {}
        place = np.empty(assignment.n_groups, np.int64)
        for g, stop in enumerate(stops.tolist()):
            members = codes[stop - counts[g] : stop].tobytes()
            place[g] = place_of.setdefault(members, len(place_of))
        elements = _elements(column, np.unique(codes))
        sets = [np.frombuffer(key, np.int32).tolist() for key in place_of]
        labels = ["{" + ",".join([elements[code] for code in members]) + "}" for members in sets]
        n_values = column.size + int((column.codes == column.size).any())
        return value_column(
            column,
            "set",
            labels=labels,
            place=place,
            loss=np.where(counts > 1, counts / n_values, 0.0),
            size=column_boxes(column, assignment).size,
        )


def _elements(column: EncodedColumn, codes: NDArray[np.int32]) -> dict[int, str]:
    values = codes[codes < column.size]
    texts = value_texts(column.kind, column.values[values])
    if column.values.dtype.kind not in "if":
        texts = [array_element(text) for text in texts]
    return dict(zip(values.tolist(), texts, strict=True)) | {column.size: "NULL"}


def array_element(text: str) -> str:
    """Quote a value for an array literal wherever PostgreSQL would read it otherwise."""
    if _PLAIN.match(text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
