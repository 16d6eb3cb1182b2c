"""The rows of the source that a release is held against."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dbanon.anonymization.released.covering import covers
from dbanon.anonymization.released.small_counts import least_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.anonymization.released.cells import Released
    from dbanon.domain.policy import Policy


_AT_ONCE = 500_000
FEW = (
    "fewer rows of the table than may be told are not in the relation as they are now,"
    " and this would tell their values"
)
"""Why a figure of the source is not told."""


def differs_by_few(released: Released, policy: Policy) -> bool:
    """Whether too few rows to be told are not in the release, as far as anybody can see that.

    By how many there are more than it shows, in all, of each value, or of that in a class, of the
    rows that no other class covers. Who is gone since has no values to tell. Each of these is no
    more than how many rows are not in it. O(g log^2 g + n log n).
    """
    least, table = least_rows(released, policy), released.table
    if least <= 1:
        return False
    more = [np.array([table.n_rows - int(released.size.sum())]), *_in_classes(released)]
    for counts in released.sensitive:
        now = table.sensitive[:, table.sensitive_names.index(counts.name)]
        published = np.bincount(counts.codes, counts.rows, minlength=counts.n_codes)
        more.append(np.bincount(now, minlength=counts.n_codes) - published)
    return 0 < max(int(each[each > 0].sum()) for each in more) < least


def _in_classes(released: Released) -> list[NDArray[Any]]:
    """Return how many rows more than it shows each class has, and of each value in each class.

    Of rows that one class alone covers; nothing where it is remembered which class each is in.
    """
    if released.classes is not None:
        return []
    table, only = released.table, _only_classes(released)
    alone = np.flatnonzero(only >= 0)
    classes = only[alone]
    more: list[NDArray[Any]] = [np.bincount(classes, minlength=released.n_classes) - released.size]
    for counts in released.sensitive:
        now = table.sensitive[alone, table.sensitive_names.index(counts.name)]
        pairs = np.concatenate(
            [
                counts.classes.astype(np.int64) * counts.n_codes + counts.codes,
                classes * counts.n_codes + now,
            ]
        )
        change = np.concatenate([-counts.rows, np.ones(len(alone), np.int64)])
        more.append(np.bincount(np.unique(pairs, return_inverse=True)[1], change))
    return more


def _only_classes(released: Released) -> NDArray[np.int64]:
    """Return the class of each row of the source that one alone covers, else -1; block by block."""
    classes = np.full(released.table.n_rows, -1, np.int64)
    for begin in range(0, len(classes), _AT_ONCE):
        found = covers(released, np.arange(begin, min(begin + _AT_ONCE, len(classes))), enough=2)
        alone = np.flatnonzero(np.diff(found.start) == 1)
        classes[begin + alone] = found.classes[found.start[alone]]
    return classes


def held_rows(released: Released, policy: Policy) -> NDArray[np.int64] | None:
    """Return the rows that are left when too few to be told are not in the release, None for all.

    Left out, changed or new, they have values of their own. As everybody can see how the others
    were published, any figure that these take part in would tell of them. Where nobody remembers
    who was left out, those are that no class covers. O(n log g) for g classes.
    """
    least = least_rows(released, policy)
    if least <= 1:
        return None
    is_in = _covered(released) if released.classes is None else released.classes >= 0
    return np.flatnonzero(is_in) if 0 < len(is_in) - is_in.sum() < least else None


def _covered(released: Released) -> NDArray[np.bool_]:
    """Return whether some class covers each row of the source; block by block."""
    is_in = np.zeros(released.table.n_rows, np.bool_)
    for begin in range(0, len(is_in), _AT_ONCE):
        rows = np.arange(begin, min(begin + _AT_ONCE, len(is_in)))
        is_in[rows] = np.diff(covers(released, rows, enough=1).start) > 0
    return is_in
