"""Neighbouring cells of a line as one range."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbanon.domain.table import ColumnKind

if TYPE_CHECKING:
    from dbanon.domain.assignment import Bands, EncodedColumn

_TIMES = frozenset({ColumnKind.TIMESTAMP, ColumnKind.TIMESTAMPTZ})


def range_literal(column: EncodedColumn, low: str, high: str, *, closing: str = "]") -> str:
    """Return a literal of a range type: ``[20,40)``, ``[90,)``, ``(,18)``.

    low, high: its ends, empty where it has none. A range of integers is open where its type cannot
    hold the integer below its least or above its greatest one.
    """
    if column.greatest is not None:
        if low and int(low) < -column.greatest - 1:
            low = ""
        if high and int(high) + (closing == "]") > column.greatest:
            high = ""
    quote = '"' if column.kind in _TIMES else ""
    begin = f"[{quote}{low}{quote}" if low else "("
    end = f"{quote}{high}{quote}{closing}" if high else ")"
    return f"{begin},{end}"


def cells_literal(column: EncodedColumn, bands: Bands, lo: int, hi: int) -> str:
    """Return the cells lo..hi as a literal of a range type."""
    closing = _closing(bands, hi)
    return range_literal(column, bands.low[lo], bands.high[hi], closing=closing)


def cells_text(bands: Bands, lo: int, hi: int) -> str:
    """Return them for people: ``[20, 40)``, ``90+``, ``<18``, ``1984``, ``[1984, 1986]``, ``*``."""
    if bands.names:
        return bands.names[lo] if lo == hi else f"[{bands.names[lo]}, {bands.names[hi]}]"
    low, high, closing = bands.low[lo], bands.high[hi], _closing(bands, hi)
    if not high:
        return f"{low}+" if low else "*"
    if not low:
        return f"<={high}" if closing == "]" else f"<{high}"
    return low if lo == hi and closing == "]" else f"[{low}, {high}{closing}"


def _closing(bands: Bands, cell: int) -> str:
    """Return how a range ends with a cell; what is below the bottom ends before it."""
    return "]" if bands.closed and bands.low[cell] else ")"
