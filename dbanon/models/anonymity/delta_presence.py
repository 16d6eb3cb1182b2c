"""delta-presence (Nergiz, Atzori, Clifton, SIGMOD 2007)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dbanon.models.anonymity.presence import PopulationModel, Presence
from dbanon.models.base import SHARE, Bound, Parameter

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


_LEAST = Parameter(float, least=0, most=1, default=0.0)


@dataclass(frozen=True, slots=True)
class DeltaPresence(PopulationModel):
    """In every class, a share of the population from dmin to dmax is published.

    Outside all classes the share is 0. A class that shares population rows with another fails,
    unlike in the paper, which recodes the population like the table. Shares by class would not
    suffice: of m classes with one row and E population rows each, and one population row in all of
    them, that row is published with probability m / (m + E), not 1 / (E + 1).
    """

    dmin: float = field(metadata=_LEAST.field())
    dmax: float = field(metadata=SHARE.field())

    title = "({dmin}, {dmax})-presence"
    limit = "dmax"
    floor = "dmin"
    bound = Bound.AT_MOST
    ascending = ("dmin", "dmax")
    is_part = True

    def achieved(self, presence: Presence) -> NDArray[np.float64]:
        """Return the share of each class, infinite if it shares rows with another."""
        import numpy as np

        share = np.full(len(presence.rows), np.inf)
        apart = (presence.covered > 0) & (presence.alone == presence.covered)
        share[apart] = presence.rows[apart] / presence.covered[apart]
        return share

    def failing(self, presence: Presence) -> NDArray[np.bool_]:
        """Return a mask of failing classes, all of them if too little is covered."""
        met = self.meets(self.achieved(presence))
        return ~met | (self.dmin > 0 and presence.uncovered > 0)
