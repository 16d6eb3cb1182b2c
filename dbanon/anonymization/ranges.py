"""Read and write literals of range types, and derive their form in two columns."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from dbanon.anonymization.encoding.text import number_text, value_texts
from dbanon.domain.policy import CENTER
from dbanon.domain.table import ColumnKind

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
