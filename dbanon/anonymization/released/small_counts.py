"""Counts of the source that may be told: nothing of fewer than k persons, and no last digit.

A report lies beside the release it is about, so each figure is one more that a reader can subtract
or divide by. A count that differs from what is published by fewer rows than may be told is told as
what is published, which readers know; any other is a multiple of these rows, or of a thousandth
where that is more.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

import numpy as np

from dbanon.domain.report.losses import FINEST, unit_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.anonymization.released.cells import Released
    from dbanon.domain.policy import Policy

    Counts = NDArray[np.float64]

_LEAST = 10
"""Fewer rows are not told by a policy that asks for no k, unless it has classes of fewer."""
_SLACK = 1e-9


def most_rows(released: Released) -> int:
    """Return how many rows a person has at most."""
    if released.persons is None or not len(released.persons):
        return 1
    return int(np.bincount(released.persons).max())


def least_rows(released: Released, policy: Policy) -> int:
    """Return how many rows it takes to be told: as many as k persons may have.

    Where nothing promises k, those of the smallest class, and ten of larger ones.
    """
    if policy.k > 1:
        return policy.k * most_rows(released)
    return min(int(released.size.min(initial=_LEAST)), _LEAST)


def hidden(counts: Counts, least: int) -> NDArray[np.bool_]:
    """Return which of some counts must not be told.

    Those below ``least``, and as many of the least others as it takes until what a reader gets for
    all of them together, by subtracting the rest from the sum, is so much or more of at least two.
    With 1 there is nothing to hide.
    """
    secret = counts < least
    if least <= 1 or not secret.any():
        secret[:] = False
        return secret
    for at in np.argsort(counts, kind="stable"):
        if secret.sum() > 1 and counts[secret].sum() >= least:
            break
        secret[at] = True
    return secret


def nearby(counts: Counts, published: Counts, *, least: int) -> Counts:
    """Return counts, but what is published of those that differ from it by too few to be told."""
    if least <= 1:
        return counts
    return np.where(np.abs(counts - published) < least, published, counts)


def told_rows(count: int, *, published: int, least: int) -> int:
    """Return a count of rows of the source as it is told, that of all published rows exactly."""
    if least <= 1:
        return count
    if abs(count - published) < least:
        return published
    unit = max(least, round(count * FINEST))
    return max(round(count / unit), 1) * unit


def told_above(share: float, rows: int, *, of: int, least: int) -> float:
    """Return a share of so many rows as one of ``of``, as which they are told, rounded up.

    The rows that have it are counted up, so that the share does not depend on how many rows more
    or less there are than what is told.
    """
    unit = unit_of(least, of)
    found = share * max(rows, of) / of
    return min(round(ceil(found / unit - _SLACK) * unit, 6), 1.0)


def as_figures(shares: Counts, secret: NDArray[np.bool_]) -> tuple[float | None, ...]:
    """Return shares as they are written, None for those that are hidden."""
    pairs = zip(shares.tolist(), secret.tolist(), strict=True)
    return tuple(None if is_secret else round(share, 6) for share, is_secret in pairs)
