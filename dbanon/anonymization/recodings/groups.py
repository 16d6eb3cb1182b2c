"""Boxes of groups, cells and labels, as recodings use them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dbanon.anonymization.encoding.bands import number_text, value_texts
from dbanon.anonymization.loss.costs import box_losses, column_costs
from dbanon.domain.assignment import Assignment, Bands, EncodedColumn, ValueColumn
from dbanon.domain.policy import CENTER
from dbanon.domain.table import ColumnKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


_TIMES = frozenset({ColumnKind.TIMESTAMP, ColumnKind.TIMESTAMPTZ})


@dataclass(frozen=True, eq=False, slots=True)
class ColumnBoxes:
    """Least and greatest code, rows and certainty penalty of all groups, (n_groups,) each."""

    lo: NDArray[np.int32]
    hi: NDArray[np.int32]
    size: NDArray[np.int64]
    loss: NDArray[np.float64]


def column_boxes(column: EncodedColumn, assignment: Assignment) -> ColumnBoxes:
    """Return the bounds of each group; O(n)."""
    from dbanon.kernels.boxes.costs import group_boxes

    codes = np.ascontiguousarray(column.codes[:, None])
    lo, hi, size = group_boxes(codes, assignment.group, assignment.n_groups)
    loss = box_losses([column_costs(column)], lo, hi)
    return ColumnBoxes(lo[:, 0], hi[:, 0], size, loss[:, 0])


def distinct_pairs(
    boxes: ColumnBoxes, size: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the distinct bounds, lo and hi, and for each group the index of its own."""
    keys, place = np.unique(boxes.lo * np.int64(size + 1) + boxes.hi, return_inverse=True)
    return keys // (size + 1), keys % (size + 1), place


def value_column(
    column: EncodedColumn,
    boxes: ColumnBoxes,
    *,
    recoding: str,
    labels: Sequence[str | None],
    place: NDArray[np.int64],
    loss: NDArray[np.float64] | None = None,
) -> ValueColumn:
    """Give every group its label, ``labels[place]``; loss: of each group, by default of its box."""
    lost = boxes.loss if loss is None else loss
    labelled = of_labels(labels, place, loss=lost, size=boxes.size)
    return ValueColumn(column.name, recoding, column.kind, *labelled)


def of_labels(
    labels: Sequence[str | None],
    place: NDArray[np.int64],
    *,
    loss: NDArray[np.float64],
    size: NDArray[np.int64],
) -> tuple[NDArray[np.int32], tuple[str | None, ...], NDArray[np.float64]]:
    """Return the distinct label of each group, the labels, and the mean loss of their rows."""
    index_of = {label: i for i, label in enumerate(dict.fromkeys(labels))}
    index = np.array([index_of[label] for label in labels], np.int32)[place]
    rows = np.bincount(index, weights=size, minlength=len(index_of))
    lost = np.bincount(index, weights=loss * size, minlength=len(index_of))
    return index, tuple(index_of), np.clip(lost / rows, 0.0, 1.0)


def range_literal(column: EncodedColumn, low: str, high: str, *, closing: str = "]") -> str:
    """Return a literal of a range type: ``[20,40)``, ``[90,)``, ``(,18)``; empty ends are open.

    A range of integers is open if its type cannot hold the integer beyond an end.
    """
    if column.greatest is not None:
        if low and int(low) < -column.greatest - 1:
            low = ""
        if high and int(high) + (closing == "]") > column.greatest:
            high = ""
    quote = '"' if column.kind in _TIMES else ""
    begin = f"[{quote}{low}{quote}" if low else "("
    end = f"{quote}{high}{quote}{closing}" if high else ")"
    return f"{begin},{end}"


def cells_literal(column: EncodedColumn, bands: Bands, lo: int, hi: int) -> str:
    """Return the cells lo..hi as a literal of a range type."""
    closing = _closing(bands, hi)
    return range_literal(column, bands.low[lo], bands.high[hi], closing=closing)


def cells_text(bands: Bands, lo: int, hi: int) -> str:
    """Return readable text: ``[20, 40)``, ``90+``, ``<18``, ``1984``, ``[1984, 1986]``, ``*``."""
    if bands.names:
        return bands.names[lo] if lo == hi else f"[{bands.names[lo]}, {bands.names[hi]}]"
    low, high, closing = bands.low[lo], bands.high[hi], _closing(bands, hi)
    if not high:
        return f"{low}+" if low else "*"
    if not low:
        return f"<={high}" if closing == "]" else f"<{high}"
    return low if lo == hi and closing == "]" else f"[{low}, {high}{closing}"


def _closing(bands: Bands, cell: int) -> str:
    """Return the closing bracket of a range that ends with a cell; below the bottom it is open."""
    return "]" if bands.closed and bands.low[cell] else ")"


DAY = 86_400_000_000
"""Microseconds of a day."""

_FIRST = int(np.datetime64("0001-01-01", "us").astype(np.int64))
_LITERAL = re.compile(r'[\[(]"?([^",]*)"?,"?([^",]*)"?([\])])')
_OF_STEPS = {ColumnKind.INTEGER: 1, ColumnKind.DATE: DAY}


class Ends(NamedTuple):
    """Ends of a range, None if open; closed: the upper end belongs to the range."""

    least: float | None
    most: float | None
    closed: bool = True


def number_of(kind: ColumnKind, text: str) -> int | float:
    """Convert a value to a number, moments to microseconds since 1970; raises ValueError."""
    if kind.is_moment:
        return int(np.datetime64(text.removesuffix("+00"), "us").astype(np.int64))
    if kind is ColumnKind.INTEGER:
        try:
            return int(text)
        except ValueError:
            return float(text)  # a mean
    return float(text)


def ends_of_literal(kind: ColumnKind, label: str) -> Ends:
    """Read a literal of a range type."""
    found = _LITERAL.fullmatch(label)
    assert found is not None  # noqa: S101 - PostgreSQL and the recodings write no other
    least, most = (number_of(kind, text) if text else None for text in found.groups()[:2])
    return Ends(least, most, found[3] == "]")


def seen_in_pairs(kind: ColumnKind, recoding: str, ends: Ends) -> Ends:
    """Return the range as two published columns show it; a center needs both ends and may round."""
    least, most, closed = ends
    step = _OF_STEPS.get(kind)
    if most is not None and not closed and step is not None:
        most -= step
    if recoding != CENTER:
        return Ends(least, most)
    if least is None or most is None:
        return Ends(None, None)
    if kind.is_moment:
        unit = DAY if kind is ColumnKind.DATE else 1
        odd = (most - least) % (2 * unit)
        least, most = (least - odd, most) if least - odd >= _FIRST else (least, most + odd)
    return Ends(least, most)


def literal_of(kind: ColumnKind, ends: Ends) -> str:
    """Write a closed range in the form that ``ends_of_literal`` reads."""
    least, most = ("" if end is None else _text(kind, end) for end in ends[:2])
    return f"[{least},{most}]"


def _text(kind: ColumnKind, number: float) -> str:
    if not kind.is_moment:
        return number_text(number)
    moment = np.array([number], np.int64).view("datetime64[us]")
    if kind is ColumnKind.DATE:
        moment = moment.astype("datetime64[D]")
    return value_texts(kind, moment)[0]
