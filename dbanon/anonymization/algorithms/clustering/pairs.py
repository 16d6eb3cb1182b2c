"""The best pair of clusters, as clusters merge."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from dbanon.kernels.arrays import Floats


class BestPairs:
    """The best partner of each of n clusters; ties go to the lower clusters.

    goodness: returns how good each cluster is as the partner of one, (n,), the same both ways, 0
    where the two do not merge. A merger may change the goodness of its own pairs alone.
    """

    def __init__(self, n_clusters: int, goodness: Callable[[int], Floats]) -> None:
        self._goodness = goodness
        self._best, self._partner = np.zeros(n_clusters), np.zeros(n_clusters, np.int64)
        for a in range(n_clusters):
            self._look_up(a)

    def _look_up(self, a: int) -> None:
        good = self._goodness(a)
        self._partner[a] = good.argmax()
        self._best[a] = good[self._partner[a]]

    def best(self) -> tuple[int, int] | None:
        """Return the best pair, the lower cluster first; None when no two merge any more."""
        if not self._best.any():
            return None
        a = int(self._best.argmax())
        return a, int(self._partner[a])

    def merged(self, a: int, b: int) -> None:
        """Take note that b has become part of a; O(n) for each cluster that lost its partner."""
        stale = (self._partner == a) | (self._partner == b)
        for c in np.flatnonzero(stale & (self._best > 0.0)).tolist():
            self._look_up(c)
        good = self._goodness(a)
        is_better = good > self._best
        is_better |= (good > 0.0) & (good == self._best) & (a < self._partner)
        self._best[is_better], self._partner[is_better] = good[is_better], a
