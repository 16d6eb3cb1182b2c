"""A grid of round steps over the numbers, dates or times that a release shows."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dbanon.anonymization.encoding.bands import period_ends, period_name
from dbanon.anonymization.encoding.text import number_text
from dbanon.anonymization.utility.readings import opened
from dbanon.domain.policy import PERIODS
from dbanon.domain.report import BEYOND

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.anonymization.utility.readings import Line, Reading

    Floats = NDArray[np.float64]

MOST = 24
_ROUND = (1.0, 2.0, 5.0, 10.0)
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896  # of the years 1 and 9999
_ALL_DECADES = 1000
_WIDER = 2.5  # of two halves of a step and what rounding adds


class _Ends(NamedTuple):
    """The least and the greatest end that is shown; closed: whether a value may be the greatest."""

    least: float
    most: float
    closed: bool


@dataclass(frozen=True, eq=False, slots=True)
class Grid:
    """Bins from each edge up to the next; the first and the last have also what is beyond.

    names: of each bin; edges: (n_bins + 1,) places on the line; the last name is that of NULL if
    ``null``.
    """

    names: tuple[str, ...]
    edges: Floats
    null: bool

    def of_source(self, reading: Reading) -> Floats:
        """Return how many rows of the source are in each."""
        assert reading.line is not None  # noqa: S101 - a grid is made of a line
        line, rows = reading.line, reading.of_codes
        if (line.ends - line.begins > _WIDER * line.half).any():  # cells, of which no more is known
            return self._masses(line.begins, line.ends, rows, nulls=float(rows[reading.null]))
        places = self._of_codes(reading)
        counts = np.bincount(places[places >= 0], rows[places >= 0], minlength=len(self.names))
        return np.asarray(counts, np.float64)

    def of_release(self, reading: Reading) -> Floats:
        """Return how many published rows are in each, as readers take them."""
        assert reading.line is not None  # noqa: S101 - a grid is made of a line
        line, rows = reading.line, reading.of_labels
        if reading.members is not None:
            return self._of_sets(reading)
        nulls = float(rows[reading.covers_alone(reading.null)].sum())
        return self._masses(line.low, line.high, rows, nulls=nulls)

    def _of_sets(self, reading: Reading) -> Floats:
        """Return how many published rows are in each, where a cell is a set of codes."""
        places, rows = self._of_codes(reading), reading.of_labels
        masses = [rows @ reading.covered(places == place) for place in range(len(self.names))]
        return np.array(masses)

    def places(self, reading: Reading) -> NDArray[np.int64]:
        """Return the bin of each row of the source, -1 for none."""
        return self._of_codes(reading)[reading.codes]

    def _of_codes(self, reading: Reading) -> NDArray[np.int64]:
        """Return the bin of each code, -1 for none."""
        assert reading.line is not None  # noqa: S101 - a grid is made of a line
        middle = (reading.line.begins + reading.line.ends) / 2.0
        places = np.searchsorted(self.edges[1:-1], middle, side="right")
        return np.where(np.isfinite(middle), places, len(self.edges) - 1 if self.null else -1)

    def _masses(self, low: Floats, high: Floats, rows: Floats, *, nulls: float) -> Floats:
        """Return how many of rows that are spread from low to high are in each bin."""
        known = np.isfinite(low)
        low, high, rows = low[known], high[known], rows[known]
        width = np.where(high > low, high - low, 1.0)
        below = [0.0]
        for edge in self.edges[1:-1]:
            spread = np.clip((edge - low) / width, 0.0, 1.0)
            below.append(float((rows * np.where(high > low, spread, low < edge)).sum()))
        masses = np.diff([*below, float(rows.sum())])
        return np.append(masses, nulls) if self.null else masses


def grid_of(reading: Reading) -> Grid | None:
    """Return a grid over the ends that labels show, None where these are no two bins."""
    line = reading.line
    assert line is not None  # noqa: S101 - the caller has looked
    shown = _shown(reading, line)
    if shown is None:
        return None
    # The last digits differ by where the source ends.
    least, most = (float(f"{line.origin + place * line.span:.12g}") for place in shown[:2])
    ends = _Ends(least, most, shown.closed)
    if not np.isfinite([least, most]).all() or most <= least:
        return None
    whole = 2.0 * line.half * line.span
    values, names = _periods(ends) if line.is_moment else _steps(ends, finest=whole)
    if len(names) < 2:  # noqa: PLR2004 - one bin tells nothing
        return None
    rows = reading.of_labels
    null = reading.null >= 0 and bool((rows[reading.covers_alone(reading.null)] > 0.0).any())
    edges = (np.array(values) - line.origin) / line.span - line.half
    names = _opened(reading, names)
    return Grid((*names, *(["NULL"] if null else [])), edges, null)


def _shown(reading: Reading, line: Line) -> _Ends | None:
    """Return the least and the greatest end that a published label shows."""
    used = reading.of_labels > 0.0
    has_low, has_high = used & ~opened(reading.texts)
    ends = np.concatenate([line.low[has_low] + line.half, line.high[has_high] - line.half])
    ends = ends[np.isfinite(ends)]
    if not len(ends):
        return None
    # whole numbers and dates have been given the last one that is inside
    before = np.array([line.half == 0.0 and (text or "").endswith(")") for text in reading.texts])
    least, most = float(ends.min()), float(ends.max())
    inside = has_low & (line.low + line.half == most)
    inside |= has_high & ~before & (line.high - line.half == most)
    return _Ends(least, most, bool(inside.any()))


def _opened(reading: Reading, names: list[str]) -> list[str]:
    """Say of the first and the last bin what is beyond them, where labels without an end are."""
    texts = [text for text in reading.texts if text is not None and text != "*"]
    opens_low, opens_high = (bool(each.any()) for each in opened(texts))
    first, *others, last = names
    if opens_low:
        first = f"{first}{BEYOND[0]}"
    if opens_high:
        last = f"{last}{BEYOND[1]}"
    return [first, *others, last]


def _steps(ends: _Ends, *, finest: float) -> tuple[list[float], list[str]]:
    """Return the edges of steps of 1, 2 or 5 times a power of ten, and the names of bins."""
    least, most, closed = ends
    rough = max((most - least) / (MOST - 2), round(finest, 6))
    power = 10.0 ** np.floor(np.log10(rough))
    step = next(power * factor for factor in _ROUND if power * factor >= rough)
    first = int(np.floor(least / step))
    last = int(np.floor(most / step)) + 1 if closed else int(np.ceil(most / step))
    edges = [float(f"{n * step:.12g}") for n in range(first, last + 1)]
    texts = [number_text(edge) for edge in edges]
    return edges, [f"[{a}, {b})" for a, b in pairwise(texts)]


def _periods(ends: _Ends) -> tuple[list[float], list[str]]:
    """Return the days on which periods begin, the shortest that are few enough, and their names."""
    days = np.floor(ends.least), np.floor(ends.most) if ends.closed else np.ceil(ends.most) - 1.0
    first, last = (int(day) for day in np.clip(days, _FIRST_DAY, _LAST_DAY))
    for period in PERIODS:
        begins = _begins(period, first, last, most=MOST)
        if len(begins) <= MOST:
            return [float(day) for day in begins], [_name(period, day) for day in begins[:-1]]
    begins = _begins(PERIODS[-1], first, last, most=_ALL_DECADES)
    begins = begins[:: -(-len(begins) // (MOST - 1))]
    step = begins[1] - begins[0]
    begins.append(begins[-1] + step)
    years = [str(np.datetime64(day, "D"))[:4] for day in begins]
    return [float(day) for day in begins], [f"{a}-{int(b) - 1:04}" for a, b in pairwise(years)]


def _begins(period: str, first: int, last: int, *, most: int) -> list[int]:
    """Return the days on which periods begin from that of a day on; no more than one too many."""
    days: list[int] = []
    day = np.array([first], "datetime64[D]")
    while len(days) <= most and (not days or days[-1] <= last):
        begin, end = period_ends(period, day)
        days.append(int((begin if not days else day).astype(np.int64)[0]))
        day = end
    return days


def _name(period: str, day: int) -> str:
    return period_name(period, np.datetime64(day, "D"))
