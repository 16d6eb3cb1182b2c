"""The day, month, quarter, year or decade of a group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.encoding.bands import period_ends, period_name
from dbanon.anonymization.recodings.groups import column_boxes, distinct_pairs, value_column
from dbanon.domain.policy import DATE_PART, PERIODS
from dbanon.domain.table import ColumnKind, Structure

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.domain.assignment import Assignment, EncodedColumn, ValueColumn

_COARSEST = PERIODS[-1]
_WEEK = "week"  # lies in no other period as a whole


@dataclass(frozen=True, slots=True)
class DatePart:
    """The shortest period that has all values of the group, as text; ``*`` when NULL is mixed in.

    A day, month, quarter, year or decade, or the decades from one to another: ``2019-07``,
    ``2019-Q3``, ``1980-1989``, ``1980-2009``. Nothing shorter than the floor of the column; a week
    where that is one.
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
            column, DATE_PART, labels=labels, place=place, loss=loss[place], size=boxes.size
        )


def _days(
    column: EncodedColumn, lo: NDArray[np.int64], hi: NDArray[np.int64]
) -> tuple[NDArray[np.datetime64], NDArray[np.datetime64]]:
    """Return the first and the last day of each range; of a column of cells, those of these."""
    days = column.values.astype("datetime64[D]")
    first, last = days[lo], days[hi]
    if column.bands is not None:
        last = period_ends(str(column.rule.at_least), last)[1] - 1
    return first, last


def _periods(
    first: NDArray[np.datetime64], last: NDArray[np.datetime64], *, finest: object
) -> tuple[list[str], NDArray[np.int64]]:
    """Return the name and the days of the shortest period from a finest one on that has both."""
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
    """Return days as shares of the range of the column; a date alone loses nothing."""
    if column.size == 1:
        return np.zeros(len(width))
    days = column.values.astype("datetime64[D]")
    end = period_ends(str(column.rule.at_least or PERIODS[0]), days[-1:])[1]
    span = int((end - days[:1]).astype(np.int64)[0])
    exact = 1 if column.kind is ColumnKind.DATE and column.bands is None else 0
    shares: NDArray[np.float64] = np.clip((width - exact) / max(span - exact, 1), 0.0, 1.0)
    return shares
