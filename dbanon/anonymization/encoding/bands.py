"""The cells of a line: bands of numbers, and periods of dates and times."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dbanon.anonymization.encoding.text import decimal_text, value_texts
from dbanon.domain.assignment import Bands
from dbanon.domain.errors import PolicyError
from dbanon.domain.policy import PERIODS
from dbanon.domain.table import ColumnKind, quote_identifier

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from dbanon.domain.policy import ColumnRule

_FIRST_DAY = np.datetime64("0001-01-01")  # a Monday; PostgreSQL knows no year 0 to begin in
_EPOCH_WEEKDAY = 3  # 1970-01-01 is the third day after a Monday
_EPOCH_YEAR = 1970
_MOMENTS = frozenset({ColumnKind.DATE, ColumnKind.TIMESTAMP, ColumnKind.TIMESTAMPTZ})


class Line(NamedTuple):
    """Values in cells: the cell of each value, (m,), where each cell begins, and its place.

    begins: (size,) sorted; position: (size,) in [0, 1], scaled by the range of all cells.
    """

    code_of: NDArray[np.int64]
    begins: NDArray[Any]
    position: NDArray[np.float64]
    bands: Bands


def has_bands(rule: ColumnRule) -> bool:
    """Whether the values of a line are published as cells."""
    return any(floor is not None for floor in (rule.at_least, rule.bands, rule.top, rule.bottom))


def to_bands(values: NDArray[Any], rule: ColumnRule, kind: ColumnKind) -> Line:
    """Put distinct values in cells; O(m log m), exact.

    Raises PolicyError for a floor that means nothing of values of this kind.
    """
    if kind in _MOMENTS:
        if rule.at_least not in PERIODS or (rule.bands, rule.top, rule.bottom) != (None,) * 3:
            raise misfit(rule, f"dates and times take at_least: {', '.join(PERIODS)}")
        return _periods(values, str(rule.at_least), kind)
    if rule.at_least is not None:
        raise misfit(rule, "numbers take bands, top and bottom")
    return _numbers(values, rule)


def misfit(rule: ColumnRule, hint: str) -> PolicyError:
    """Return the error for a floor that means nothing of a column."""
    msg = f"column {quote_identifier(rule.column)}: its floor means nothing of values of its type"
    return PolicyError(msg, hint=hint)


class _Grid(NamedTuple):
    """The ends of cells in whole units; step is 0 where every number is a cell of its own."""

    step: int
    top: int | None
    bottom: int | None

    def cell(self, unit: int) -> tuple[int, int]:
        """Return where the cell of a number begins and ends, were it not open."""
        if self.bottom is not None and unit < self.bottom:
            return self.bottom - 1, self.bottom  # lies before all others; spread out later
        if self.top is not None and unit >= self.top:
            return self.top, self.top
        if not self.step:
            return unit, unit
        low = unit // self.step * self.step
        high = low + self.step
        return (
            low if self.bottom is None else max(low, self.bottom),
            high if self.top is None else min(high, self.top),
        )

    def below(self, unit: int) -> int:
        """Return the grid line at or below."""
        return unit // self.step * self.step if self.step else unit

    def above(self, unit: int) -> int:
        """Return the first grid line above, the number itself without a grid."""
        return self.below(unit) + self.step


def _numbers(values: NDArray[Any], rule: ColumnRule) -> Line:
    given = [_decimal(number) for number in (rule.bands, rule.top, rule.bottom)]
    places = 0
    if values.dtype.kind == "f":
        exact = [Decimal(repr(value)) for value in values.tolist()]
        places = max(0, *(_decimals(number) for number in [*exact, *given]))
        units = [int(number.scaleb(places)) for number in exact]
    else:
        units = values.tolist()
    step, top, bottom = (None if n is None else n.scaleb(places) for n in given)
    if any(n is not None and n != int(n) for n in (step, top, bottom)):
        raise misfit(rule, "integers take whole bands, top and bottom")
    if top is not None and bottom is not None and top < bottom:
        raise misfit(rule, "bottom is at most top")
    grid = _Grid(int(step or 0), _whole(top), _whole(bottom))
    return _line(units, grid, places=places)


def _line(units: list[int], grid: _Grid, *, places: int) -> Line:
    """Return the cells of numbers; an open one reaches as far as the numbers in it do."""
    of_unit = [grid.cell(unit) for unit in units]
    cells = sorted(set(of_unit))
    code_of_cell = {cell: code for code, cell in enumerate(cells)}
    code_of = np.array([code_of_cell[cell] for cell in of_unit], np.int64)
    begins, ends = [low for low, _ in cells], [high for _, high in cells]
    low, high = ([decimal_text(unit, places) for unit in end] for end in (begins, ends))
    if units and grid.bottom is not None and min(units) < grid.bottom:
        begins[0], low[0] = grid.below(min(units)), ""
    if units and grid.top is not None and max(units) >= grid.top:
        ends[-1], high[-1] = grid.above(max(units)), ""
    position, width = _scaled(begins, ends)
    bands = Bands(
        tuple(low), tuple(high), not grid.step, (), width, np.bincount(code_of, minlength=len(low))
    )
    numbers = [float(Decimal(unit).scaleb(-places)) for unit in begins]
    return Line(code_of, np.array(numbers, np.float64), position, bands)


def _scaled(begins: list[int], ends: list[int]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return where each cell begins and how wide it is, over the range of all cells."""
    first, span = (begins[0], ends[-1] - begins[0] or 1) if begins else (0, 1)
    position = np.array([(begin - first) / span for begin in begins], np.float64)
    width = np.array([(end - begin) / span for begin, end in zip(begins, ends, strict=True)])
    return position, width


def _decimal(number: float | None) -> Decimal | None:
    return None if number is None else Decimal(repr(number))


def _decimals(number: Decimal | None) -> int:
    exponent = 0 if number is None else number.as_tuple().exponent
    return -exponent if isinstance(exponent, int) else 0


def _whole(number: Decimal | None) -> int | None:
    return None if number is None else int(number)


def _periods(values: NDArray[Any], period: str, kind: ColumnKind) -> Line:
    days = values.astype("datetime64[D]")
    low, high = _ENDS[period](days)
    starts, first, code_of = np.unique(low, return_index=True, return_inverse=True)
    ends = high[first]
    begins = np.maximum(starts, _FIRST_DAY)
    position, width = _scaled(begins.astype(np.int64).tolist(), ends.astype(np.int64).tolist())
    unit = "D" if kind is ColumnKind.DATE else "us"
    begins, ends = begins.astype(f"datetime64[{unit}]"), ends.astype(f"datetime64[{unit}]")
    bands = Bands(
        low=tuple(value_texts(kind, begins)),
        high=tuple(value_texts(kind, ends)),
        closed=False,
        names=tuple(_name(period, day) for day in starts),
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
    """Return what finds the period of so many months; January of the year 0 begins one."""

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


def _name(period: str, first: np.datetime64) -> str:
    """Return the name of the period that begins on a day, as ISO 8601 and taxonomies have it."""
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
