"""delta-presence (Nergiz, Atzori, Clifton, SIGMOD 2007)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dbanon.models.anonymity.presence import PopulationModel
from dbanon.models.base import Bound
from dbanon.models.parameters import SHARE, Parameter

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dbanon.models.anonymity.presence import Presence

_LEAST = Parameter(float, least=0, most=1, default=0.0)


@dataclass(frozen=True, slots=True)
class DeltaPresence(PopulationModel):
    """Of the population in every class a share from dmin to dmax is published, and none outside.

    The paper recodes the population as the table was, which says what it means only where no row
    of the population is in two classes: a class that shares one does not meet the model. Shares by
    class would not do for it: of m classes of one row each, each with E rows of the population and
    one that all share, that one is there with probability m / (m + E), not 1 / (E + 1). What is in
    no class has a share of 0.
    """

    dmin: float = field(
        metadata=_LEAST.field("--dmin", help="delta-presence: minimum share published; 0")
    )
    dmax: float = field(
        metadata=SHARE.field("--dmax", help="delta-presence: maximum share published")
    )

    title = "({dmin}, {dmax})-presence"
    limit = "dmax"
    floor = "dmin"
    bound = Bound.AT_MOST
    ascending = ("dmin", "dmax")
    is_part = True

    def achieved(self, presence: Presence) -> NDArray[np.float64]:
        """Return the share of each class, infinite where it shares rows with another."""
        import numpy as np

        share = np.full(len(presence.rows), np.inf)
        apart = (presence.covered > 0) & (presence.alone == presence.covered)
        share[apart] = presence.rows[apart] / presence.covered[apart]
        return share

    def failing(self, presence: Presence) -> NDArray[np.bool_]:
        """Return which classes do not meet it, all of them when too little is covered."""
        met = self.meets(self.achieved(presence))
        return ~met | (self.dmin > 0 and presence.uncovered > 0)
