"""What a publication cost, as a report tells it: without a count of fewer than k rows."""

from __future__ import annotations

from dataclasses import dataclass
from math import frexp
from typing import TYPE_CHECKING

from dbanon.domain.assignment import costliest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dbanon.domain.assignment import LossReport

_DIGITS = 6  # beyond these a float differs by how many rows it was counted in
FINEST = 0.001
"""Shares are no multiples of less."""

_COUNTED_IN_RELEASE = frozenset(
    {"discernibility", "c-avg", "c-avg-normalized", "cm", "igpl", "suppressed"}
)
"""The metrics that readers can count."""
_OF_EXACT = frozenset(
    {"suppressed-cells", "md", "sse-ratio", "il1", "il2", "il3", "il4", "il5", "il-overall", "il1s"}
)
"""The metrics of exact values, of which by all digits whoever knows the others has the last.

What is left is scaled by the range of the source, whose end is one person's, and is not told.
"""

Count = int | str
"""How many rows, or in words what may be told of that."""


@dataclass(frozen=True, slots=True)
class Loss:
    """A ``LossReport`` as it is told; n_published: how many rows readers got.

    Where rows are left out, but too few to be told, neither is how many rows the source has, nor
    any metric, of which most count them; losses are then those of the published rows. Where a live
    view hides too few, losses are told as shares of these, and no smallest class, by which a reader
    would find how many.
    """

    n_rows: Count
    n_published: Count
    n_suppressed: Count
    n_classes: int
    smallest_class: Count
    ncp: float
    columns: Mapping[str, float]
    metrics: Mapping[str, float]
    sensitive_aware: bool
    weighted_ncp: float | None
    n_sampled: Count
    n_filtered: Count
    n_not_drawn: Count
    n_of_nobody: Count
    costliest: tuple[str, float] | None


def unit_of(least: int, rows: float) -> float:
    """Return of what the shares of so many rows are multiples, of which a reader knows all."""
    return max(least / rows, FINEST) if least > 1 and rows > 0.0 else FINEST


def told_share(share: float, *, unit: float) -> float:
    """Return a share as the nearest multiple of a unit, of which no last digit is known."""
    return min(round(round(share / unit) * unit, _DIGITS), 1.0)


def told_count(count: int, least: int) -> Count:
    """Return a count of rows: it is told of none, and of so many as it takes."""
    return count if not 0 < count < least else f"fewer than {least:,}"


def told_loss(loss: LossReport, *, least: int, shown: int | None = None) -> Loss:
    """Return a loss as it is told; least: the fewest rows of which a count is told, but for none.

    shown: how many rows a live view shows by now.
    """
    published = loss.n_rows - loss.n_suppressed
    few = f"fewer than {least:,}"
    is_known = shown is None or not 0 < abs(published - shown) < least
    is_fine = not 0 < loss.n_suppressed < least

    def of_told(share: float) -> float:
        exact = round(share, _DIGITS) if is_fine else _of_published(share, loss)
        return exact if is_known else told_share(exact, unit=unit_of(least, shown or 0))

    columns = {name: of_told(share) for name, share in loss.columns.items()}
    return Loss(
        n_rows=_told_rows(loss, few if not is_fine else "", is_known=is_known),
        n_published=published if is_known else f"those shown now, but for {few}",
        n_suppressed=told_count(loss.n_suppressed, least),
        n_classes=loss.n_classes,
        smallest_class=loss.smallest_class if is_known else "not told",
        ncp=of_told(loss.ncp),
        columns=columns,
        metrics=_told_metrics(loss, least) if is_fine and is_known else {},
        sensitive_aware=loss.sensitive_aware,
        weighted_ncp=None if loss.weighted_ncp is None else of_told(loss.weighted_ncp),
        n_sampled=_told_part(loss.n_sampled, loss.n_suppressed, least),
        n_filtered=told_count(loss.n_filtered, least),
        n_not_drawn=told_count(loss.n_not_drawn, least),
        n_of_nobody=told_count(loss.n_of_nobody, least),
        costliest=costliest(columns),
    )


def _told_metrics(loss: LossReport, least: int) -> dict[str, float]:
    """Return the metrics that are told, those of exact values by their first digits."""
    unit = unit_of(least, loss.n_rows - loss.n_suppressed)
    told = {}
    for name, value in loss.metrics.items():
        if name in _COUNTED_IN_RELEASE or (name in _OF_EXACT and least <= 1):
            told[name] = value
        elif name in _OF_EXACT:
            step = unit * 2.0 ** frexp(value)[1]
            told[name] = round(value / step) * step
    return told


def _told_rows(loss: LossReport, few: str, *, is_known: bool) -> Count:
    if few:
        return f"{few} besides those published"
    return loss.n_rows if is_known else "those published and those left out"


def _told_part(part: int, whole: int, least: int) -> Count:
    """Return how many of a told count are a part of it; nobody gets the rest by subtracting."""
    if part and 0 < whole - part < least:
        return f"all but fewer than {least:,}"
    return told_count(part, least)


def _of_published(share: float, loss: LossReport) -> float:
    """Return a loss without the rows that are left out, each of which counts 1 in it."""
    published = loss.n_rows - loss.n_suppressed
    if not published:
        return 0.0
    return round((share * loss.n_rows - loss.n_suppressed) / published, _DIGITS)
