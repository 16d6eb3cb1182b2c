"""Distributions of the source and of the release, over bins of published labels.

Categories: labels or their ancestors, at one level of the tree; numbers and times: round steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dbanon.anonymization.encoding.bands import number_text, period_ends, period_name
from dbanon.anonymization.utility.readings import Line, Reading, opened
from dbanon.domain.policy import PERIODS
from dbanon.domain.report import BEYOND, Distribution

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from dbanon.domain.assignment import Taxonomy

    Floats = NDArray[np.float64]
    Codes = NDArray[np.int64]


_ROUND = (1.0, 2.0, 5.0, 10.0)
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896  # of the years 1 and 9999
_ALL_DECADES = 1000
_WIDER = 2.5  # of two halves of a step and what rounding adds


class _Ends(NamedTuple):
    """Least and greatest published end; closed: a value may equal the greatest."""

    least: float
    most: float
    closed: bool


@dataclass(frozen=True, eq=False, slots=True)
class Grid:
    """Bins from each edge to the next, the outer ones open; the last name is NULL's if ``null``."""

    names: tuple[str, ...]
    edges: Floats
    null: bool

    def of_source(self, reading: Reading) -> Floats:
        """Return the number of source rows in each bin."""
        assert reading.line is not None  # noqa: S101 - a grid is made of a line
        line, rows = reading.line, reading.of_codes
        if (line.ends - line.begins > _WIDER * line.half).any():  # cells, of which no more is known
            return self._masses(line.begins, line.ends, rows, nulls=float(rows[reading.null]))
        places = self._of_codes(reading)
        counts = np.bincount(places[places >= 0], rows[places >= 0], minlength=len(self.names))
        return np.asarray(counts, np.float64)

    def of_release(self, reading: Reading) -> Floats:
        """Return the number of published rows in each bin, spread evenly over cells."""
        assert reading.line is not None  # noqa: S101 - a grid is made of a line
        line, rows = reading.line, reading.of_labels
        if reading.members is not None:
            return self._of_sets(reading)
        nulls = float(rows[reading.covers_alone(reading.null)].sum())
        return self._masses(line.low, line.high, rows, nulls=nulls)

    def _of_sets(self, reading: Reading) -> Floats:
        """Return the number of published rows in each bin, if cells are sets of codes."""
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
        """Return the number of rows in each bin if they are spread from low to high."""
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
    """Return a grid over the published ends, None if it has fewer than two bins."""
    line = reading.line
    assert line is not None  # noqa: S101 - the caller has looked
    shown = _shown(reading, line)
    if shown is None:
        return None
    # The last digits depend on the end of the source.
    least, most = (float(f"{line.origin + place * line.span:.12g}") for place in shown[:2])
    ends = _Ends(least, most, shown.closed)
    if not np.isfinite([least, most]).all() or most <= least:
        return None
    whole = 2.0 * line.half * line.span
    values, names = _periods(ends) if line.is_moment else _steps(ends, finest=whole)
    if len(names) < 2:  # noqa: PLR2004 - one bin shows nothing
        return None
    rows = reading.of_labels
    null = reading.null >= 0 and bool((rows[reading.covers_alone(reading.null)] > 0.0).any())
    edges = (np.array(values) - line.origin) / line.span - line.half
    names = _opened(reading, names)
    return Grid((*names, *(["NULL"] if null else [])), edges, null)


def _shown(reading: Reading, line: Line) -> _Ends | None:
    """Return the least and the greatest end of published labels."""
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
    """Mark the first and the last bin if labels are open beyond them."""
    texts = [text for text in reading.texts if text is not None and text != "*"]
    opens_low, opens_high = (bool(each.any()) for each in opened(texts))
    first, *others, last = names
    if opens_low:
        first = f"{first}{BEYOND[0]}"
    if opens_high:
        last = f"{last}{BEYOND[1]}"
    return [first, *others, last]


