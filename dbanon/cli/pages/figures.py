"""What a page shows of figures: tables, and bars in them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


class Sign(StrEnum):
    """What a mark across a bar stands for."""

    BOUND = "bound"
    GUESS = "guess"


class Ink(StrEnum):
    """What a bar is the figure of; each has a colour, and the source an outline in place of it."""

    RISK = "risk"
    USE = "use"
    SOURCE = "source"


@dataclass(frozen=True, slots=True)
class Mark:
    """A line across a bar, and its figure in words."""

    sign: Sign
    share: float
    words: str


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar of the length ``share`` of the room there is, in [0, 1]; None leaves it empty.

    text: the figure; between: the ends of an interval around it; label, about: what it is the
    figure of, in few words and in more.
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
    """A verdict in a word, a sign that tells it without a colour, and what it rests on."""

    kind: str
    sign: str
    word: str
    line: str = ""


class Kind(StrEnum):
    """How the cells of a column are set."""

    WORDS = "words"
    FIGURE = "figure"
    ROOM = "room"


WORDS, FIGURE, ROOM = Kind.WORDS, Kind.FIGURE, Kind.ROOM

Cell = str | Noted | Ruling | tuple[Bar, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A table of which the first cell of a row says what the row is about.

    heads: the title of each column, and how its cells are set.
    """

    caption: str
    heads: Mapping[str, Kind]
    rows: tuple[tuple[Cell, ...], ...]

    def parts(self, most: int) -> tuple[Table, ...]:
        """Return it in two tables, the first of ``most`` rows at most."""
        halves = (self.rows[:most], self.rows[most:])
        return tuple(Table(self.caption, self.heads, rows) for rows in halves if rows)


def look(table: Table) -> str:
    """Return how a table is set: one with bars takes all the room it gets."""
    bars = [cell for row in table.rows[:1] for cell in row if isinstance(cell, tuple)]
    return "plain" if not bars else "drawn" if len(bars[0]) == 1 else "drawn paired"
