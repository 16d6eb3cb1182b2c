"""Derive taxonomies from the distinct values of a column.

Values come as PostgreSQL prints them, or as Python values that print the same (int, Decimal,
date); NULL and repetitions are ignored. An inner label never equals a value. All are
O(values x levels), after sorting.
"""

from __future__ import annotations

from collections import Counter
from datetime import date
from decimal import Context, Decimal, InvalidOperation
from itertools import pairwise
from string import ascii_uppercase
from typing import TYPE_CHECKING, TypeVar

from dbanon.domain.taxonomy import ROOT_LABEL
from dbanon.formats.taxonomy_builder import Problems, from_levels

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from dbanon.domain.taxonomy import Taxonomy

T = TypeVar("T")
Value = str | int | Decimal | date | None

_MAX_EXPONENT = 400  # float8 ends at 1e308
_MAX_LENGTH = 400
# Wide enough that no operation on numbers within those limits rounds.
_EXACT = Context(prec=2000, traps=[InvalidOperation])


def derive_flat(name: str, values: Iterable[Value]) -> Taxonomy:
    """Put the root above the values, in the given order."""
    return _finish(name, [[text] for text in _texts(values)])


def derive_intervals(
    name: str, values: Iterable[Value], *, widths: Sequence[str | int | float | Decimal]
) -> Taxonomy:
    """Put half-open intervals ``[lo, hi)`` above numbers, one level for each width.

    An interval begins at a multiple of its width. Each width is a multiple of the one before,
    so that intervals nest. For a domain that is wider than the data pass ``range(lo, hi)``.
    """
    problems = Problems(name)
    steps = _steps(widths, problems)
    numbers = _parse_all(
        _texts(values), _number, what="finite numbers of reasonable size", problems=problems
    )
    problems.raise_if_any()
    ordered = sorted(numbers.items(), key=lambda item: (item[1], item[0]))
    return _finish(
        name, [[text, *(_interval(number, step) for step in steps)] for text, number in ordered]
    )


def derive_dates(name: str, values: Iterable[Value]) -> Taxonomy:
    """Put month, quarter, year and decade above days."""
    problems = Problems(name)
    days = _parse_all(_texts(values), _day, what="days as YYYY-MM-DD", problems=problems)
    problems.raise_if_any()
    return _finish(name, [[text, *_periods(days[text])] for text in sorted(days)])


def derive_prefix(name: str, values: Iterable[Value]) -> Taxonomy:
    """Mask codes of one length from the right: 94305, 9430*, 943**, 94***, 9****."""
    texts = sorted(_texts(values))
    lengths = Counter(len(text) for text in texts)
    if len(lengths) > 1:
        found = ", ".join(f"{count} of {length}" for length, count in sorted(lengths.items()))
        problems = Problems(name)
        problems.add(0, f"prefixes need values of one length, found {found} characters")
        problems.raise_if_any()
    width = max(lengths, default=0)
    kept = range(width - 1, 0, -1)
    return _finish(name, [[t, *(t[:n] + "*" * (width - n) for n in kept)] for t in texts])


def _texts(values: Iterable[Value]) -> list[str]:
    return list(dict.fromkeys(str(value) for value in values if value is not None))


def _parse_all(
    texts: list[str], parse: Callable[[str], T | None], *, what: str, problems: Problems
) -> dict[str, T]:
    parsed = {text: parse(text) for text in texts}
    wrong = sum(value is None for value in parsed.values())
    if wrong:
        problems.add(0, f"{wrong} of {len(texts)} values are not {what}")
    return {text: value for text, value in parsed.items() if value is not None}


def _number(text: str) -> Decimal | None:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    if not number.is_finite() or len(text) > _MAX_LENGTH:
        return None
    return number if abs(number.adjusted()) <= _MAX_EXPONENT else None


def _steps(widths: Sequence[str | int | float | Decimal], problems: Problems) -> list[Decimal]:
    parsed = [_number(str(width)) for width in widths]
    steps = [step for step in parsed if step is not None and step > 0]
    if not steps or len(steps) < len(parsed):
        problems.add(0, "widths are positive numbers, at least one")
    for narrow, wide in pairwise(steps):
        if wide <= narrow or _EXACT.remainder(wide, narrow):
            problems.add(0, f"width {wide} is not a multiple of width {narrow}")
    return steps


def _interval(number: Decimal, step: Decimal) -> str:
    rest = _EXACT.remainder(number, step)
    low = _EXACT.subtract(number, rest if rest >= 0 else _EXACT.add(rest, step))
    return f"[{_plain(low)}, {_plain(_EXACT.add(low, step))})"


def _plain(number: Decimal) -> str:
    return format(_EXACT.normalize(number) if number else Decimal(0), "f")


def _day(text: str) -> date | None:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return None
    # Other spellings of ISO 8601 are not what PostgreSQL prints.
    return day if str(day) == text else None


def _periods(day: date) -> tuple[str, str, str, str]:
    year, decade = f"{day.year:04}", day.year // 10 * 10
    return (
        f"{year}-{day.month:02}",
        f"{year}-Q{(day.month + 2) // 3}",
        year,
        f"{decade:04}-{decade + 9:04}",
    )


def _finish(name: str, paths: list[list[str]]) -> Taxonomy:
    inner = {ROOT_LABEL}.union(*(path[1:] for path in paths))
    clashes = sum(path[0] in inner for path in paths)
    if clashes:
        problems = Problems(name)
        problems.add(0, f"{clashes} values read like the label of an inner node")
        problems.raise_if_any()
    return from_levels(name, ([*path, ROOT_LABEL] for path in paths))


def from_ranges(name: str, ranges: Iterable[Sequence[str]]) -> Taxonomy:
    """Make a tree of codes of a letter and two digits: (first, last, label) of each branch.

    Codes are ordered by letter, then by number; every code of a range becomes a leaf.
    """
    codes = [f"{letter}{number:02d}" for letter in ascii_uppercase for number in range(100)]
    rows = [
        (code, f"{label} ({first}-{last})")
        for first, last, label in ranges
        for code in codes[codes.index(first) : codes.index(last) + 1]
    ]
    return from_levels(name, rows)
