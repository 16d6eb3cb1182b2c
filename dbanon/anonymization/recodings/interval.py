"""Intervals of ordered values: of a group, on a grid, of dates, and equal for all groups."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dbanon.anonymization.encoding.bands import (
    ancestors_by_height,
    decimal_text,
    period_ends,
    period_name,
    value_texts,
)
from dbanon.anonymization.loss.costs import box_losses, column_costs
from dbanon.anonymization.recodings.groups import (
    cells_literal,
    cells_text,
    column_boxes,
    distinct_pairs,
    ends_of_literal,
    literal_of,
    range_literal,
    seen_in_pairs,
    value_column,
)
from dbanon.anonymization.recodings.label import Label, common_ancestors, with_all_above
from dbanon.domain.assignment import Assignment, EncodedColumn, Taxonomy, ValueColumn
from dbanon.domain.errors import PolicyError
from dbanon.domain.policy import DATE_PART, FULL_DOMAIN, GLOBAL, PAIRS, PERIODS
from dbanon.domain.table import ColumnKind, Structure, quote_identifier

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from dbanon.domain.assignment import Recoding


_UNITS_PER_SNAP = {
    ColumnKind.INTEGER: 1,
    ColumnKind.DATE: 1,
    ColumnKind.TIMESTAMP: 1_000_000,
    ColumnKind.TIMESTAMPTZ: 1_000_000,
}

_COARSEST = PERIODS[-1]
_WEEK = "week"  # lies in no other period as a whole


@dataclass(frozen=True, slots=True)
class Interval:
    """The least and the greatest value, as a literal of a PostgreSQL range type.

    Both bounds are inclusive, with a floor the ends of cells. A group of NULLs publishes NULL; one
    that mixes NULL and values publishes the unbounded range. ``bounds`` is served as the two
    bounds, and ``center`` as middle and radius; ranges that look the same in this form share one
    label.
    """

    recoding: str = "interval"
    accepts: ClassVar[frozenset[Structure]] = frozenset({Structure.LINE})

    def publish(self, column: EncodedColumn, assignment: Assignment) -> ValueColumn:
        """Return a range for every group; O(n) and one text for each distinct range."""

        def served(label: str | None) -> str | None:
            return _as_read(column, self.recoding, label) if self.recoding in PAIRS else label

        literal: Callable[[Any, Any], str] = partial(range_literal, column)
        if column.bands is not None:
            literal = partial(cells_literal, column, column.bands)
        return _publish(
            column, assignment, recoding=self.recoding, literal=literal, mixed="(,)", served=served
        )


def _as_read(column: EncodedColumn, recoding: str, label: str | None) -> str:
    """Return the literal that two published columns show for a label."""
    ends = ends_of_literal(column.kind, label or "(,)")
    seen = seen_in_pairs(column.kind, recoding, ends)
    if (seen.least, seen.most) == (None, None):
        return "(,)"
    if not column.kind.is_moment and label and (seen.least, seen.most) == (ends.least, ends.most):
        return label  # with all its digits
    return literal_of(column.kind, seen)


@dataclass(frozen=True, slots=True)
class IntervalText:
    """The same as readable text: ``[30, 39]``, ``30`` if all are equal, ``*`` if NULL is mixed."""

    accepts = frozenset({Structure.LINE, Structure.ORDER})

    def publish(self, column: EncodedColumn, assignment: Assignment) -> ValueColumn:
        """Return a text for every group; O(n) and one text for each distinct range."""

        def literal(lo: Any, hi: Any) -> str:  # noqa: ANN401 - texts, or the codes of cells
            if column.bands is not None:
                return cells_text(column.bands, lo, hi)
            return str(lo) if lo == hi else f"[{lo}, {hi}]"

        return _publish(column, assignment, recoding="interval-text", literal=literal, mixed="*")


def _same(label: str | None) -> str | None:
    return label


def _publish(
    column: EncodedColumn,
    assignment: Assignment,
    *,
    recoding: str,
    literal: Callable[[Any, Any], str],
    mixed: str,
    served: Callable[[str | None], str | None] = _same,
) -> ValueColumn:
    boxes = column_boxes(column, assignment)
    lo, hi, place = distinct_pairs(boxes, column.size)
    labels: list[str | None] = [None if low == column.size else mixed for low in lo]
    ranges = np.flatnonzero(hi < column.size)
    lows, highs, widths = _bounds(column, lo[ranges], hi[ranges])
    for i, low, high in zip(ranges.tolist(), lows, highs, strict=True):
        labels[i] = literal(low, high)
    labels = [*map(served, labels)]
    loss = None
    if widths is not None:
        wider = np.where(lo < hi, 1.0, 0.0)
        wider[ranges] = widths
        loss = wider[place]
    return value_column(column, boxes, recoding=recoding, labels=labels, place=place, loss=loss)


def _bounds(
    column: EncodedColumn, lo: NDArray[np.int64], hi: NDArray[np.int64]
) -> tuple[list[Any], list[Any], list[float] | None]:
    """Return the texts of the bounds, and the loss of each range that a grid widened.

    With cells, return their codes instead of texts.
    """
    if column.bands is not None:
        return lo.tolist(), hi.tolist(), None
    codes, place = np.unique(np.concatenate([lo, hi]), return_inverse=True)
    low, high = place[: len(lo)].tolist(), place[len(lo) :].tolist()
    if column.rule.snap is None:
        texts = value_texts(column.kind, column.values[codes])
        return [texts[i] for i in low], [texts[i] for i in high], None
    snapped = _snap_bounds(column, codes)
    widths = [snapped.high[j] - snapped.low[i] for i, j in zip(low, high, strict=True)]
    return (
        [snapped.low_texts[i] for i in low],
        [snapped.high_texts[i] for i in high],
        # compared first: a quotient of such integers may be too large for a float
        [float(bool(snapped.span)) if w >= snapped.span else w / snapped.span for w in widths],
    )


@dataclass(frozen=True, slots=True)
class DatePart:
    """The shortest period that contains all values of the group, as text; ``*`` if mixed with NULL.

    A day, month, quarter, year or decade, or a range of decades: ``2019-07``, ``2019-Q3``,
    ``1980-1989``, ``1980-2009``. Not shorter than the floor of the column; weeks only as floor.
    """

    accepts = frozenset({Structure.LINE})

    def publish(self, column: EncodedColumn, assignment: Assignment) -> ValueColumn:
        """Return a period for every group; O(n) and one text for each distinct range."""
        boxes = column_boxes(column, assignment)
        lo, hi, place = distinct_pairs(boxes, column.size)
        labels: list[str | None] = [None if low == column.size else "*" for low in lo]
        loss = np.where(lo < hi, 1.0, 0.0)
        known = np.flatnonzero(hi < column.size)
        if len(known):
            first, last = _days(column, lo[known], hi[known])
            names, width = _periods(first, last, finest=column.rule.at_least or PERIODS[0])
            for i, name in zip(known.tolist(), names, strict=True):
                labels[i] = name
            loss[known] = _shares(column, width)
        return value_column(
            column, boxes, recoding=DATE_PART, labels=labels, place=place, loss=loss[place]
        )


def _days(
    column: EncodedColumn, lo: NDArray[np.int64], hi: NDArray[np.int64]
) -> tuple[NDArray[np.datetime64], NDArray[np.datetime64]]:
    """Return the first and the last day of each range, or of its cells."""
    days = column.values.astype("datetime64[D]")
    first, last = days[lo], days[hi]
    if column.bands is not None:
        last = period_ends(str(column.rule.at_least), last)[1] - 1
    return first, last


def _periods(
    first: NDArray[np.datetime64], last: NDArray[np.datetime64], *, finest: object
) -> tuple[list[str], NDArray[np.int64]]:
    """Return the name and the days of the shortest period, at least ``finest``, with both days."""
    names = [""] * len(first)
    width = np.zeros(len(first), np.int64)
    left = np.arange(len(first))
    for period in PERIODS[PERIODS.index(str(finest)) :]:
        if period == _WEEK != finest:
            continue
        begin, end = period_ends(period, first[left])
        inside = last[left] < end
        for i, day in zip(left[inside].tolist(), begin[inside], strict=True):
            names[i] = period_name(period, day)
        width[left[inside]] = (end - begin)[inside].astype(np.int64)
        left = left[~inside]
    begin, end = period_ends(_COARSEST, first[left])[0], period_ends(_COARSEST, last[left])[1]
    for i, start, stop in zip(left.tolist(), begin, end, strict=True):
        names[i] = f"{str(start)[:4]}-{str(stop - 1)[:4]}"
    width[left] = (end - begin).astype(np.int64)
    return names, width


def _shares(column: EncodedColumn, width: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return days as shares of the range of the column; a single date loses nothing."""
    if column.size == 1:
        return np.zeros(len(width))
    days = column.values.astype("datetime64[D]")
    end = period_ends(str(column.rule.at_least or PERIODS[0]), days[-1:])[1]
    span = int((end - days[:1]).astype(np.int64)[0])
    exact = 1 if column.kind is ColumnKind.DATE and column.bands is None else 0
    shares: NDArray[np.float64] = np.clip((width - exact) / max(span - exact, 1), 0.0, 1.0)
    return shares


