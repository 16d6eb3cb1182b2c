"""Columns as readers take them: every row of a class evenly over all that its cell may stand for.

How often values are in the source would tell more, but readers do not know it. Where a cell may be
NULL or a value, they take it for a value; a set shows NULL as one of its elements.
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
    from dbanon.domain.assignment import Bands, EncodedColumn, EncodedTable, SensitiveDomain
    from dbanon.domain.taxonomy import Taxonomy

    Floats = NDArray[np.float64]


_OF_STEPS = frozenset({ColumnKind.INTEGER, ColumnKind.DATE})
_SLACK = 1e-6
_DAY = np.timedelta64(1, "D")
_OPEN_LOW, _OPEN_HIGH = ("(,", "[,", "<"), (",)", ",]", "+")


class Moments(NamedTuple):
    """Means and variances, and how much of each is a number; 0 for what is NULL alone."""

    mean: Floats
    variance: Floats
    known: Floats


@dataclass(frozen=True, eq=False, slots=True)
class Line:
    """Where the labels and the codes of a column are on a line, scaled by the range of the source.

    A value is ``origin`` + place * ``span``, moments are days since 1970. low, high: (n_labels,)
    the ends of each label, NaN where it has no place; begins, ends: (n_codes,) of each code;
    half: half a step between neighbours, by which whole numbers and dates reach to both sides.
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
        """How far it is from the least end of a label to the greatest, 0 where there is none."""
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
        """Return the moments of even spreads; of whole numbers those of these."""
        steps = np.maximum((high - low) ** 2 - (2.0 * self.half) ** 2, 0.0)
        known = np.isfinite(low)
        mean, variance = (np.where(known, each, 0.0) for each in ((low + high) / 2.0, steps / 12.0))
        return Moments(mean, variance, known.astype(np.float64))


@dataclass(frozen=True, eq=False, slots=True)
class Reading:
    """A column as it is in the source and as readers see it.

    codes: (n,) int32, of the source, of which there are ``n_codes``; ``null`` is that of NULL, -1
    where there is none. Readers see ``rows`` rows with each of ``labels`` (indices) in a class; of
    each class there is one entry, or ``classes`` says which class each is of. A label covers the
    codes first to last, or members[start[i]:start[i + 1]]. line: the places of labels where they
    lie on one; tree: that of the values, whose leaf is ``leaf`` (n_codes,), -1 for none; cells: the
    nodes below which nothing is known of rows, one of each leaf; names: of each code, None where it
    has none; texts: of each label; ordered: whether the order of the codes means something.
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
        """How many labels there are."""
        return len(self.first)

    @property
    def of_labels(self) -> Floats:
        """The published rows of each label."""
        rows = np.bincount(self.labels, weights=self.rows, minlength=self.n_labels)
        return np.asarray(rows, np.float64)

    @property
    def of_codes(self) -> Floats:
        """The rows of the source of each code."""
        return np.bincount(self.codes, minlength=self.n_codes).astype(np.float64)

    def covered(self, wanted: NDArray[np.bool_]) -> Floats:
        """Return the share of each label's codes that are wanted; wanted: (n_codes,)."""
        if self.members is None or self.start is None:
            until = np.concatenate([[0], np.cumsum(wanted)])
            found, among = until[self.last + 1] - until[self.first], self.last - self.first + 1
        else:
            until = np.concatenate([[0], np.cumsum(wanted[self.members])])
            found, among = np.diff(until[self.start]), np.diff(self.start)
        return np.asarray(found / np.maximum(among, 1), np.float64)

    def covers_alone(self, code: int) -> NDArray[np.bool_]:
        """Return which labels name a code: those of it alone, and sets that have it."""
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
        """Return which labels may stand for a value from one code to another, as ``runs`` does.

        On a line these are also the labels that have no more than an end in common with it.
        """
        shares = self.runs(first, last)
        if self.line is None or self.members is not None:
            return shares > 0.0
        meets = (self.first <= last[:, None]) & (self.last >= first[:, None])
        # neighbours, each half a step wide, may overlap by what their ends were rounded
        overlaps: NDArray[np.bool_] = (shares > _SLACK) | (meets & (self.first <= self.last))
        return overlaps

    def moments(self) -> Moments:
        """Return those of each label; of sets those of their elements."""
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
    """Return the quasi-identifiers and the sensitive columns that readers see."""
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
    """Return the members of each set, NULL among them, and where those of each begin."""
    assert cells.members is not None  # noqa: S101 - the caller has looked
    start, codes = cells.members
    members = np.insert(codes, start[1:][cells.nulls], null)
    return start + np.concatenate([[0], np.cumsum(cells.nulls)]), members.astype(np.int32)


def line_of(column: EncodedColumn, cells: CellColumn) -> Line | None:
    """Return where labels and codes of a column are, None where they are on no line."""
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
    """Return where bands begin and end, open ones where the labels from low to high do."""
    shown = np.concatenate([low, high])
    shown = shown[np.isfinite(shown)]
    if len(shown) and not bands.low[0]:
        begins = np.append(min(shown.min(), ends[0]), begins[1:])
    if len(shown) and not bands.high[-1]:
        ends = np.append(ends[:-1], max(shown.max(), begins[-1]))
    return begins, ends


def _closed(cells: CellColumn, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Return the ends of ranges; open ones reach as far as any end that some label shows.

    As far as the source, they would tell of its last value, which is one person's.
    """
    is_open = opened(cells.labels)
    shown = np.concatenate([low[~is_open[0]], high[~is_open[1]]])
    shown = shown[np.isfinite(shown)]
    if not len(shown):
        return low, high
    low = np.where(is_open[0] & np.isfinite(low), shown.min(), low)
    return low, np.where(is_open[1] & np.isfinite(high), shown.max(), high)


def opened(texts: Sequence[str | None]) -> NDArray[np.bool_]:
    """Return which labels have no lower end, and which no upper one, (2, n_labels)."""
    known = [text or "*" for text in texts]
    lower = [text.startswith(("*", *_OPEN_LOW)) for text in known]
    return np.array([lower, [text.endswith(("*", *_OPEN_HIGH)) for text in known]], np.bool_)


def _scale(column: EncodedColumn) -> tuple[float, float, Floats]:
    """Return the least value, the range of the values, and where each is between 0 and 1."""
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
    """Return the places of sensitive numbers, None where some that is published is none.

    shown: the codes that are published; NULL has no place, nor has what is endless in the source.
    """
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
    """Return the published rows of each pair of labels as a sparse matrix, (labels a, labels b).

    None of two sensitive columns, of which it is known only how often a class has each alone.
    """
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
    from scipy.sparse import coo_matrix

    return coo_matrix((rows.astype(np.float64), (first, second)), shape=shape).tocsr()
