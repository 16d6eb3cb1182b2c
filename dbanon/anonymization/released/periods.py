"""The days that the name of a period stands for."""

from __future__ import annotations

import re
from datetime import date

import numpy as np

from dbanon.anonymization.encoding.bands import period_ends

_YEARS = re.compile(r"(\d{4})-(\d{4})")
_NAMES = {
    "year": re.compile(r"(\d{4})"),
    "quarter": re.compile(r"(\d{4})-Q([1-4])"),
    "week": re.compile(r"(\d{4})-W(\d\d)"),
    "month": re.compile(r"(\d{4})-(\d\d)"),
    "day": re.compile(r"(\d{4})-(\d\d)-(\d\d)"),
}
_MONTHS_OF_QUARTER = 3


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
