"""Models that count a population: k-map (Sweeney) and delta-presence (Nergiz et al., SIGMOD 2007).

A reader who holds the population looks for the row that a published one may be. Where the regions
of two classes share rows of the population, as local recoding lets them, what one class takes of it
is missing from the other: of a population 1, 2, 3 let one class be 1 to 2 with two rows, and
another 2 to 3 with one row. The second row is that of 3, though its region holds two. Neither model
may therefore take the rows in a region for granted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from dbanon.anonymize.models.bounds import Bound

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.anonymize.population import Presence


@dataclass(frozen=True, slots=True)
class KMap:
    """Every published row may be that of at least k rows of the population.

    Of the rows in the region of a class, no more are taken by other classes than these have rows,
    and no more than they share; the class' own rows are always left to it. Any of the others may
    change places with a row of the class, and nobody could tell.
    """

    k: int
    bound: ClassVar[Bound] = Bound.AT_LEAST

    @property
    def required(self) -> float:
        """The least number of rows of the population."""
        return self.k

    def achieved(self, presence: Presence) -> NDArray[np.float64]:
        """Return how many rows of the population a row of each class may be."""
        free = np.maximum(presence.covered - presence.taken, presence.alone)
        left = np.maximum(free, presence.rows)
        achieved: NDArray[np.float64] = np.minimum(presence.covered, left).astype(float)
        return achieved

    def failing(self, presence: Presence) -> NDArray[np.bool_]:
        """Return which classes do not meet it."""
        bad: NDArray[np.bool_] = ~self.bound.holds(self.achieved(presence), self.k)
        return bad


@dataclass(frozen=True, slots=True)
class DeltaPresence:
    """Of the population in every class a share from dmin to dmax is published, and none outside.

    The paper recodes the population as the table was, which says what it means only where no row
    of the population is in two classes: a class that shares one does not meet the model. Shares by
    class would not do for it: of m classes of one row each, each with E rows of the population and
    one that all share, that one is there with probability m / (m + E), not 1 / (E + 1). What is in
    no class has a share of 0.
    """

    dmin: float
    dmax: float
    bound: ClassVar[Bound] = Bound.AT_MOST

    @property
    def required(self) -> float:
        """The greatest share."""
        return self.dmax

    def achieved(self, presence: Presence) -> NDArray[np.float64]:
        """Return the share of each class, infinite where it shares rows with another."""
        share = np.full(len(presence.rows), np.inf)
        apart = (presence.covered > 0) & (presence.alone == presence.covered)
        share[apart] = presence.rows[apart] / presence.covered[apart]
        return share

    def failing(self, presence: Presence) -> NDArray[np.bool_]:
        """Return which classes do not meet it, all of them when too little is covered."""
        share = self.achieved(presence)
        within = self.bound.holds(share, self.dmax) & Bound.AT_LEAST.holds(share, self.dmin)
        return ~within | (self.dmin > 0 and presence.uncovered > 0)
