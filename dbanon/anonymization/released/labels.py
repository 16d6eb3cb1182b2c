"""Read published labels: their ends, and the source codes that each covers."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from datetime import date
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dbanon.anonymization.encoding.bands import period_ends
from dbanon.anonymization.recodings.groups import DAY, Ends, ends_of_literal, number_of
from dbanon.anonymization.released.cells import CellColumn, Members
from dbanon.domain.policy import BOUNDS, DATE_PART, GLOBAL, OF_STRUCTURE, PAIRS, POINTS
from dbanon.domain.table import ColumnKind, Structure

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from dbanon.domain.assignment import EncodedColumn

    Reader = Callable[[str | None], "Cell"]


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
"""Position of a value that is not on the scale."""

_TEXT = re.compile(r"\[(.*), (.*)([\])])")
_INTERVAL = re.compile(r"(?:(-?\d+) days? ?)?(?:(\d+):(\d\d):(\d\d(?:\.\d+)?))?")


class Cell(NamedTuple):
    """Codes covered by a label (inclusive), NULL if covered, and its ends on the scale."""

    lo: int
    hi: int
    low: float = NAN
    high: float = NAN
    nulls: bool = False


def ends_of_text(kind: ColumnKind, label: str) -> Ends:
    """Read a range in readable text, or the name of a period."""
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
    """Read the two columns of a range: its two ends, or its middle and radius."""
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
    """The values of a column as numbers, and their places."""

    def __init__(self, column: EncodedColumn) -> None:
        self.kind, self.size = column.kind, column.size
        values = column.values
        if values.dtype.kind == "M":
            values = values.astype("datetime64[us]").astype(np.int64)
        self.numbers: list[int | float] = values.tolist()

    def cell(self, ends: Ends) -> Cell:
        """Return the cell of a range; one open at both ends also covers NULL."""
        least, most, closed = ends
        lo = 0 if least is None else bisect_left(self.numbers, least)
        hi = self.size - 1
        if most is not None:
            hi = (bisect_right if closed else bisect_left)(self.numbers, most) - 1
        low = 0.0 if least is None else self.place(least)
        nulls = least is None and most is None
        high = 1.0
        if most is not None or (least is not None and self.numbers):
            high = self.place(self.numbers[-1] if most is None else most)
        return Cell(lo, max(hi, lo - 1), low, high, nulls=nulls)

    def code(self, text: str) -> int | None:
        """Return the code of a value, None if the source does not have it."""
        number = number_of(self.kind, text)
        code = bisect_left(self.numbers, number)
        return code if code < self.size and self.numbers[code] == number else None

    def place(self, number: float) -> float:
        """Return the place of a number on the column's scale, possibly beyond it."""
        if self.size < 2 or self.numbers[0] == self.numbers[-1]:  # noqa: PLR2004 - a range has two
            return 0.0
        first, last = self.numbers[0], self.numbers[-1]
        # quarters of the largest floats have a difference
        return (number / 4 - first / 4) / (last / 4 - first / 4)


def period_days(name: str) -> tuple[np.datetime64, np.datetime64] | None:
    """Return the first and the last day of a period, None if the text names none."""
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


