"""k-medoids with groups of at least k rows.

By swapping (PAM; Kaufman, Rousseeuw, 1990), and by random swaps (CLARANS; Ng, Han, VLDB 1994).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from dbanon.anonymization.adjusting.resize import resize
from dbanon.anonymization.distances.rows import pairwise
from dbanon.anonymization.interfaces import require_at_most

if TYPE_CHECKING:
    from dbanon.anonymization.interfaces import Requirement
    from dbanon.domain.assignment import Assignment, EncodedTable
    from dbanon.kernels.arrays import Floats, Int64s


_LEAST_NEIGHBOURS = 250
_SHARE_OF_NEIGHBOURS = 0.0125

TIE = 1e-9  # what lowers a sum of distances by less lowers nothing


@dataclass(frozen=True, slots=True)
class KMedoids:
    """Partitioning around n / k medoids, then repaired.

    Random rows start as medoids. Each row in turn takes the place of the medoid where that lowers
    the sum of distances most, if it does, until no row does or ``rounds`` rounds are over. The
    gain of all places is found at once and the first gain is taken (Schubert, Rousseeuw, 2021,
    "Fast and eager k-medoids clustering"). Sizes are those of ``resize``: at least k rows, fewer
    than 2k where that costs anything and l = 1. Ties go to the lower place and row.
    """

    rounds: int = 5
    distance: str = "manhattan"

    MAX_ROWS: ClassVar[int] = 10_000

    def assign(self, table: EncodedTable, requirement: Requirement, *, seed: int) -> Assignment:
        """Group the rows; O(rounds n^2), and O(n) memory for each row."""
        require_at_most(self.MAX_ROWS, table, algorithm="k-medoids")
        apart = pairwise(table, self.distance)
        n_medoids = table.n_rows // max(requirement.k, 1)
        random = np.random.default_rng(seed)
        medoids = random.choice(table.n_rows, n_medoids, replace=False)
        medoids = np.sort(swapped(apart, medoids, rounds=self.rounds))
        return resize(table, apart[:, medoids].argmin(axis=1), requirement)


def swapped(apart: Floats, medoids: Int64s, *, rounds: int) -> Int64s:
    """Return the medoids, (m,) rows, after swapping; O(rounds n^2).

    apart: (n, n) distances; medoids: (m,) the rows to start from.
    """
    search = MedoidSearch(apart, medoids)
    for _ in range(rounds):
        swaps = [search.try_swap(row) for row in range(len(apart))]
        if not any(swaps):
            break
    return search.medoids


class MedoidSearch:
    """Medoids, and the places of the two nearest to each row with their distances."""

    def __init__(self, apart: Floats, medoids: Int64s) -> None:
        self._apart, self.medoids = apart, medoids.copy()
        self._places = np.zeros((2, len(apart)), np.int64)
        self._steps = np.full((2, len(apart)), np.inf)
        self._look_up(np.arange(len(apart)))

    def _look_up(self, rows: Int64s) -> None:
        """Find the two nearest medoids of some rows; there may be only one."""
        steps = self._apart[rows[:, None], self.medoids]
        self._steps[1, rows] = np.inf
        for i in range(min(2, len(self.medoids))):
            place = steps.argmin(axis=1)
            self._places[i, rows] = place
            self._steps[i, rows] = steps[np.arange(len(rows)), place]
            steps[np.arange(len(rows)), place] = np.inf

    @property
    def deviation(self) -> float:
        """The sum of the distances of the rows to their nearest medoids."""
        return float(self._steps[0].sum())

    def try_swap(self, row: int) -> bool:
        """Put a row in the place of the medoid where that gains most; return whether it does."""
        if row in self.medoids:
            return False
        steps, (near, far) = self._apart[row], self._steps
        gained = np.maximum(near - steps, 0.0).sum()
        # a row that loses its medoid falls to its second or to the new one
        lost = np.maximum(np.minimum(steps, far) - near, 0.0)
        loss = np.bincount(self._places[0], weights=lost, minlength=len(self.medoids))
        place = int(loss.argmin())
        if gained - loss[place] <= TIE:
            return False
        self.swap(place, row)
        return True

    def gain(self, place: int, row: int) -> float:
        """Return by how much a row that is no medoid would lower the sum in place of one."""
        steps, (near, far) = self._apart[row], self._steps
        left = np.flatnonzero(self._places[0] == place)
        lost = np.maximum(np.minimum(steps[left], far[left]) - near[left], 0.0).sum()
        return float(np.maximum(near - steps, 0.0).sum() - lost)

    def swap(self, place: int, row: int) -> None:
        """Put a row in the place of a medoid; O(n), and O(m) for each row that loses one."""
        self.medoids[place] = row
        steps, is_stale = self._apart[row], (self._places == place).any(axis=0)
        nearer = ~is_stale & (steps < self._steps[0])
        second = ~is_stale & ~nearer & (steps < self._steps[1])
        self._places[1, nearer] = self._places[0, nearer]
        self._steps[1, nearer] = self._steps[0, nearer]
        for i, rows in enumerate((nearer, second)):
            self._places[i, rows] = place
            self._steps[i, rows] = steps[rows]
        self._look_up(np.flatnonzero(is_stale))


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
