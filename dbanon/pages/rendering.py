"""Templates, with escaping of all names in a page."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from dbanon.domain import errors
from dbanon.domain.text import visible
from dbanon.pages import files
from dbanon.pages.figures import number, percent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from jinja2 import Environment
    from markupsafe import Markup


T = TypeVar("T")


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


def tabled(
    caption: str, found: Iterable[T], *columns: tuple[str, Kind, Callable[[T], Cell]]
) -> Table:
    """Return a table of some items; columns: title, format, and what the cell of an item has."""
    rows = tuple(tuple(cell(one) for _, _, cell in columns) for one in found)
    return Table(caption, {title: kind for title, kind, _ in columns}, rows)


def used(share: float) -> tuple[Bar]:
    """Return a cell with the bar of a loss."""
    return (Bar(Ink.USE, share, percent(share)),)


def look(table: Table) -> str:
    """Return the style class of a table; one with bars has full width."""
    bars = [cell for row in table.rows[:1] for cell in row if isinstance(cell, tuple)]
    return "plain" if not bars else "drawn" if len(bars[0]) == 1 else "drawn paired"


TEMPLATES = Path(__file__).parent / "templates"


def require(path: Path, *, example: str) -> None:
    """Raise ConfigError if no page can be written there, before any computation."""
    files.require(path, files.PAGE, example=example)
    errors.require_library("jinja2", what="a page")


def rendered(template: str, **values: Any) -> str:  # noqa: ANN401 - whatever the template shows
    """Return a page without scripts or network access; equal values give equal text.

    Its policy for the browser refuses everything except one style, identified by its digest.
    """
    style = (TEMPLATES / "style.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    page = environment().get_template(template)
    return page.render(
        layout="base.html", style=_markup(style), digest=f"sha256-{digest}", **values
    )


@cache
def environment(*folders: Path) -> Environment:
    """Return what renders templates of these folders, and then those of pages."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader([*folders, TEMPLATES]),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_seen,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"percent": percent, "number": number, "code": _code}
    environment.filters |= {"width": _width, "look": look, "name": _name, "exact": _exact}
    environment.globals["version"] = version("dbanon")
    return environment


def _seen(value: object) -> object:
    """Escape invisible and reordering characters in texts, but not in templates."""
    from markupsafe import Markup

    if isinstance(value, Markup):
        return value
    return visible(str(value))


def _code(text: str) -> Markup:
    from markupsafe import escape

    return escape(visible(text, keep="\n\t"))


def _exact(value: object) -> Markup:
    """Escape a value that a form sends back, with its invisible characters."""
    from markupsafe import escape

    return escape(str(value))


def _name(name: object) -> Markup:
    """Let the name of a table or column break after a dot or an underscore."""
    from markupsafe import Markup, escape

    parts = re.split(r"(?<=[._])(?=[^._])", visible(str(name)))
    return Markup("<wbr>").join(map(escape, parts))


def _width(share: float) -> str:
    """Format a share as a length within a drawing, at most 100%."""
    return f"{100 * min(max(share, 0.0), 1.0):.2f}%"


def _markup(text: str) -> Markup:
    from markupsafe import Markup

    return Markup(text)  # noqa: S704 - a file of this package
