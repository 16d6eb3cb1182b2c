"""Types of the released data, as risk, utility and attacks use them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dbanon.models.tally import Tally

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.domain.assignment import EncodedColumn, EncodedTable
    from dbanon.domain.table import ColumnKind


class Members(NamedTuple):
    """Sorted int32 codes covered by each label: label i has codes[start[i]:start[i + 1]]."""

    start: NDArray[np.int64]
    codes: NDArray[np.int32]


@dataclass(frozen=True, eq=False, slots=True)
class CellColumn:
    """The released data of one quasi-identifier, and the source codes that each label covers.

    labels: the distinct published texts, None for NULL; index: (n_classes,) int32 into them; lo,
    hi: (n_labels,) int32, least and greatest covered code, inclusive, hi < lo if there is none;
    nulls: (n_labels,) bool, NULL is covered; members: covered codes if they are not contiguous;
    low, high: (n_labels,) float64, ends on the scale of ``EncodedColumn.position``, NaN if not on a
    line.

    is_point: a label represents its class, as a mean does, and excludes no one. lo and hi are its
    code, if it is a value of the source.
    """

    name: str
    recoding: str
    kind: ColumnKind
    is_point: bool
    labels: tuple[str | None, ...]
    index: NDArray[np.int32]
    lo: NDArray[np.int32]
    hi: NDArray[np.int32]
    nulls: NDArray[np.bool_]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    members: Members | None = None


@dataclass(frozen=True, eq=False, slots=True)
class SensitiveCounts:
    """Published frequency of each value of a sensitive column in each class.

    classes, codes: int32, rows: int64; sorted by class and code, each pair once. Codes are those of
    the column's ``SensitiveDomain``, with values of the source and of the release; n_codes: their
    number.
    """

    name: str
    classes: NDArray[np.int32]
    codes: NDArray[np.int32]
    rows: NDArray[np.int64]
    n_codes: int

    @property
    def tally(self) -> Tally:
        """The values of each class in the form that models take."""
        classes, values = self.classes.astype(np.int64), self.codes.astype(np.int64)
        start = np.flatnonzero(np.diff(classes, prepend=-1))
        size = np.add.reduceat(self.rows, start) if len(start) else np.zeros(0, np.int64)
        return Tally(classes, values, self.rows, start, size)


@dataclass(frozen=True, eq=False, slots=True)
class Released:
    """The released data of a publication.

    A class is a distinct published tuple of quasi-identifiers. table: the rows of the source;
    columns: the quasi-identifiers, () for anatomy, whose classes are buckets; size: (n_classes,)
    int64, published rows; sensitive: unmasked sensitive columns; classes: (table.n_rows,) int32,
    the class of each row, -1 if suppressed, None if membership is not stored; persons:
    (table.n_rows,) the person of each row, None if each row is a person.
    """

    table: EncodedTable
    columns: tuple[CellColumn, ...]
    size: NDArray[np.int64]
    sensitive: tuple[SensitiveCounts, ...]
    classes: NDArray[np.int32] | None = None
    persons: NDArray[np.int32] | None = None

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.size)


_PIECES = 256  # of the codes of a column


class Coverage(NamedTuple):
    """Sorted classes that cover each of some rows: row i has classes[start[i]:start[i + 1]]."""

    start: NDArray[np.int64]
    classes: NDArray[np.int32]

    def sums(self, size: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the sum over the classes of each row, for example of their sizes."""
        total = np.append(0, np.cumsum(size[self.classes]))
        return np.asarray(total[self.start[1:]] - total[self.start[:-1]], np.int64)


def covers(released: Released, rows: NDArray[np.int64]) -> Coverage:
    """Return the classes whose cells cover the quasi-identifiers of some rows of the source.

    Point labels exclude no class. O(r g / 64) words for r rows and g classes.
    """
    from dbanon.kernels.covering import Cells, covering

    columns = [
        (cells, column)
        for cells, column in zip(released.columns, released.table.quasi, strict=False)
        if not cells.is_point
    ]
    if not columns or not released.n_classes:
        everything = np.arange(released.n_classes, dtype=np.int32)
        start = np.arange(len(rows) + 1, dtype=np.int64) * len(everything)
        return Coverage(start, np.tile(everything, len(rows)))
    codes = [column.codes[rows] for _, column in columns]
    ranks = [_ranks(column, own) for (_, column), own in zip(columns, codes, strict=True)]
    shares = [_share(cells, rank) for (cells, _), rank in zip(columns, ranks, strict=True)]
    order = np.argsort(shares, kind="stable").tolist()
    sizes = np.array([columns[j][1].size for j in order], np.int32)
    pieces = _pieces([ranks[j] for j in order])
    cells = Cells(sizes, *_tables([columns[j][0] for j in order]), *pieces)
    return Coverage(*covering(np.column_stack([codes[j] for j in order]), cells))


def _ranks(column: EncodedColumn, codes: NDArray[np.int32]) -> NDArray[np.float64]:
    """Return the share of rows with lesser codes, (size + 1,), without NULL."""
    counts = np.bincount(codes, minlength=column.size + 1)[: column.size]
    return np.append(0, np.cumsum(counts)) / max(len(codes), 1)


def _share(cells: CellColumn, rank: NDArray[np.float64]) -> float:
    """Return the mean share of rows between the bounds of a class."""
    between = rank[np.maximum(cells.hi + 1, cells.lo)] - rank[cells.lo]
    return float(between[cells.index].mean())


def _pieces(ranks: list[NDArray[np.float64]]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return the piece of each code of all columns, and the start of each column's codes."""
    pieces, free = [], 0
    for rank in ranks:
        size = len(rank) - 1
        few = rank[:-1] * (_PIECES - 1)
        own = np.arange(size) if size <= _PIECES else few.astype(np.int64)
        last = int(own.max(initial=-1))
        pieces.append(free + np.append(own, last + 2))
        free += last + 3
    begin = np.cumsum([0, *(len(own) for own in pieces)])
    return np.concatenate(pieces).astype(np.int32), begin.astype(np.int64)


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
