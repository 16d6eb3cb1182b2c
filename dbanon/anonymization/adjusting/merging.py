"""Merging groups that fail, whatever it is that they fail."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.adjusting.unions import Unions
from dbanon.domain.assignment import Assignment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from dbanon.domain.assignment import EncodedTable


def merge_with_nearest(
    table: EncodedTable,
    assignment: Assignment,
    bad: NDArray[np.bool_],
    *,
    near: Sequence[frozenset[int]] = (),
) -> Assignment:
    """Let every bad group that no other has joined before join the one that costs least.

    bad: (g,), of two groups or more; near: for each group those it rather joins. The cost is the
    rise of the total (rows * certainty penalty); ties go to the lower group. O(bad g d).
    """
    unions = Unions(table, assignment.group, assignment.n_groups)
    into = np.arange(assignment.n_groups)
    grown = np.zeros(assignment.n_groups, np.bool_)
    for a in np.flatnonzero(bad).tolist():
        if grown[a] or into[a] != a:
            continue
        rises = unions.rises(a)
        close = [b for b in sorted(near[a]) if np.isfinite(rises[b])] if near else []
        b = close[int(rises[close].argmin())] if close else int(rises.argmin())
        unions.absorb(a, b)
        into[into == b] = a
        grown[a] = True
    alive, number = np.unique(into, return_inverse=True)
    group = np.append(number, -1).astype(np.int32)[assignment.group]
    return Assignment(group, len(alive))
