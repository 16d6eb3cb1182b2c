"""Cells of a line: bands of numbers, and periods of dates and times."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from decimal import Decimal
from itertools import takewhile
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dbanon.domain.assignment import ROOT_LABEL, Bands, Taxonomy, height_shares
from dbanon.domain.errors import PolicyError
from dbanon.domain.policy import FLOOR
from dbanon.domain.table import ColumnKind, quote_identifier

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from numpy.typing import NDArray

    from dbanon.domain.policy import ColumnRule


def value_texts(kind: ColumnKind, values: NDArray[Any]) -> list[str]:
    """Return the text input form of each value (leaves as they are); numbers without exponent."""
    if values.dtype.kind == "O":
        return [str(value) for value in values.tolist()]
    if kind in {ColumnKind.FLOAT, ColumnKind.DECIMAL}:
        return [number_text(value) for value in values.tolist()]
    if kind is ColumnKind.DATE:
        return [str(text) for text in np.datetime_as_string(values)]
    if kind in {ColumnKind.TIMESTAMP, ColumnKind.TIMESTAMPTZ}:
        zone = "+00" if kind is ColumnKind.TIMESTAMPTZ else ""
        texts = np.datetime_as_string(values, unit="us").tolist()
        return [_trim_fraction(text.replace("T", " ")) + zone for text in texts]
    return [str(value) for value in values.tolist()]


def number_text(value: float) -> str:
    """Return the shortest decimal that reads back as the same float64."""
    text = repr(value)
    if "e" in text:
        text = np.format_float_positional(value, trim="-")
    return text.removesuffix(".0").removesuffix(".")


def decimal_text(unit: int, places: int) -> str:
    """Return a number of units of 10**-places without trailing zeros."""
    text = fixed_text(unit, places)
    return _trim_fraction(text) if places else text


def fixed_text(unit: int, places: int) -> str:
    """Return a number of units of 10**-places with that many decimals."""
    if not places:
        return str(unit)
    text = str(abs(unit)).rjust(places + 1, "0")
    return f"{'-' if unit < 0 else ''}{text[:-places]}.{text[-places:]}"


def _trim_fraction(text: str) -> str:
    return text.rstrip("0").removesuffix(".")


_FIRST_DAY = np.datetime64("0001-01-01")  # a Monday; PostgreSQL knows no year 0 to begin in
_EPOCH_WEEKDAY = 3  # 1970-01-01 is the third day after a Monday
_EPOCH_YEAR = 1970
_SAFE = 2**61  # sums of such integers do not overflow
# Below, the product of a float and a power of ten that is one is off by less than 1/2.
_EXACT, _MOST_PLACES = 2.0**51, 22


Units = Any  # an array of int64, or of int if these are too large


class Line(NamedTuple):
    """Cells: code_of (m,) of each value; begins (size,) sorted; position (size,) in [0, 1]."""

    code_of: NDArray[np.int64]
    begins: NDArray[Any]
    position: NDArray[np.float64]
    bands: Bands


def has_bands(rule: ColumnRule) -> bool:
    """Return True if the values of a line are published as cells."""
    return any(getattr(rule, key) is not None for key in FLOOR)


def to_bands(values: NDArray[Any], rule: ColumnRule, kind: ColumnKind) -> Line:
    """Put distinct values in cells, exactly, in O(m log m); the floor fits their kind."""
    if kind.is_moment:
        return _periods(values, str(rule.at_least), kind)
    return _numbers(values, rule)


class _Grid(NamedTuple):
    """Cell borders in whole units; step 0: every number is its own cell."""

    step: int
    top: int | None
    bottom: int | None

    def below(self, units: Units) -> Units:
        """Return the grid lines at or below."""
        return units // self.step * self.step if self.step else units

    def cells(self, units: Units) -> tuple[Units, Units]:
        """Return the start and end of each number's cell; open cells end with the extreme band."""
        low = self.below(units)
        high = low + self.step
        if not len(units):
            return low, high
        least, greatest = low.min(), high.max()
        if self.bottom is not None:
            is_below = units < self.bottom
            low = np.where(is_below, least, np.maximum(low, self.bottom))
            high = np.where(is_below, self.bottom, high)
        if self.top is not None:
            is_above = units >= self.top
            low = np.where(is_above, self.top, low)
            high = np.where(is_above, greatest, np.minimum(high, self.top))
        return low, high


def _numbers(values: NDArray[Any], rule: ColumnRule) -> Line:
    given = [_decimal(number) for number in (rule.bands, rule.top, rule.bottom)]
    places = max(map(_decimals, given))
    if values.dtype.kind == "f":
        places = max(places, _places(values))
        units = _to_units(values, places)
    else:
        units = values
    step, top, bottom = (None if n is None else int(n.scaleb(places)) for n in given)
    grid = _Grid(step or 0, top, bottom)
    ends = [units.min(), units.max()] if len(units) else []
    largest = max(abs(int(n)) for n in (*grid, *ends) if n is not None)
    is_safe = largest < _SAFE and places <= _MOST_PLACES
    return _line(units.astype(np.int64 if is_safe else object), grid, places=places)


