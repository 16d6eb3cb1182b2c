"""Which classes a person may be in, as far as who knows the quasi-identifiers can tell."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.anonymization.released.cells import CellColumn, Released


class Coverage(NamedTuple):
    """The classes that cover each of some rows, sorted.

    Those of row i are classes[start[i]:start[i + 1]]. start: (r + 1,) int64; classes: int32.
    """

    start: NDArray[np.int64]
    classes: NDArray[np.int32]

    def sums(self, size: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the sum over the classes of each row, such as of their sizes."""
        total = np.append(0, np.cumsum(size[self.classes]))
        return np.asarray(total[self.start[1:]] - total[self.start[:-1]], np.int64)


def covers(released: Released, rows: NDArray[np.int64]) -> Coverage:
    """Return the classes whose cells cover the quasi-identifiers of some rows of the source.

    Columns whose labels stand for a class rule out none. Classes are found by the labels of the
    column that rules out most; O(r (labels + classes that one leaves)).
    """
    from dbanon.kernels.covering import covering

    columns = [
        (cells, column)
        for cells, column in zip(released.columns, released.table.quasi, strict=False)
        if not cells.is_point
    ]
    if not columns or not released.n_classes:
        everything = np.arange(released.n_classes, dtype=np.int32)
        start = np.arange(len(rows) + 1, dtype=np.int64) * released.n_classes
        return Coverage(start, np.tile(everything, len(rows)))
    columns.sort(key=lambda pair: _left(pair[0], pair[1].size))
    cells = [pair[0] for pair in columns]
    codes = np.column_stack([column.codes[rows] for _, column in columns])
    sizes = np.array([column.size for _, column in columns], np.int32)
    lead = cells[0].index
    begins = np.searchsorted(np.sort(lead), np.arange(len(cells[0].labels) + 1))
    order = np.argsort(lead, kind="stable").astype(np.int32)
    found = covering(codes, sizes, *_tables(cells), begins.astype(np.int64), order)
    return Coverage(*found)


def _left(cells: CellColumn, size: int) -> float:
    """Return the share of the codes that a class covers in a column, on the mean."""
    width = np.maximum(cells.hi - cells.lo + 1, 0)
    if cells.members is not None:
        width = np.diff(cells.members.start)
    share: float = (width[cells.index] + cells.nulls[cells.index]).mean() / (size + 1)
    return share


def _tables(
    cells: list[CellColumn],
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64], NDArray[np.int32]]:
    """Return the labels of all columns in one table each: that of every class, bounds, members.

    The bounds are lo, hi and whether NULL is covered.
    """
    before = np.cumsum([0, *(len(column.labels) for column in cells)])
    index = np.column_stack([column.index + at for column, at in zip(cells, before, strict=False)])
    bounds = np.concatenate(
        [np.column_stack([column.lo, column.hi, column.nulls]) for column in cells]
    )
    counts, members = [], [np.zeros(0, np.int32)]
    for column in cells:
        if column.members is None:
            counts.append(np.zeros(len(column.labels), np.int64))
        else:
            counts.append(np.diff(column.members.start))
            members.append(column.members.codes)
    start = np.append(0, np.cumsum(np.concatenate(counts)))
    return (
        np.ascontiguousarray(index, np.int32),
        np.ascontiguousarray(bounds, np.int32),
        start.astype(np.int64),
        np.concatenate(members),
    )
