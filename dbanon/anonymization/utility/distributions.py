"""How often the values of a column are in the source, and in what is published."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.utility.bins import OTHERS, categories_of
from dbanon.anonymization.utility.grids import Grid, grid_of
from dbanon.domain.report import Distribution

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.anonymization.utility.bins import Bins
    from dbanon.anonymization.utility.readings import Reading

    Floats = NDArray[np.float64]

_DIGITS = 6


def bins_of(reading: Reading) -> Bins | Grid | None:
    """Return bins that show nothing which the release does not, None where these tell nothing."""
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
    """Return by which share of all bins a row moves on average (earth mover's distance)."""
    moved = np.abs(np.cumsum(source - published)[:-1]).sum()
    return round(float(moved) / (len(source) - 1), _DIGITS)
