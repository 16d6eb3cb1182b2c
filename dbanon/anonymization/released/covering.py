"""Classes that may contain a person, given the person's quasi-identifiers."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.anonymization.released.cells import CellColumn, Released

MANY = 2**31
"""More classes than there are."""


class Coverage(NamedTuple):
    """Sorted classes that cover each of some rows: row i has classes[start[i]:start[i + 1]]."""

    start: NDArray[np.int64]
    classes: NDArray[np.int32]

    def sums(self, size: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the sum over the classes of each row, for example of their sizes."""
        total = np.append(0, np.cumsum(size[self.classes]))
        return np.asarray(total[self.start[1:]] - total[self.start[:-1]], np.int64)


def covers(released: Released, rows: NDArray[np.int64], *, enough: int = MANY) -> Coverage:
    """Return the classes whose cells cover the quasi-identifiers of some rows of the source.

    Point labels exclude no class. enough: search limit per row; there may be further classes. O(g
    log^2 g + r (log g + classes)) for g classes, if boxes overlap little.
    """
    from dbanon.kernels.covering import Cells, covering, hierarchy

    columns = [
        (cells, column)
        for cells, column in zip(released.columns, released.table.quasi, strict=False)
        if not cells.is_point
    ]
    if not columns or not released.n_classes:
        everything = np.arange(min(released.n_classes, enough), dtype=np.int32)
        start = np.arange(len(rows) + 1, dtype=np.int64) * len(everything)
        return Coverage(start, np.tile(everything, len(rows)))
    sizes = np.array([column.size for _, column in columns], np.int32)
    cells = Cells(sizes, *_tables([cells for cells, _ in columns]))
    codes = np.column_stack([column.codes[rows] for _, column in columns])
    return Coverage(*covering(codes, cells, hierarchy(cells), enough))


def _tables(
    columns: list[CellColumn],
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64], NDArray[np.int32]]:
    """Return the labels of all columns in one table: index by class, bounds, members."""
    before = np.cumsum([0, *(len(column.labels) for column in columns)])
    labels = [column.index + at for column, at in zip(columns, before, strict=False)]
    bounds = [np.column_stack([column.lo, column.hi, column.nulls]) for column in columns]
    counts, members = [], [np.zeros(0, np.int32)]
    for column in columns:
        if column.members is None:
            counts.append(np.zeros(len(column.labels), np.int64))
        else:
            counts.append(np.diff(column.members.start))
            members.append(column.members.codes)
    start = np.append(0, np.cumsum(np.concatenate(counts)))
    return (
        np.ascontiguousarray(np.column_stack(labels), np.int32),
        np.ascontiguousarray(np.concatenate(bounds), np.int32),
        start.astype(np.int64),
        np.concatenate(members),
    )
