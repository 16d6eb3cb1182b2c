"""Neighbouring cells of a line as one range."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dbanon.domain.assignment import Bands


def cells_literal(bands: Bands, lo: int, hi: int, *, quote: str = "") -> str:
    """Return the cells lo..hi as a literal of a range type: ``[20,40)``, ``[90,)``, ``(,18)``."""
    low, high = bands.low[lo], bands.high[hi]
    begin = f"[{quote}{low}{quote}" if low else "("
    end = f"{quote}{high}{quote}{_closing(bands, hi)}" if high else ")"
    return f"{begin},{end}"


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