def _places(values: NDArray[np.float64]) -> int:
    """Return the greatest number of decimals in the written numbers."""
    texts = [repr(value) for value in values.tolist()]
    if any("e" in text for text in texts):
        return max((_decimals(Decimal(text)) for text in texts), default=0)
    return max((len(text.removesuffix(".0").partition(".")[2]) for text in texts), default=0)


def _to_units(values: NDArray[np.float64], places: int) -> Units:
    """Return numbers in units of the last of ``places`` decimals, exactly."""
    if places <= _MOST_PLACES and np.abs(values).max(initial=0.0) < _EXACT / 10.0**places:
        # so near is the product that the nearest integer is the one
        return np.rint(values * 10.0**places).astype(np.int64)
    exact = [int(Decimal(repr(value)).scaleb(places)) for value in values.tolist()]
    return np.array(exact, object)


def _line(units: Units, grid: _Grid, *, places: int) -> Line:
    """Return the cells of distinct numbers."""
    low, high = grid.cells(units)
    begins, first, code_of = np.unique(low, return_index=True, return_inverse=True)
    ends = high[first]
    bands = Bands(
        low=tuple(_texts(begins, places)),
        high=tuple(_texts(ends, places)),
        closed=not grid.step,
        names=(),
        width=_over(ends - begins, begins, ends),
        members=np.bincount(code_of, minlength=len(begins)),
    )
    if grid.bottom is not None and len(units) and units.min() < grid.bottom:
        bands = replace(bands, low=("", *bands.low[1:]))
    if grid.top is not None and len(units) and units.max() >= grid.top:
        bands = replace(bands, high=(*bands.high[:-1], ""))
    one = 10**places if begins.dtype == object else 10.0**places  # what divides without overflow
    numbers = np.asarray(begins / one, np.float64)
    return Line(code_of, numbers, _over(begins - begins[:1], begins, ends), bands)


def _over(lengths: Units, begins: Units, ends: Units) -> NDArray[np.float64]:
    """Return lengths as shares of the range of all cells."""
    span = ends[-1] - begins[0] if len(begins) else 0
    return np.asarray(lengths / (span or 1), np.float64)


def _texts(units: Units, places: int) -> list[str]:
    return [decimal_text(unit, places) for unit in units.tolist()]


def _decimal(number: float | None) -> Decimal | None:
    return None if number is None else Decimal(repr(number))


def _decimals(number: Decimal | None) -> int:
    exponent = 0 if number is None else number.normalize().as_tuple().exponent
    return max(-exponent, 0) if isinstance(exponent, int) else 0


def _periods(values: NDArray[Any], period: str, kind: ColumnKind) -> Line:
    days = values.astype("datetime64[D]")
    low, high = period_ends(period, days)
    starts, first, code_of = np.unique(low, return_index=True, return_inverse=True)
    ends = high[first]
    begins = np.maximum(starts, _FIRST_DAY)
    edges = begins.astype(np.int64), ends.astype(np.int64)
    position, width = (_over(n, *edges) for n in (edges[0] - edges[0][:1], edges[1] - edges[0]))
    unit = "D" if kind is ColumnKind.DATE else "us"
    begins, ends = begins.astype(f"datetime64[{unit}]"), ends.astype(f"datetime64[{unit}]")
    bands = Bands(
        low=tuple(value_texts(kind, begins)),
        high=tuple(value_texts(kind, ends)),
        closed=False,
        names=tuple(period_name(period, day) for day in starts),
        width=width,
        members=np.bincount(code_of, minlength=len(begins)),
    )
    return Line(code_of, begins, position, bands)


Days = Any  # an array of datetime64[D]


def _days(days: Days) -> tuple[Days, Days]:
    return days, days + 1


