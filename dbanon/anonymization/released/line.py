"""Published ranges of values that lie on a line, the codes in them, and the days of periods."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from datetime import date
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dbanon.anonymization.encoding.bands import period_ends
from dbanon.anonymization.ranges import DAY, Ends, number_of
from dbanon.domain.policy import BOUNDS
from dbanon.domain.table import ColumnKind

if TYPE_CHECKING:
    from dbanon.domain.assignment import EncodedColumn


_YEARS = re.compile(r"(\d{4})-(\d{4})")
_NAMES = {
    "year": re.compile(r"(\d{4})"),
    "quarter": re.compile(r"(\d{4})-Q([1-4])"),
    "week": re.compile(r"(\d{4})-W(\d\d)"),
    "month": re.compile(r"(\d{4})-(\d\d)"),
    "day": re.compile(r"(\d{4})-(\d\d)-(\d\d)"),
}
_MONTHS_OF_QUARTER = 3

NAN = float("nan")
"""The place of what is not on the scale."""

_TEXT = re.compile(r"\[(.*), (.*)([\])])")
_INTERVAL = re.compile(r"(?:(-?\d+) days? ?)?(?:(\d+):(\d\d):(\d\d(?:\.\d+)?))?")


class Cell(NamedTuple):
    """What a label covers: codes, both ends among them, perhaps NULL, and its ends on the scale."""

    lo: int
    hi: int
    low: float = NAN
    high: float = NAN
    nulls: bool = False


def ends_of_text(kind: ColumnKind, label: str) -> Ends:
    """Read a range that is written for people, or the name of a period."""
    if label == "*":
        return Ends(None, None)
    if label.endswith("+"):
        return Ends(number_of(kind, label[:-1]), None)
    if label.startswith("<"):
        closed = label.startswith("<=")
        return Ends(None, number_of(kind, label.lstrip("<=")), closed)
    found = _TEXT.fullmatch(label)
    least, most, closing = found.groups() if found else (label, label, "]")
    return Ends(_span(kind, least)[0], _span(kind, most)[1], closing == "]")


def _span(kind: ColumnKind, text: str) -> tuple[int | float, int | float]:
    """Return the first and the last moment of a period, or a value twice."""
    days = period_days(text) if kind.is_moment else None
    if days is None:
        return number_of(kind, text), number_of(kind, text)
    first, last = (int(day.astype("datetime64[us]").astype(np.int64)) for day in days)
    return first, last if kind is ColumnKind.DATE else last + DAY - 1


def ends_of_pair(kind: ColumnKind, recoding: str, pair: tuple[str | None, str | None]) -> Ends:
    """Read the two columns of a range: its ends, or its middle and how far these are from it."""
    first, second = pair
    if recoding == BOUNDS:
        least, most = (None if text is None else number_of(kind, text) for text in pair)
        return Ends(least, most)
    if first is None or second is None:
        return Ends(None, None)
    middle, radius = number_of(kind, first), _radius(kind, second)
    return Ends(middle - radius, middle + radius)


def _radius(kind: ColumnKind, text: str) -> int | float:
    if not kind.is_moment:
        return float(text)
    if kind is ColumnKind.DATE:
        return int(text) * DAY
    found = _INTERVAL.fullmatch(text)
    assert found is not None  # noqa: S101 - the session sets how intervals are written
    days, hours, minutes, seconds = (float(part or 0) for part in found.groups())
    return round(days * DAY + (hours * 3600 + minutes * 60 + seconds) * 1e6)


class Line:
    """The values of a column as numbers, and where they are."""

    def __init__(self, column: EncodedColumn) -> None:
        self.kind, self.size = column.kind, column.size
        values = column.values
        if values.dtype.kind == "M":
            values = values.astype("datetime64[us]").astype(np.int64)
        self.numbers: list[int | float] = values.tolist()

    def cell(self, ends: Ends) -> Cell:
        """Return what a range covers; open at both ends, it may stand for NULL, too."""
        least, most, closed = ends
        lo = 0 if least is None else bisect_left(self.numbers, least)
        hi = self.size - 1
        if most is not None:
            hi = (bisect_right if closed else bisect_left)(self.numbers, most) - 1
        low = 0.0 if least is None else self.place(least)
        high = 1.0 if most is None else self.place(most)
        nulls = least is None and most is None
        return Cell(lo, max(hi, lo - 1), low, high, nulls=nulls)

    def code(self, text: str) -> int | None:
        """Return the code of a value, None where the source does not have it."""
        number = number_of(self.kind, text)
        code = bisect_left(self.numbers, number)
        return code if code < self.size and self.numbers[code] == number else None

    def place(self, number: float) -> float:
        """Return where a number is on the scale of the column, which it may lie beyond."""
        if self.size < 2 or self.numbers[0] == self.numbers[-1]:  # noqa: PLR2004 - a range has two
            return 0.0
        first, last = self.numbers[0], self.numbers[-1]
        # quarters of the largest floats have a difference
        return (number / 4 - first / 4) / (last / 4 - first / 4)


def period_days(name: str) -> tuple[np.datetime64, np.datetime64] | None:
    """Return the first and the last day of a period, None for what is the name of none."""
    if years := _YEARS.fullmatch(name):
        return np.datetime64(f"{years[1]}-01-01"), np.datetime64(f"{years[2]}-12-31")
    for period, pattern in _NAMES.items():
        if found := pattern.fullmatch(name):
            day = np.array([_first_day(period, *map(int, found.groups()))], "datetime64[D]")
            begin, end = period_ends(period, day)
            return begin[0], end[0] - 1
    return None


def _first_day(period: str, year: int, *rest: int) -> str:
    if period == "week":
        return date.fromisocalendar(year, rest[0], 1).isoformat()
    if period == "quarter":
        rest = (rest[0] * _MONTHS_OF_QUARTER - 2,)
    month, day = (*rest, 1, 1)[:2]
    return f"{year:04}-{month:02}-{day:02}"
