"""k-medoids by random swaps (CLARANS; Ng, Han, VLDB 1994), with groups of at least k rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from dbanon.anonymization.adjusting.resize import resize
from dbanon.anonymization.algorithms.clustering.k_medoids import TIE, MedoidSearch
from dbanon.anonymization.distances.rows import pairwise
from dbanon.anonymization.limits import require_at_most

if TYPE_CHECKING:
    from dbanon.anonymization.interfaces import Requirement
    from dbanon.domain.assignment import Assignment, EncodedTable
    from dbanon.kernels.arrays import Floats

_LEAST_NEIGHBOURS = 250
_SHARE_OF_NEIGHBOURS = 0.0125


@dataclass(frozen=True, slots=True)
class Clarans:
    """Partitioning around n / k medoids that random swaps improve, then repaired.

    Random rows start as medoids. A random row takes the place of a random medoid if that lowers
    the sum of distances, until ``neighbours`` swaps in a row do not; 0 takes 1.25 % of all swaps,
    at least 250 (section 3.4). The best of ``searches`` such searches is taken. Sizes are those of
    ``resize``: at least k rows, fewer than 2k where that costs anything and l = 1.
    """

    searches: int = 2
    neighbours: int = 0
    distance: str = "manhattan"

    MAX_ROWS: ClassVar[int] = 5_000

    def assign(self, table: EncodedTable, requirement: Requirement, *, seed: int) -> Assignment:
        """Group the rows; O(n) for each swap that is tried, O(n^2) memory."""
        require_at_most(self.MAX_ROWS, table, algorithm="clarans")
        apart = pairwise(table, self.distance)
        n_medoids = table.n_rows // max(requirement.k, 1)
        n_swaps = n_medoids * (table.n_rows - n_medoids)
        usual = max(_LEAST_NEIGHBOURS, round(_SHARE_OF_NEIGHBOURS * n_swaps))
        found = [
            wandered(
                apart,
                n_medoids,
                neighbours=self.neighbours or usual,
                random=np.random.default_rng((seed, i)),
            )
            for i in range(max(self.searches, 1))
        ]
        medoids = np.sort(min(found, key=lambda search: search.deviation).medoids)
        return resize(table, apart[:, medoids].argmin(axis=1), requirement)


def wandered(
    apart: Floats, n_medoids: int, *, neighbours: int, random: np.random.Generator
) -> MedoidSearch:
    """Return medoids of which so many random swaps in a row gain nothing; ties are no gain.

    apart: (n, n) distances.
    """
    rows = random.permutation(len(apart))
    search, others = MedoidSearch(apart, rows[:n_medoids]), rows[n_medoids:]
    failed = 0 if len(others) else neighbours
    while failed < neighbours:
        place, i = int(random.integers(n_medoids)), int(random.integers(len(others)))
        row, failed = int(others[i]), failed + 1
        if search.gain(place, row) > TIE:
            others[i], failed = search.medoids[place], 0
            search.swap(place, row)
    return search
