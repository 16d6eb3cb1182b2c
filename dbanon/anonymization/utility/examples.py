"""Three counts as an analyst takes them, in the source and in a release.

How many rows have a frequent value of one column, of another, and of two together: a
quasi-identifier with a sensitive column, if there is one. Estimates spread the rows of a label
evenly over its values, as ``queries`` does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.utility.distributions import NULL, OTHERS, Bins, Grid, bins_of
from dbanon.anonymization.utility.readings import published_pairs
from dbanon.domain.report import Answer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dbanon.anonymization.utility.readings import Reading

_COUNTS = 2  # of one column


@dataclass(frozen=True, eq=False, slots=True)
class Part:
    """A bin of a column, given by the place of the column among those that are published."""

    column: int
    bins: Bins | Grid
    place: int

    def in_words(self, readings: Sequence[Reading]) -> str:
        """Return the condition as text."""
        sign = "=" if isinstance(self.bins, Bins) else "in"
        return f"{readings[self.column].name} {sign} {self.bins.names[self.place]}"


Question = tuple[Part, ...]
"""One part, or two parts that rows are in at once."""


def questions(readings: Sequence[Reading]) -> tuple[Question, ...]:
    """Return up to three questions about the most frequent bins of published columns."""
    parts = [
        Part(column, bins, place)
        for column, reading in enumerate(readings)
        if (bins := bins_of(reading)) is not None and (place := _largest(reading, bins)) is not None
    ]
    known = [part for part in parts if readings[part.column].classes is None]
    secret = [part for part in parts if part not in known]
    of_pairs = [
        (one, other)
        for one in known
        for other in (secret or known)
        if one is not other and isinstance(one.bins, Bins) and isinstance(other.bins, Bins)
    ]
    return (*((part,) for part in known[:_COUNTS]), *of_pairs[:1])


def _largest(reading: Reading, bins: Bins | Grid) -> int | None:
    rows = bins.of_source(reading)
    rows = np.where([name in {NULL, OTHERS} for name in bins.names], 0.0, rows[: len(bins.names)])
    return int(rows.argmax()) if rows.any() else None


def answer(question: Question, readings: Sequence[Reading], *, least: int) -> Answer:
    """Return the count of the source and that of the release, None for those below ``least``."""
    chosen = [readings[part.column] for part in question]
    inside = [
        part.bins.places(reading) == part.place
        for part, reading in zip(question, chosen, strict=True)
    ]
    source = int(np.logical_and.reduce(inside).sum())
    if len(question) == 1:
        ((part,), (reading,)) = question, chosen
        published = float(part.bins.of_release(reading)[part.place])
    else:
        of_each = [
            part.bins.shares(reading)[:, part.place]
            for part, reading in zip(question, chosen, strict=True)
            if isinstance(part.bins, Bins)
        ]
        joint = published_pairs(*chosen)
        assert joint is not None  # noqa: S101 - of two sensitive columns nothing is asked
        published = float(of_each[0] @ (joint @ of_each[1]))
    return Answer(
        "rows with " + " and ".join(part.in_words(readings) for part in question),
        source if source >= least else None,
        published if published >= least else None,
    )
