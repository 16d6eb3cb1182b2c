"""The rows of the source that a release is held against."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dbanon.anonymization.released.covering import covers
from dbanon.anonymization.released.small_counts import least_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.anonymization.released.cells import Released
    from dbanon.domain.policy import Policy


_AT_ONCE = 500_000
_NOWHERE = -2
FEW = (
    "fewer rows of the table than may be told are not in the relation as they are now,"
    " and this would tell their values"
)
"""Why a figure of the source is not told."""


class Standing(NamedTuple):
    """How the rows of the source stand to a release.

    held: those that are left when too few to be told are surely not in it, None for all of them;
    is_told: whether anything of all of them may be, which is to be asked again of those left.
    """

    held: NDArray[np.int64] | None
    is_told: bool


def standing(released: Released, policy: Policy) -> Standing:
    """Return which rows a release is held against, and whether that may be told.

    Who is left out, changed or new has values that nobody published. As everybody can see how the
    others were, any figure that a few of them take part in would tell these. Where nobody remembers
    who is in it, those are surely not that no class covers. O(g log^2 g + n log n) for g classes.
    """
    least = least_rows(released, policy)
    if least <= 1:
        return Standing(None, is_told=True)
    classes = _only_classes(released)
    out = int((classes == _NOWHERE).sum())
    if 0 < out < least:
        return Standing(np.flatnonzero(classes != _NOWHERE), is_told=False)
    return Standing(None, is_told=not 0 < _surplus(released, classes) < least)


def _surplus(released: Released, classes: NDArray[np.int64]) -> int:
    """Return how many rows are not in a release at least, as far as anybody can see that.

    By how many there are more than it shows, in all, of each value, or of that in a class, of the
    rows that no other class covers. Who is gone since has no values to tell.
    """
    table = released.table
    alone = np.flatnonzero(classes >= 0)
    counted = np.bincount(classes[alone], minlength=released.n_classes)
    more: list[NDArray[Any]] = [
        np.array([table.n_rows - int(released.size.sum())]),
        counted - released.size,
    ]
    for counts in released.sensitive:
        now = table.sensitive[:, table.sensitive_names.index(counts.name)]
        published = np.bincount(counts.codes, counts.rows, minlength=counts.n_codes)
        more.append(np.bincount(now, minlength=counts.n_codes) - published)
        shown = counts.classes.astype(np.int64) * counts.n_codes + counts.codes
        pairs = np.concatenate([shown, classes[alone] * counts.n_codes + now[alone]])
        change = np.concatenate([-counts.rows, np.ones(len(alone), np.int64)])
        more.append(np.bincount(np.unique(pairs, return_inverse=True)[1], change))
    return max(int(each[each > 0].sum()) for each in more)


def _only_classes(released: Released) -> NDArray[np.int64]:
    """Return the class of each row of the source, -1 where it may be in several; block by block."""
    if released.classes is not None:
        return np.where(released.classes >= 0, released.classes, _NOWHERE).astype(np.int64)
    classes = np.full(released.table.n_rows, -1, np.int64)
    for begin in range(0, len(classes), _AT_ONCE):
        found = covers(released, np.arange(begin, min(begin + _AT_ONCE, len(classes))), enough=2)
        held = np.diff(found.start)
        alone = np.flatnonzero(held == 1)
        classes[begin + alone] = found.classes[found.start[alone]]
        classes[begin + np.flatnonzero(held == 0)] = _NOWHERE
    return classes
