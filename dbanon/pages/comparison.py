"""The page of a comparison: algorithms, k and l side by side, risk against utility."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from dbanon.pages import files
from dbanon.pages.figures import number, percent
from dbanon.pages.rendering import FIGURE, ROOM, WORDS, Table, rendered, tabled, used

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from dbanon.actions.compare import Compared, Comparison
    from dbanon.domain.assignment import LossReport

_LOOKS = 7  # markers, and colours
_MARGIN = 1.3
_STEPS = (1.0, 2.0, 5.0)
_MOST_TICKS = 8


@dataclass(frozen=True, slots=True)
class Axis:
    """A logarithmic axis, because losses and risks differ by factors of a hundred."""

    low: float
    high: float

    @classmethod
    def of(cls, shares: Sequence[float]) -> Axis:
        """Return an axis that covers shares; zeros are at its start."""
        shown = [share for share in shares if share > 0] or [1.0]
        return cls(min(shown) / _MARGIN, max(shown) * _MARGIN)

    def at(self, share: float) -> float:
        """Return the position of a share, in [0, 1]."""
        return math.log(max(share, self.low) / self.low) / math.log(self.high / self.low)

    @property
    def round_shares(self) -> list[float]:
        """Return tick values: 1, 2 and 5 of each power of ten, or only powers if too many."""
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        for steps in (_STEPS, _STEPS[:1]):
            found = [step * 10.0**power for power in powers for step in steps]
            found = [share for share in found if self.low <= share <= self.high]
            if len(found) <= _MOST_TICKS:
                break
        return found


@dataclass(frozen=True, slots=True)
class Tick:
    """A position on an axis, in [0, 1], and its figure."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Point:
    """A position in the drawing from its lower left corner, both coordinates in [0, 1]."""

    x: float
    y: float
    about: str
    k: int


@dataclass(frozen=True, slots=True)
class Line:
    """The points of one algorithm, its marker and color numbers, and segments between points."""

    name: str
    marker: int
    colour: int
    points: tuple[Point, ...]
    pieces: tuple[tuple[Point, Point], ...]


def write(found: Comparison, path: Path) -> None:
    """Write the page of a comparison; equal comparisons give equal files."""
    files.write(render(found).encode(), path, files.PAGE)


def render(found: Comparison) -> str:
    """Return the page of a comparison as text."""
    return rendered("comparison.html", **values_of(found))


def values_of(found: Comparison) -> dict[str, object]:
    """Return what the templates of a comparison and of its chart show."""
    done = [(one, one.loss) for one in found.results if one.loss is not None]
    across = Axis.of([loss.asked for _, loss in done])
    risks = [(1 / one.k, _highest(loss)) for one, loss in done]  # what is asked, and what is found
    upward = Axis.of([risk for pair in risks for risk in pair])
    marked = [k for k in found.ks if upward.low <= 1 / k <= upward.high]
    return {
        "found": found,
        "lines": list(_lines(done, across, upward)),
        "across": [Tick(across.at(share), percent(share)) for share in across.round_shares],
        "upward": [Tick(upward.at(1 / k), f"k = {number(k)}") for k in marked],
        "results": _results(found, done),
        "refused": [(f"{r.algorithm}, k = {r.k:,}", r.reason) for r in found.results if r.reason],
    }


def _highest(loss: LossReport) -> float:
    """Return the risk of the record with the highest re-identification risk."""
    return 1 / max(loss.smallest_class, 1)


def _lines(
    done: Sequence[tuple[Compared, LossReport]], across: Axis, upward: Axis
) -> Iterator[Line]:
    for i, name in enumerate(dict.fromkeys(one.algorithm for one, _ in done)):
        points = tuple(
            Point(
                across.at(loss.asked),
                upward.at(_highest(loss)),
                f"{name}, k = {one.k:,}: {percent(loss.asked)} lost,"
                f" {percent(_highest(loss))} at most",
                one.k,
            )
            for one, loss in done
            if one.algorithm == name
        )
        yield Line(name, i % _LOOKS, (i + i // _LOOKS) % _LOOKS, points, tuple(pairwise(points)))


def _results(found: Comparison, done: Sequence[tuple[Compared, LossReport]]) -> Table:
    weighted = "weighted " if found.is_weighted else ""
    return tabled(
        f"What each loses ({weighted}NCP), and what it risks",
        done,
        ("algorithm", WORDS, lambda one: one[0].title),
        ("k", FIGURE, lambda one: number(one[0].k)),
        ("l", FIGURE, lambda _: number(found.l)),
        ("lost", FIGURE, lambda one: percent(one[1].asked)),
        ("from 0 to 100%", ROOM, lambda one: used(one[1].asked)),
        ("highest risk", FIGURE, lambda one: percent(_highest(one[1]))),
        # one record per class
        (
            "average risk",
            FIGURE,
            lambda one: percent(one[1].n_classes / max(one[1].n_rows - one[1].n_suppressed, 1)),
        ),
        ("classes", FIGURE, lambda one: number(one[1].n_classes)),
        ("left out", FIGURE, lambda one: number(one[1].n_suppressed)),
        ("seconds", FIGURE, lambda one: f"{one[0].seconds or 0.0:.2f}"),
    )
