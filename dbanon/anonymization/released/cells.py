"""Types of the released data, as risk, utility and attacks use them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dbanon.models.tally import Tally

if TYPE_CHECKING:
    from collections.abc import Iterator

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
_CLASSES, _CELLS = 1 << 15, 1 << 24  # classes, and pairs of a row and a class, at once
_SPARSE = 8  # words of bits for each that is not empty, from which on pairs are compared


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

    Point labels exclude no class. For each column and code, a bit for each class that covers it:
    those of a row are the intersection (Wong, Liu, Olken, Rotem, Wong, Bit transposed files, VLDB
    1985). Columns that exclude most classes come first; once few classes are left, these are
    compared one by one. O(r g / 64) words for r rows and g classes.
    """
    columns = [
        _Coded(cells, column, column.codes[rows])
        for cells, column in zip(released.columns, released.table.quasi, strict=False)
        if not cells.is_point
    ]
    if not columns or not released.n_classes:
        everything = np.arange(released.n_classes, dtype=np.int32)
        start = np.arange(len(rows) + 1, dtype=np.int64) * len(everything)
        return Coverage(start, np.tile(everything, len(rows)))
    columns.sort(key=_Coded.share)
    found = [np.zeros((2, 0), np.int32)]
    for first in range(0, released.n_classes, _CLASSES):
        found += _pairs(columns, slice(first, min(first + _CLASSES, released.n_classes)))
    row, classes = np.concatenate(found, axis=1)
    start = np.append(0, np.cumsum(np.bincount(row, minlength=len(rows))))
    return Coverage(start, classes[np.argsort(row, kind="stable")])


def _pairs(columns: list[_Coded], some: slice) -> Iterator[NDArray[np.int32]]:
    """Yield the pairs of a row and one of some classes that covers it, (2, p)."""
    bits: list[NDArray[np.uint64]] = []
    step = max(_CELLS // (some.stop - some.start), 1)
    for at in range(0, len(columns[0].codes), step):
        common: NDArray[np.uint64] = np.full((1, 1), ~np.uint64(0))
        for used, column in enumerate(columns):
            if used == len(bits):
                bits.append(column.bits(some))
            common = bits[used][column.piece[at : at + step]] & common
            if _SPARSE * np.count_nonzero(common) < common.size:
                break
        words = np.flatnonzero(common)
        each = np.unpackbits(common.reshape(-1)[words].view(np.uint8))
        place, bit = np.divmod(np.flatnonzero(each), 64)
        row, word = np.divmod(words[place], common.shape[1])
        row, one = row + at, word * 64 + bit + some.start
        for i, column in enumerate(columns):
            if i > used or not column.is_exact:
                inside = column.is_covered(row, one)
                row, one = row[inside], one[inside]
        yield np.array([row, one], np.int32)


class _Coded:
    """A column and its codes of some rows, (r,); ``piece``: of each, neighbours if they are many.

    is_exact: each piece has one code.
    """

    def __init__(self, cells: CellColumn, column: EncodedColumn, codes: NDArray[np.int32]) -> None:
        self._cells, self._null, self.codes = cells, column.size, codes
        counts = np.bincount(codes, minlength=column.size + 1)
        self._rank = np.append(0, np.cumsum(counts[:-1])) / max(len(codes), 1)
        known = np.flatnonzero(counts)
        self.is_exact = len(known) <= _PIECES
        pieces = known if self.is_exact else (self._rank[known] * _PIECES).astype(np.int64)
        _, first, own = np.unique(pieces, return_index=True, return_inverse=True)
        self._begin, self._end = known[first], known[np.append(first, len(known))[1:] - 1]
        self._of_code = np.full(column.size + 1, -1, np.int32)
        self._of_code[known] = own
        self.piece = self._of_code[codes]

    def share(self) -> float:
        """Return the mean share of rows between the bounds of a class."""
        cells, rank = self._cells, self._rank
        between = rank[np.maximum(cells.hi + 1, cells.lo)] - rank[cells.lo]
        return float(between[cells.index].mean())

    def bits(self, some: slice) -> NDArray[np.uint64]:
        """Return a bit for each piece and class that may cover codes of it, (pieces, words)."""
        cells, begin, end = self._cells, self._begin[:, None], self._end[:, None]
        if cells.members is None:
            covered = (cells.lo <= end) & (cells.hi >= begin)
        else:
            covered = np.zeros((len(begin), len(cells.labels)), np.bool_)
            own = self._of_code[cells.members.codes]
            label = np.repeat(np.arange(len(cells.labels)), np.diff(cells.members.start))
            covered[own[own >= 0], label[own >= 0]] = True
        covered |= (end == self._null) & cells.nulls
        packed = np.packbits(np.take(covered, cells.index[some], axis=1), axis=1)
        return np.pad(packed, ((0, 0), (0, -packed.shape[1] % 8))).view(np.uint64)

    def is_covered(self, rows: NDArray[np.int64], classes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return a mask of the pairs of a row and a class that covers it."""
        cells, code, label = self._cells, self.codes[rows], self._cells.index[classes]
        if cells.members is None:
            inside = (cells.lo[label] <= code) & (code <= cells.hi[label])
        else:
            start, members = cells.members
            own = np.repeat(np.arange(len(cells.labels)), np.diff(start)) * self._null + members
            inside = np.isin(label * np.int64(self._null) + code, own)
        return np.where(code == self._null, cells.nulls[label], inside)