def _weeks(days: Days) -> tuple[Days, Days]:
    numbers = days.astype(np.int64) + _EPOCH_WEEKDAY
    monday = (numbers // 7 * 7 - _EPOCH_WEEKDAY).astype("datetime64[D]")
    return monday, monday + 7


def _months(count: int) -> Callable[[Days], tuple[Days, Days]]:
    """Return a function that finds periods of ``count`` months, counted from year 0."""

    def ends(days: Days) -> tuple[Days, Days]:
        months = days.astype("datetime64[M]").astype(np.int64) + _EPOCH_YEAR * 12
        first = (months // count * count - _EPOCH_YEAR * 12).astype("datetime64[M]")
        return first.astype("datetime64[D]"), (first + count).astype("datetime64[D]")

    return ends


_ENDS: dict[str, Callable[[Days], tuple[Days, Days]]] = {
    "day": _days,
    "week": _weeks,
    "month": _months(1),
    "quarter": _months(3),
    "year": _months(12),
    "decade": _months(120),
}


def period_ends(period: str, days: Days) -> tuple[Days, Days]:
    """Return the start of the period of each day, and of the next period."""
    return _ENDS[period](days)


def period_name(period: str, first: np.datetime64) -> str:
    """Return the name of the period that starts on a day, as ISO 8601 and taxonomies write it."""
    day = str(first)
    year, month = day[:4], day[5:7]
    if period == "week":
        iso = date.fromisoformat(day).isocalendar()
        return f"{iso.year:04}-W{iso.week:02}"
    names = {
        "day": day,
        "month": f"{year}-{month}",
        "quarter": f"{year}-Q{(int(month) + 2) // 3}",
        "year": year,
        "decade": f"{year}-{int(year) + 9:04}",
    }
    return names[period]


def cells_of_level(taxonomy: Taxonomy, rule: ColumnRule) -> NDArray[np.int32]:
    """Return the cell of each leaf, ``at_least`` levels above the deepest leaves.

    Shallower branches keep their leaves. Raises PolicyError if only the root is left.
    """
    return taxonomy.at_depth(taxonomy.height - level_of(taxonomy, rule)).astype(np.int32)


def ancestors_by_height(taxonomy: Taxonomy) -> Iterator[NDArray[np.int64]]:
    """Yield the highest ancestor of each leaf among those of height at most 1, 2 ..."""
    height = np.rint(height_shares(taxonomy) * taxonomy.height).astype(np.int64)
    node = taxonomy.leaves.astype(np.int64)
    for limit in range(1, taxonomy.height + 1):
        # heights rise on the way to the root, so that one step at a time misses none
        above = np.maximum(taxonomy.parent[node], 0)
        while (rising := (height[above] <= limit) & (node > 0)).any():
            node = np.where(rising, above, node)
            above = np.maximum(taxonomy.parent[node], 0)
        yield node


def level_of(taxonomy: Taxonomy, rule: ColumnRule) -> int:
    """Return ``at_least`` in levels of a taxonomy; raises PolicyError if only the root is left."""
    level = rule.at_least
    if not isinstance(level, int) or level >= taxonomy.height:
        msg = (
            f"column {quote_identifier(rule.column)}: at_least must be a number of levels from 1 to"
            f" {taxonomy.height - 1} above the leaves of taxonomy {taxonomy.name!r}"
        )
        raise PolicyError(msg, hint='to publish nothing of the column: recoding = "suppress"')
    return level


def prefix_tree(
    name: str,
    texts: Sequence[str],
    *,
    length: int,
    pooled: Collection[str] = (),
    joined: bool = False,
) -> tuple[Taxonomy, NDArray[np.int32]]:
    """Return a tree of the first 1, 2 .. ``length`` characters of some texts, and its cells.

    A text of at most ``length`` characters is its own cell; all that begin with one of ``pooled``
    are one cell below the root, labelled with zeros. A label has one star, so that no text affects
    the labels of others. joined: a text and its continuations share a node, which would disclose
    the length of a cell's text. O(m log m + m * length).
    """
    begun: set[str] = set()
    if joined:
        begun.update(text[:n] for text in texts for n in range(1, min(len(text), length + 1)))

    def above(text: str) -> tuple[str, ...]:
        """Return the labels of the nodes from below the root to above a text."""
        if text[:length] in pooled:
            return (f"{'0' * length}*",)
        deepest = min(length, len(text) - (text not in begun))  # 1301 and 13012 are below 1301*
        return tuple(f"{text[:n]}*" for n in range(1, deepest + 1))

    labels, parent = [ROOT_LABEL], [-1]
    leaves: list[int] = []
    path: list[int] = [0]  # the nodes above the last leaf
    before: tuple[str, ...] = ()
    for upper, text in sorted((above(text), text) for text in texts):
        pairs = zip(before, upper, strict=False)
        shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        del path[shared + 1 :]
        for label in (*upper[shared:], text):
            labels.append(label)
            parent.append(path[-1])
            path.append(len(labels) - 1)
        leaves.append(path.pop())
        before = upper
    added = np.ones(len(leaves), np.bool_)
    taxonomy = Taxonomy.of_nodes(name, labels, parent=parent, leaves=leaves, added=added)
    alone = [len(labels[leaf]) <= length and labels[leaf] not in pooled for leaf in leaves]
    nodes = taxonomy.leaves
    return taxonomy, np.where(np.array(alone, bool), nodes, taxonomy.parent[nodes])
