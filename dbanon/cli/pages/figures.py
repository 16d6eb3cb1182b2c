"""Figures of a page: tables, and bars in them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


class Sign(StrEnum):
    """The meaning of a mark across a bar."""

    BOUND = "bound"
    GUESS = "guess"


class Ink(StrEnum):
    """The subject of a bar; each has a color, the source an outline instead."""

    RISK = "risk"
    USE = "use"
    SOURCE = "source"


@dataclass(frozen=True, slots=True)
class Mark:
    """A line across a bar, with its figure as text."""

    sign: Sign
    share: float
    words: str


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar of the relative length ``share`` in [0, 1]; None leaves it empty.

    text: the figure; between: a confidence interval; label, about: name and explanation.
    """

    ink: Ink
    share: float | None
    text: str
    marks: tuple[Mark, ...] = ()
    between: tuple[float, float] | None = None
    label: str = ""
    about: str = ""


@dataclass(frozen=True, slots=True)
class Noted:
    """A text with a smaller one below it."""

    text: str
    note: str


@dataclass(frozen=True, slots=True)
class Ruling:
    """A verdict as a word, a sign for readers without color, and its basis."""

    kind: str
    sign: str
    word: str
    line: str = ""


class Kind(StrEnum):
    """The format of the cells of a column."""

    WORDS = "words"
    FIGURE = "figure"
    ROOM = "room"


WORDS, FIGURE, ROOM = Kind.WORDS, Kind.FIGURE, Kind.ROOM

Cell = str | Noted | Ruling | tuple[Bar, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A table with row headers in the first column; heads: title and format of each column."""

    caption: str
    heads: Mapping[str, Kind]
    rows: tuple[tuple[Cell, ...], ...]

    def parts(self, most: int) -> tuple[Table, ...]:
        """Split the table after ``most`` rows."""
        halves = (self.rows[:most], self.rows[most:])
        return tuple(Table(self.caption, self.heads, rows) for rows in halves if rows)


def look(table: Table) -> str:
    """Return the style class of a table; one with bars has full width."""
    bars = [cell for row in table.rows[:1] for cell in row if isinstance(cell, tuple)]
    return "plain" if not bars else "drawn" if len(bars[0]) == 1 else "drawn paired"
