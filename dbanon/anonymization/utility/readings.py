"""Columns of the released data: each row is spread evenly over the values of its cell.

Users of the release do not have the frequencies of the source. A cell that covers NULL and values
counts as a value; a set shows NULL as an element.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dbanon.domain.table import ColumnKind, Structure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from dbanon.anonymization.released.cells import CellColumn, Released, SensitiveCounts
    from dbanon.domain.assignment import (
        Bands,
        EncodedColumn,
        EncodedTable,
        SensitiveDomain,
        Taxonomy,
    )

    Floats = NDArray[np.float64]


_OF_STEPS = frozenset({ColumnKind.INTEGER, ColumnKind.DATE})
_SLACK = 1e-6
_DAY = np.timedelta64(1, "D")
_OPEN_LOW, _OPEN_HIGH = ("(,", "[,", "<"), (",)", ",]", "+")


class Moments(NamedTuple):
    """Means and variances, and the known share of each; 0 for NULL alone."""

    mean: Floats
    variance: Floats
    known: Floats


@dataclass(frozen=True, eq=False, slots=True)
class Line:
    """Places of the labels and codes of a column on a line, scaled by the range of the source.

    A value is ``origin`` + place * ``span``; moments are days since 1970. low, high: (n_labels,)
    ends of each label, NaN without place; begins, ends: (n_codes,) of each code; half: half a step
    between neighbours, by which whole numbers and dates extend to both sides.
    """

    low: Floats
    high: Floats
    begins: Floats
    ends: Floats
    half: float
    origin: float
    span: float
    is_moment: bool

    @property
    def reach(self) -> float:
        """Distance from the least to the greatest end of a label, 0 without any."""
        ends = np.concatenate([self.low, self.high])
        ends = ends[np.isfinite(ends)]
        return float(np.ptp(ends)) if len(ends) else 0.0

    def between(self, first: Floats, last: Floats) -> Floats:
        """Return the share of each label from ``first`` to ``last``, (len(first), n_labels)."""
        low, high = self.low, self.high
        width = high - low
        inside = np.minimum(high, last[:, None]) - np.maximum(low, first[:, None])
        of_points = (low >= first[:, None]) & (low <= last[:, None])
        shares = np.clip(inside / np.where(width > 0.0, width, 1.0), 0.0, 1.0)
        return np.where(width > 0.0, shares, of_points)

    def spread(self, low: Floats, high: Floats) -> Moments:
        """Return the moments of uniform distributions, discrete for whole numbers."""
        steps = np.maximum((high - low) ** 2 - (2.0 * self.half) ** 2, 0.0)
        known = np.isfinite(low)
        mean, variance = (np.where(known, each, 0.0) for each in ((low + high) / 2.0, steps / 12.0))
        return Moments(mean, variance, known.astype(np.float64))


@dataclass(frozen=True, eq=False, slots=True)
class Reading:
    """A column of the source and of the release.

    codes: (n,) int32, of the source, of ``n_codes``; ``null``: code of NULL, -1 if there is none.
    rows: published rows of each of ``labels`` (indices) in a class; one entry per class, or
    ``classes`` has the class of each entry. A label covers the codes first to last, or
    members[start[i]:start[i + 1]]. line: places on a line, if any; tree: of the values, with
    ``leaf`` (n_codes,), -1 for none; cells: the finest known node of each leaf; names: of each
    code, if any; texts: of each label; ordered: codes are ordered.
    """

    name: str
    codes: NDArray[np.int32]
    n_codes: int
    null: int
    labels: NDArray[np.int32]
    rows: NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    texts: tuple[str | None, ...]
    names: tuple[str | None, ...]
    classes: NDArray[np.int32] | None = None
    members: NDArray[np.int32] | None = None
    start: NDArray[np.int64] | None = None
    line: Line | None = None
    tree: Taxonomy | None = None
    leaf: NDArray[np.int64] | None = None
    cells: NDArray[np.int32] | None = None
    ordered: bool = False

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return len(self.first)

    @property
    def of_labels(self) -> Floats:
        """Published rows of each label."""
        rows = np.bincount(self.labels, weights=self.rows, minlength=self.n_labels)
        return np.asarray(rows, np.float64)

    @property
    def of_codes(self) -> Floats:
        """Source rows of each code."""
        return np.bincount(self.codes, minlength=self.n_codes).astype(np.float64)

    def covered(self, wanted: NDArray[np.bool_]) -> Floats:
        """Return the share of each label's codes in ``wanted``, (n_codes,)."""
        if self.members is None or self.start is None:
            until = np.concatenate([[0], np.cumsum(wanted)])
            found, among = until[self.last + 1] - until[self.first], self.last - self.first + 1
        else:
            until = np.concatenate([[0], np.cumsum(wanted[self.members])])
            found, among = np.diff(until[self.start]), np.diff(self.start)
        return np.asarray(found / np.maximum(among, 1), np.float64)

    def covers_alone(self, code: int) -> NDArray[np.bool_]:
        """Return a mask of the labels of this code alone, and sets that contain it."""
        alone: NDArray[np.bool_] = (self.first == code) & (self.last == code)
        if self.members is None or self.start is None:
            return alone
        until = np.concatenate([[0], np.cumsum(self.members == code)])
        return np.asarray(alone | (np.diff(until[self.start]) > 0))

    def runs(self, first: NDArray[np.int64], last: NDArray[np.int64]) -> Floats:
        """Return the share of each label from one code to another, (len(first), n_labels)."""
        if self.line is not None and self.members is None:
            return self.line.between(self.line.begins[first], self.line.ends[last])
        codes = np.arange(self.n_codes)
        wanted = ((codes >= a) & (codes <= b) for a, b in zip(first, last, strict=True))
        return np.array([self.covered(each) for each in wanted]).reshape(len(first), -1)

    def overlapping(self, first: NDArray[np.int64], last: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return a mask of the labels that overlap the codes from first to last, even by an end."""
        shares = self.runs(first, last)
        if self.line is None or self.members is not None:
            return shares > 0.0
        meets = (self.first <= last[:, None]) & (self.last >= first[:, None])
        # neighbours, each half a step wide, may overlap by the rounding of their ends
        overlaps: NDArray[np.bool_] = (shares > _SLACK) | (meets & (self.first <= self.last))
        return overlaps

    def moments(self) -> Moments:
        """Return the moments of each label; of sets those of their elements."""
        assert self.line is not None  # noqa: S101 - the caller has looked
        if self.members is None or self.start is None:
            return self.line.spread(self.line.low, self.line.high)
        of_codes = self.line.spread(self.line.begins, self.line.ends)
        known, mean = of_codes.known[self.members], of_codes.mean[self.members]
        until = [np.concatenate([[0.0], np.cumsum(each)]) for each in (known, mean, mean**2)]
        count, first, second = (np.diff(sums[self.start]) for sums in until)
        among = np.maximum(count, 1.0)
        variance = np.maximum(second / among - (first / among) ** 2, 0.0)
        return Moments(first / among, variance, count / np.maximum(np.diff(self.start), 1))


def readings_of(released: Released) -> tuple[Reading, ...]:
    """Return the published quasi-identifiers and sensitive columns."""
    quasi = {column.name: column for column in released.table.quasi}
    return (
        *(_of_cells(quasi[cells.name], cells, released.size) for cells in released.columns),
        *(_of_counts(released.table, counts) for counts in released.sensitive),
    )


def _of_cells(column: EncodedColumn, cells: CellColumn, size: NDArray[np.int64]) -> Reading:
    only_null = cells.nulls & (cells.hi < cells.lo)
    first = np.where(only_null, column.size, cells.lo).astype(np.int64)
    last = np.where(only_null, column.size, cells.hi).astype(np.int64)
    start, members = None, None
    if cells.members is not None:
        start, members = _with_null(cells, column.size)
    leaf = np.append(np.arange(column.size), -1) if column.taxonomy is not None else None
    names = tuple(column.values.tolist()) if column.structure is not Structure.LINE else ()
    return Reading(
        name=cells.name,
        codes=column.codes,
        n_codes=column.size + 1,
        null=column.size,
        labels=cells.index,
        rows=size,
        first=first,
        last=np.maximum(last, first - 1),
        texts=cells.labels,
        names=(*names, *[None] * (column.size + 1 - len(names))),
        members=members,
        start=start,
        line=line_of(column, cells),
        tree=column.taxonomy,
        leaf=leaf,
        cells=column.cells,
        ordered=column.structure is not Structure.TREE,
    )


def _with_null(cells: CellColumn, null: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return the start of each set's members, and the members, including NULL."""
    assert cells.members is not None  # noqa: S101 - the caller has looked
    start, codes = cells.members
    members = np.insert(codes, start[1:][cells.nulls], null)
    return start + np.concatenate([[0], np.cumsum(cells.nulls)]), members.astype(np.int32)


def line_of(column: EncodedColumn, cells: CellColumn) -> Line | None:
    """Return the places of labels and codes of a column, None if they are not on a line."""
    if column.structure is not Structure.LINE or column.size < 2:  # noqa: PLR2004 - one is a point
        return None
    origin, span, begins = _scale(column)
    half = 0.5 / span if column.kind in _OF_STEPS and span > 0.0 else 0.0
    low, high = cells.low, cells.high
    if column.kind is ColumnKind.DATE:  # of a period the last day, not its last moment
        high = np.floor(high * span + _SLACK) / span
    if not cells.is_point and cells.members is None:
        # the type of a range of whole numbers writes the one after its last
        texts = [label or "" for label in cells.labels]
        before = [text.endswith(")") and not text.endswith(",)") for text in texts]
        low, high = _closed(cells, low - half, high + np.where(before, -half, half))
    if column.bands is None:
        begins, ends = begins - half, begins + half
    else:
        width = column.bands.width / column.position[-1]  # which is scaled by the end of the last
        begins, ends = _of_bands(column.bands, begins - half, begins + width - half, low, high)
    return Line(
        low=low,
        high=np.maximum(high, low),
        begins=np.append(begins, np.nan),
        ends=np.append(ends, np.nan),
        half=half,
        origin=origin,
        span=span,
        is_moment=column.kind.is_moment,
    )


def _of_bands(
    bands: Bands, begins: Floats, ends: Floats, low: Floats, high: Floats
) -> tuple[Floats, Floats]:
    """Return the ends of bands; open ones end with the extreme labels."""
    shown = np.concatenate([low, high])
    shown = shown[np.isfinite(shown)]
    if len(shown) and not bands.low[0]:
        begins = np.append(min(shown.min(), ends[0]), begins[1:])
    if len(shown) and not bands.high[-1]:
        ends = np.append(ends[:-1], max(shown.max(), begins[-1]))
    return begins, ends


def _closed(cells: CellColumn, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Return the ends of ranges; open ones end with any label, not with the source's last value."""
    is_open = opened(cells.labels)
    shown = np.concatenate([low[~is_open[0]], high[~is_open[1]]])
    shown = shown[np.isfinite(shown)]
    if not len(shown):
        return low, high
    low = np.where(is_open[0] & np.isfinite(low), shown.min(), low)
    return low, np.where(is_open[1] & np.isfinite(high), shown.max(), high)


def opened(texts: Sequence[str | None]) -> NDArray[np.bool_]:
    """Return the labels without a lower end, and those without an upper end, (2, n_labels)."""
    known = [text or "*" for text in texts]
    lower = [text.startswith(("*", *_OPEN_LOW)) for text in known]
    return np.array([lower, [text.endswith(("*", *_OPEN_HIGH)) for text in known]], np.bool_)


def _scale(column: EncodedColumn) -> tuple[float, float, Floats]:
    """Return the least value, the range of the values, and the place of each in [0, 1]."""
    values = column.values
    if values.dtype.kind == "M":
        values = (values - np.datetime64("1970-01-01")) / _DAY
    numbers = values.astype(np.float64)
    # quarters of the largest numbers have a difference
    quarters = numbers / 4.0 - numbers[0] / 4.0
    with np.errstate(over="ignore"):
        span = float(quarters[-1] * 4.0)
    return float(numbers[0]), span, quarters / quarters[-1]


def _of_counts(table: EncodedTable, counts: SensitiveCounts) -> Reading:
    place = table.sensitive_names.index(counts.name)
    domain = table.domains[place]
    line = _line_of_numbers(domain, np.unique(counts.codes))
    codes = np.arange(counts.n_codes)
    return Reading(
        name=counts.name,
        codes=np.ascontiguousarray(table.sensitive[:, place]),
        n_codes=counts.n_codes,
        null=domain.labels.index(None) if None in domain.labels else -1,
        labels=counts.codes,
        rows=counts.rows,
        first=codes,
        last=codes,
        texts=domain.labels,
        names=domain.labels,
        classes=counts.classes,
        line=line,
        tree=domain.tree,
        leaf=None if domain.tree is None else domain.leaf,
        ordered=domain.has_order or line is not None,
    )


def _line_of_numbers(domain: SensitiveDomain, shown: NDArray[np.int32]) -> Line | None:
    """Return the places of sensitive numbers, None unless all published ones are finite."""
    numbers = domain.numbers
    published = numbers[[code for code in shown.tolist() if domain.labels[code] is not None]]
    if domain.tree is not None or len(published) < 2 or not np.isfinite(published).all():  # noqa: PLR2004
        return None
    finite = numbers[np.isfinite(numbers)]
    origin, span = float(finite.min()), float(np.ptp(finite))
    places = np.where(np.isfinite(numbers), (numbers - origin) / (span or 1.0), np.nan)
    ends = (places,) * 4
    return Line(*ends, half=0.0, origin=origin, span=span, is_moment=False)


def published_pairs(a: Reading, b: Reading) -> Any | None:  # noqa: ANN401 - scipy has no types
    """Return the published rows of each pair of labels (sparse), None for two sensitive columns."""
    if a.classes is not None and b.classes is not None:
        return None
    of_a, of_b, rows = a.labels, b.labels, a.rows
    if b.classes is not None:
        of_a, rows = a.labels[b.classes], b.rows
    elif a.classes is not None:
        of_b = b.labels[a.classes]
    return _sparse(of_a, of_b, rows, shape=(a.n_labels, b.n_labels))


def source_pairs(a: Reading, b: Reading) -> Any:  # noqa: ANN401 - scipy has no types
    """Return the rows of the source of each pair of codes as a sparse matrix."""
    ones = np.ones(len(a.codes), np.int64)
    return _sparse(a.codes, b.codes, ones, shape=(a.n_codes, b.n_codes))


def _sparse(
    first: NDArray[np.int32],
    second: NDArray[np.int32],
    rows: NDArray[np.int64],
    *,
    shape: tuple[int, int],
) -> Any:  # noqa: ANN401 - scipy has no types
    from scipy.sparse import coo_matrix, csr_matrix

    if shape[0] * shape[1] <= len(first):  # counted without sorting
        key = np.multiply(first, shape[1], dtype=np.int64) + second
        return csr_matrix(np.bincount(key, rows, shape[0] * shape[1]).reshape(shape))
    return coo_matrix((rows.astype(np.float64), (first, second)), shape=shape).tocsr()