def _steps(ends: _Ends, *, finest: float) -> tuple[list[float], list[str]]:
    """Return the edges and names of bins with steps of 1, 2 or 5 times a power of ten."""
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
    """Return the first days of periods, the shortest that are few enough, and their names."""
    days = np.floor(ends.least), np.floor(ends.most) if ends.closed else np.ceil(ends.most) - 1.0
    first, last = (int(day) for day in np.clip(days, _FIRST_DAY, _LAST_DAY))
    for period in PERIODS:
        begins = _begins(period, first, last, most=MOST)
        if len(begins) <= MOST:
            names = [period_name(period, np.datetime64(day, "D")) for day in begins[:-1]]
            return [float(day) for day in begins], names
    begins = _begins(PERIODS[-1], first, last, most=_ALL_DECADES)
    begins = begins[:: -(-len(begins) // (MOST - 1))]
    step = begins[1] - begins[0]
    begins.append(begins[-1] + step)
    years = [str(np.datetime64(day, "D"))[:4] for day in begins]
    return [float(day) for day in begins], [f"{a}-{int(b) - 1:04}" for a, b in pairwise(years)]


def _begins(period: str, first: int, last: int, *, most: int) -> list[int]:
    """Return the first days of periods from that of a day on; at most one too many."""
    days: list[int] = []
    day = np.array([first], "datetime64[D]")
    while len(days) <= most and (not days or days[-1] <= last):
        begin, end = period_ends(period, day)
        days.append(int((begin if not days else day).astype(np.int64)[0]))
        day = end
    return days


MOST = 24
"""The most bins of a column."""

OTHERS = "other values"
NULL = "NULL"


@dataclass(frozen=True, eq=False, slots=True)
class Bins:
    """Sets of codes. names: of each; of_code: (n_codes,) the bin of each code, -1 for none."""

    names: tuple[str, ...]
    of_code: Codes

    def of_source(self, reading: Reading) -> NDArray[np.float64]:
        """Return the number of source rows in each bin."""
        inside, of_codes = self.of_code >= 0, reading.of_codes
        rows = np.bincount(self.of_code[inside], of_codes[inside], minlength=len(self.names))
        return np.asarray(rows, np.float64)

    def places(self, reading: Reading) -> Codes:
        """Return the bin of each row of the source, -1 for none."""
        return self.of_code[reading.codes]

    def of_release(self, reading: Reading) -> NDArray[np.float64]:
        """Return the number of published rows in each bin, spread evenly over cells."""
        return self.shares(reading).T @ reading.of_labels

    def shares(self, reading: Reading) -> NDArray[np.float64]:
        """Return the share of each label in each bin, (n_labels, n_bins)."""
        columns = [reading.covered(self.of_code == place) for place in range(len(self.names))]
        return np.array(columns).reshape(len(self.names), reading.n_labels).T


def categories_of(reading: Reading) -> Bins:
    """Return the bins of values that are not on a line; the last has all others, if any."""
    used = reading.of_labels > 0.0
    shown = {text for text, seen in zip(reading.texts, used, strict=True) if seen and text}
    if reading.members is not None:  # elements of sets are separate texts
        shown |= {name for name in map(reading.names.__getitem__, reading.members) if name}
    node_of, names, allowed = _nodes(reading, shown)
    kept = _most_frequent(reading, node_of, allowed)
    labels = [names[node] or "" for node in kept.tolist()]
    shows_null = reading.null >= 0 and bool(used[reading.covers_alone(reading.null)].any())
    rest = len(labels) + shows_null
    place = np.full(len(names) + 1, rest, np.int64)
    place[kept] = np.arange(len(kept))
    of_code = np.where(node_of < 0, rest, place[node_of])
    if shows_null:
        of_code[reading.null] = len(labels)
        labels.append(NULL)
    if (of_code == rest).any():
        labels.append(OTHERS)
    return Bins(tuple(labels), of_code)


def _nodes(
    reading: Reading, shown: set[str]
) -> tuple[Codes, Sequence[str | None], NDArray[np.bool_]]:
    """Return the possible bin of each code, -1 for none; their names; which are published."""
    if reading.tree is None or reading.leaf is None:
        names = reading.names
        seen = _ends_of_ranges(reading) | shown if reading.ordered else shown
        allowed = np.array([name is not None and name in seen for name in names], np.bool_)
        codes = np.arange(reading.n_codes)
        return np.where(codes == reading.null, -1, codes), names, allowed
    tree, leaf = reading.tree, reading.leaf
    allowed = _shown_nodes(tree, shown)
    level = _level(reading, tree, allowed)
    nodes = np.append(tree.at_depth(level), -1)
    return nodes[leaf], tree.labels, allowed


def _ends_of_ranges(reading: Reading) -> set[str]:
    """Return the values at the ends of ranges of an order, which their labels show."""
    names, found = reading.names, set()
    for text, first, last in zip(reading.texts, reading.first, reading.last, strict=True):
        low, high = names[first], names[last]
        if text is not None and low is not None and high is not None and low in text:
            found |= {low, high} if text == f"[{low}, {high}]" else set()
    return {name for name in found if name is not None}


def _shown_nodes(tree: Taxonomy, shown: set[str]) -> NDArray[np.bool_]:
    """Return which nodes are published or above one that is."""
    allowed = np.array([label in shown for label in tree.labels], np.bool_)
    for depth in range(tree.height, 0, -1):
        nodes = np.flatnonzero(allowed & (tree.depth == depth))
        allowed[tree.parent[nodes]] = True
    return allowed


def _level(reading: Reading, tree: Taxonomy, allowed: NDArray[np.bool_]) -> int:
    """Return the deepest level with few enough bins, at which most published rows have labels."""
    depth_of = dict(zip(reversed(tree.labels), reversed(tree.depth.tolist()), strict=True))
    leaves = set(tree.leaf_labels)
    if reading.members is not None:  # of leaves
        leaves = {text for text in reading.texts if text is not None}
    depth = [
        tree.height if text in leaves else depth_of.get(text or "", 0) for text in reading.texts
    ]
    rows = reading.of_labels
    for level in range(tree.height, 1, -1):
        fine = rows[np.array(depth) >= level].sum()
        bins = np.unique(tree.at_depth(level))
        if 2 * fine > rows.sum() and allowed[bins].sum() < MOST:
            return level
    return min(tree.height, 1)


def _most_frequent(reading: Reading, node_of: Codes, allowed: NDArray[np.bool_]) -> Codes:
    """Return the nodes that become bins; of too many, those with the most rows."""
    nodes = np.unique(node_of[node_of >= 0])
    nodes = nodes[allowed[nodes]]
    if len(nodes) < MOST:
        return nodes
    alone = reading.first == reading.last
    of_code = np.zeros(reading.n_codes)
    np.add.at(of_code, reading.first[alone], reading.of_labels[alone])
    known = node_of >= 0
    rows = np.bincount(node_of[known], weights=of_code[known], minlength=len(allowed))
    most = np.argsort(-rows[nodes], kind="stable")[: MOST - 1]
    return np.sort(nodes[most])


_DIGITS = 6


def bins_of(reading: Reading) -> Bins | Grid | None:
    """Return bins that disclose only published labels, None if there are fewer than two."""
    bins = grid_of(reading) if reading.line is not None else categories_of(reading)
    return bins if bins is not None and len(bins.names) > 1 else None


def distribution(reading: Reading, bins: Bins | Grid) -> Distribution:
    """Compare the shares of bins in the source with those in the release."""
    source, published, names = bins.of_source(reading), bins.of_release(reading), bins.names
    if names[-1] == OTHERS and not source[-1]:
        names, source, published = names[:-1], source[:-1], published[:-1]
    source, published = (rows / (rows.sum() or 1.0) for rows in (source, published))
    has_shift = isinstance(bins, Grid) and not bins.null
    return Distribution(
        column=reading.name,
        bins=names,
        source=tuple(source.round(_DIGITS).tolist()),
        published=tuple(published.round(_DIGITS).tolist()),
        distance=round(float(np.abs(source - published).sum()) / 2.0, _DIGITS),
        shift=_shift(source, published) if has_shift else None,
    )


def _shift(source: Floats, published: Floats) -> float:
    """Return the mean move of a row as a share of all bins (earth mover's distance)."""
    moved = np.abs(np.cumsum(source - published)[:-1]).sum()
    return round(float(moved) / (len(source) - 1), _DIGITS)