@dataclass(frozen=True, slots=True)
class _SnappedBounds:
    """Values widened to grid lines, as exact integers and as text; span: the column's range."""

    low: list[int]
    high: list[int]
    low_texts: list[str]
    high_texts: list[str]
    span: int


def _snap_bounds(column: EncodedColumn, codes: NDArray[np.int64]) -> _SnappedBounds:
    """Widen values to multiples of the rule's ``snap``, exactly; refuse an invalid grid."""
    values = column.values[np.append(codes, [0, -1])] if column.size else column.values
    if values.dtype.kind == "f":
        exact = [Decimal(repr(value)) for value in values.tolist()]
        step, places = _grid(column, exact)
        units = [int(number.scaleb(places)) for number in exact]
    else:
        step, places = _grid(column, [])
        units = values.astype(np.int64).tolist()
    ends, units = units[-2:], units[:-2]
    low = [unit // step * step for unit in units]
    high = [-(-unit // step) * step for unit in units]
    return _SnappedBounds(
        low=low,
        high=high,
        low_texts=_texts(column, low, places),
        high_texts=_texts(column, high, places),
        span=ends[1] - ends[0] if ends else 0,
    )


def _grid(column: EncodedColumn, exact: list[Decimal]) -> tuple[int, int]:
    """Return the grid's step in units, and the decimals of a unit."""
    snap, places = Decimal(repr(column.rule.snap)), 0
    if column.kind in _UNITS_PER_SNAP:
        step = snap * _UNITS_PER_SNAP[column.kind]
    else:
        places = max(0, *(-_exponent(number) for number in [snap, *exact]))
        step = snap.scaleb(places)
    if not step.is_finite() or step <= 0 or step != int(step):
        msg = f"column {quote_identifier(column.name)}: snap must be a positive whole step"
        raise PolicyError(msg, hint="give snap in units of the column (days, seconds)")
    return int(step), places


def _exponent(number: Decimal) -> int:
    exponent = number.as_tuple().exponent
    return exponent if isinstance(exponent, int) else 0


def _texts(column: EncodedColumn, units: list[int], places: int) -> list[str]:
    if column.kind is ColumnKind.INTEGER:
        return [str(unit) for unit in units]
    if column.kind in _UNITS_PER_SNAP:
        try:
            grid = np.array(units, np.int64)
        except OverflowError:
            msg = f"column {quote_identifier(column.name)}: snap leaves no date or time to round to"
            raise PolicyError(
                msg, hint="give snap in units of the column (days, seconds)"
            ) from None
        return value_texts(column.kind, grid.view(column.values.dtype))
    return [decimal_text(unit, places) for unit in units]


_PUBLISHED: Mapping[Structure, Recoding] = {
    Structure.LINE: Interval(),
    Structure.ORDER: IntervalText(),
    Structure.TREE: Label(),
}


@dataclass(frozen=True, slots=True)
class Global:
    """The cell of the finest grid that has every group within one cell.

    Equal values are published alike in all groups (single-dimensional recoding, LeFevre et al.,
    SIGMOD 2005): groups that overlap share a range of an order, or a node of one cut through a
    tree.
    """

    accepts = frozenset(Structure)

    def publish(self, column: EncodedColumn, assignment: Assignment) -> ValueColumn:
        """Return a cell for every group; O(n + g log g)."""
        cell = _cells(*_ranges(column, assignment))
        group = np.append(cell, -1).astype(np.int32)[assignment.group]
        merged = Assignment(group, int(cell.max(initial=-1)) + 1)
        published = _PUBLISHED[column.structure].publish(column, merged)
        return replace(published, recoding=GLOBAL, index=published.index[cell])


@dataclass(frozen=True, slots=True)
class FullDomain:
    """The ancestor at the lowest level at which every group is below one node.

    All values of the column are published at that level: the ancestors of height at most 1, 2 ..,
    as in lattice algorithms (Samarati, TKDE 2001). A group of NULLs publishes NULL; one that mixes
    NULL and values publishes the root.
    """

    accepts = frozenset({Structure.TREE})

    def publish(self, column: EncodedColumn, assignment: Assignment) -> ValueColumn:
        """Return a label for every group; O(n + leaves x height)."""
        taxonomy = column.taxonomy
        if taxonomy is None:
            msg = f"column {quote_identifier(column.name)} has no taxonomy"
            raise ValueError(msg)
        boxes = column_boxes(column, assignment)
        known = np.flatnonzero(boxes.lo < column.size)
        node = np.zeros(len(boxes.lo), np.int64)
        node[known] = _level(column, taxonomy, boxes.lo[known], boxes.hi[known])
        lo, hi = boxes.lo.copy(), boxes.hi.copy()
        apart = known[hi[known] < column.size]  # with NULL, the box has this loss already
        lo[apart], hi[apart] = taxonomy.leaf_lo[node[apart]], taxonomy.leaf_hi[node[apart]]
        loss = box_losses([column_costs(column)], lo[:, None], hi[:, None])[:, 0]
        distinct, place = np.unique(np.where(boxes.lo < column.size, node, -1), return_inverse=True)
        labels = [None if at < 0 else taxonomy.labels[at] for at in distinct.tolist()]
        published = value_column(
            column, boxes, recoding=FULL_DOMAIN, labels=labels, place=place, loss=loss
        )
        return replace(published, nodes=with_all_above(taxonomy, distinct[distinct >= 0]))


def _level(
    column: EncodedColumn, taxonomy: Taxonomy, lo: NDArray[np.int32], hi: NDArray[np.int32]
) -> NDArray[np.int64]:
    """Return the node of each group without NULLs at the lowest possible level."""
    least = taxonomy.leaves if column.cells is None else column.cells
    for nodes in (taxonomy.leaves.astype(np.int64), *ancestors_by_height(taxonomy)):
        is_coarse = (taxonomy.leaf_hi[nodes] >= taxonomy.leaf_hi[least]).all()
        reached = np.append(nodes, -1)
        if is_coarse and (reached[lo] == reached[hi]).all():
            return nodes[lo]
    return np.zeros(len(lo), np.int64)


def _ranges(
    column: EncodedColumn, assignment: Assignment
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the least and the greatest code of each group, or below its common ancestor."""
    boxes = column_boxes(column, assignment)
    lo, hi = boxes.lo.copy(), boxes.hi.copy()
    if column.structure is Structure.TREE and column.taxonomy is not None:
        known = np.flatnonzero(hi < column.size)
        leaves = (lo[known].astype(np.int64), hi[known].astype(np.int64))
        nodes = common_ancestors(column.taxonomy, *leaves)
        lo[known], hi[known] = column.taxonomy.leaf_lo[nodes], column.taxonomy.leaf_hi[nodes]
        lo[(lo < column.size) & (hi == column.size)] = 0  # published as the root
    return lo, hi


def _cells(lo: NDArray[np.int32], hi: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return the cell of each range; overlapping ranges share one; O(g log g)."""
    order = np.argsort(lo, kind="stable")
    reached = np.maximum.accumulate(hi[order])
    begins = np.ones(len(lo), bool)
    begins[1:] = lo[order][1:] > reached[:-1]
    cell = np.empty(len(lo), np.int64)
    cell[order] = np.cumsum(begins) - 1
    return cell