_ELEMENT = re.compile(r'"((?:[^"\\]|\\.)*)"|([^,"]+)', re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_OF_LINES = {
    "interval": ends_of_literal,
    **dict.fromkeys(("interval-text", DATE_PART), ends_of_text),
}


def read_column(
    column: EncodedColumn, recoding: str, *, labels: Sequence[str | None], index: NDArray[np.int32]
) -> CellColumn:
    """Return the cells of a published column.

    labels: distinct texts of the column; index: position of the label of each class.
    """
    members = None
    if recoding == "set":
        cells, members = _sets(column, labels)
    else:
        read = _reader(column, recoding)
        cells = [read(label) for label in labels]
    lo, hi, low, high, nulls = zip(*cells, strict=True) if cells else ((),) * 5
    return CellColumn(
        name=column.name,
        recoding=recoding,
        kind=column.kind,
        is_point=recoding in POINTS and not column.rule.keep,
        labels=tuple(labels),
        index=index,
        lo=np.array(lo, np.int32),
        hi=np.array(hi, np.int32),
        nulls=np.array(nulls, np.bool_),
        low=np.array(low, np.float64),
        high=np.array(high, np.float64),
        members=members,
    )


def _reader(column: EncodedColumn, recoding: str) -> Reader:
    """Return a function that reads a label; NULL covers NULL unless the recoding differs."""
    if recoding == GLOBAL:
        recoding = OF_STRUCTURE[column.structure]
    if recoding in PAIRS:  # the ends were joined to a literal
        recoding = "interval"
    everything = _everything(column)
    if recoding == "suppress":
        return lambda _: everything
    of_null = everything if recoding == "cell-suppression" else Cell(0, -1, nulls=True)
    read = _known(column, recoding)
    return lambda label: of_null if label is None else read(label)


def _known(column: EncodedColumn, recoding: str) -> Callable[[str], Cell]:
    """Return a function that reads labels other than NULL."""
    if recoding in POINTS | {"cell-suppression"}:
        return _values(column)
    if column.structure is Structure.LINE:
        line, ends = Line(column), _OF_LINES[recoding]
        return lambda label: line.cell(ends(column.kind, label))
    if column.structure is Structure.ORDER:
        return _ranks(column)
    return _nodes(column)


def _everything(column: EncodedColumn) -> Cell:
    low, high = (NAN, NAN) if column.structure is Structure.TREE else (0.0, 1.0)
    return Cell(0, column.size - 1, low, high, nulls=True)


def _codes(column: EncodedColumn) -> Callable[[str], int | None]:
    """Return a function that finds the code of a value's text, None if the source lacks it."""
    if column.structure is Structure.LINE:
        return Line(column).code
    kind = column.kind if column.kind.is_ordered else None

    def key(text: str) -> int | float | str:
        try:
            return text if kind is None else number_of(kind, text)
        except ValueError:
            return text

    found = {key(text): code for code, text in reversed(list(enumerate(column.values.tolist())))}
    return lambda text: found.get(key(text))


def _values(column: EncodedColumn) -> Callable[[str], Cell]:
    """Return a function that reads a single value, which may be missing from the source."""
    code_of = _codes(column)
    line = Line(column) if column.structure is Structure.LINE else None

    def read(label: str) -> Cell:
        code = code_of(label)
        lo, hi = (0, -1) if code is None else (code, code)
        place = NAN
        if line is not None:
            place = line.place(number_of(column.kind, label))
        elif code is not None and column.structure is Structure.ORDER:
            place = float(column.position[code])
        return Cell(lo, hi, place, place)

    return read


def _ranks(column: EncodedColumn) -> Callable[[str], Cell]:
    """Return a function that reads the range of an order; ambiguous labels cover all readings."""
    rank_of = {text: rank for rank, text in enumerate(column.values.tolist())}
    everything = _everything(column)

    def read(label: str) -> Cell:
        if label == "*":
            return everything
        ends = [(label, label)]
        inside = label[1:-1]
        cuts = [at for at in range(len(inside)) if inside.startswith(", ", at)]
        ends += [(inside[:at], inside[at + 2 :]) for at in cuts]
        ranks = [(rank_of[a], rank_of[b]) for a, b in ends if a in rank_of and b in rank_of]
        if not ranks:
            return Cell(0, -1)
        lo, hi = min(a for a, _ in ranks), max(b for _, b in ranks)
        return Cell(lo, hi, float(column.position[lo]), float(column.position[hi]))

    return read


def _nodes(column: EncodedColumn) -> Callable[[str], Cell]:
    """Return a function that reads a node; only the root also covers NULL."""
    tree = column.taxonomy
    assert tree is not None  # noqa: S101 - a column without an order has one
    found: dict[str, tuple[int, int]] = {}
    leaves = zip(tree.labels, tree.leaf_lo.tolist(), tree.leaf_hi.tolist(), strict=True)
    for label, lo, hi in leaves:  # of nodes of one name it covers all
        least, most = found.get(label, (lo, hi))
        found[label] = min(least, lo), max(most, hi)

    def read(label: str) -> Cell:
        lo, hi = found[label] if label in found else _begun(column, label)
        return Cell(lo, hi, nulls=label == tree.labels[0])

    return read


def _begun(column: EncodedColumn, label: str) -> tuple[int, int]:
    """Return the leaves of a prefix label that the tree lacks, because the source changed."""
    rule, prefix = column.rule, label.rstrip("*")
    tree = column.taxonomy
    if rule.taxonomy is not None or prefix == label or tree is None:
        return 0, -1
    begins = (prefix, *(rule.pooled or ())) if not prefix.strip("0") else (prefix,)
    leaves = [leaf for leaf, text in enumerate(tree.leaf_labels) if text.startswith(begins)]
    if column.cells is not None:  # rows of a cell have the code of its first leaf
        leaves = tree.leaf_lo[column.cells[leaves]].tolist()
    return (min(leaves), max(leaves)) if leaves else (0, -1)


def _sets(column: EncodedColumn, labels: Sequence[str | None]) -> tuple[list[Cell], Members]:
    """Read array literals."""
    code_of = _codes(column)
    cells, members = [], []
    for label in labels:
        texts = elements(label or "{}")
        found = {code_of(text) for text in texts if text is not None}
        codes = np.array(sorted(code for code in found if code is not None), np.int32)
        lo, hi = (int(codes[0]), int(codes[-1])) if len(codes) else (0, -1)
        low = high = NAN
        if len(codes) and column.structure is not Structure.TREE:
            low, high = float(column.position[lo]), float(column.position[hi])
        cells.append(Cell(lo, hi, low, high, nulls=label is None or None in texts))
        members.append(codes)
    start = np.cumsum([0, *map(len, members)], dtype=np.int64)
    return cells, Members(start, np.concatenate([np.zeros(0, np.int32), *members]))


def elements(literal: str) -> list[str | None]:
    """Return the elements of an array literal."""
    return [
        None if plain.upper() == "NULL" else (plain or _ESCAPED.sub(r"\1", quoted))
        for quoted, plain in _ELEMENT.findall(literal[1:-1])
    ]
