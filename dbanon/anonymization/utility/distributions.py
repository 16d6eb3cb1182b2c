"""How often the values of a column are in the source, and in what is published."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.released.small_counts import (
    as_figures,
    hidden,
    nearby,
)
from dbanon.anonymization.utility.bins import OTHERS, categories_of
from dbanon.anonymization.utility.grids import Grid, grid_of
from dbanon.domain.report import Distribution
from dbanon.domain.report.losses import told_share, unit_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.anonymization.utility.bins import Bins
    from dbanon.anonymization.utility.readings import Reading

    Floats = NDArray[np.float64]


_FEWEST_OF_SHIFT = 300  # of fewer rows the rounding of shares moves more than the release does


def bins_of(reading: Reading) -> Bins | Grid | None:
    """Return bins that show nothing which the release does not, None where these tell nothing."""
    bins = grid_of(reading) if reading.line is not None else categories_of(reading)
    return bins if bins is not None and len(bins.names) > 1 else None


def distribution(reading: Reading, bins: Bins | Grid, *, least: int) -> Distribution:
    """Compare the source with the release; counts of fewer than ``least`` rows are not told.

    Nor is by how few more or fewer rows of the source a bin has than published ones. Shares are
    multiples of such as readers know, and distances those of the figures that are told.
    """
    exact, published = bins.of_source(reading), bins.of_release(reading)
    (source, total), names = _of_source(exact, published, least=least), bins.names
    if names[-1] == OTHERS and source[-1] < least:
        names, published = names[:-1], published[:-1]
        source, total = _of_source(exact[:-1], published, least=least)
    secret = hidden(source, least)
    unit = unit_of(least, float(published.sum()))
    has_shift = isinstance(bins, Grid) and not bins.null and published.sum() >= _FEWEST_OF_SHIFT
    shares = _told(source / (total or 1.0), unit)
    seen = _told(published / (published.sum() or 1.0), unit)
    return Distribution(
        column=reading.name,
        bins=names,
        source=as_figures(shares, secret),
        published=as_figures(seen, np.zeros(len(seen), np.bool_)),
        distance=total_variation(shares, seen, secret),
        shift=_shift(shares, seen, secret) if has_shift else None,
    )


def _of_source(exact: Floats, published: Floats, *, least: int) -> tuple[Floats, float]:
    """Return counts of the source and their sum, as published where they are near to that.

    Near to the published shares of the sum: where many rows are left out, fewer rows are as many.
    """
    (total,) = nearby(exact.sum(keepdims=True), published.sum(keepdims=True), least=least)
    alike = published * (total / (published.sum() or 1.0))
    return nearby(exact, alike, least=least), float(total)


def _told(shares: Floats, unit: float) -> Floats:
    return np.array([told_share(share, unit=unit) for share in shares.tolist()])


def total_variation(source: Floats, published: Floats, secret: NDArray[np.bool_]) -> float:
    """Return half the sum of all differences, what is hidden counting as one bin."""
    apart = np.abs(source - published)[~secret].sum()
    together = abs(_rest(source, secret) - _rest(published, secret))
    return round(min(float(apart + together) / 2.0, 1.0), 6)


def _shift(source: Floats, published: Floats, secret: NDArray[np.bool_]) -> float:
    """Return by which share of all bins a row moves on average (earth mover's distance).

    What is hidden is taken to lie in its bins as what is published does.
    """
    filled = source.copy()
    inside = published[secret].sum()
    even = np.full(int(secret.sum()), 1.0 / max(int(secret.sum()), 1))
    filled[secret] = _rest(source, secret) * (published[secret] / inside if inside > 0.0 else even)
    moved = np.abs(np.cumsum(filled - published)[:-1]).sum()
    return round(float(moved) / (len(source) - 1), 6)


def _rest(shares: Floats, secret: NDArray[np.bool_]) -> float:
    """Return what the shares that are told leave for those that are hidden."""
    return max(1.0 - float(shares[~secret].sum()), 0.0) if secret.any() else 0.0
