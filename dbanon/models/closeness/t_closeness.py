"""t-closeness (Li, Li, Venkatasubramanian, ICDE 2007)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dbanon.models.base import CLOSENESS, DISTANCE, Bound, ClassModel, Rule

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dbanon.models.tally import Tally, Whole


@dataclass(frozen=True, slots=True)
class TCloseness(ClassModel):
    """The values of every class are distributed within t of the whole relation.

    distance of values: always 1 (``equal``), the difference of ranks (``ordered``), or the height
    of the common ancestor (``hierarchical``).
    """

    t: float = field(metadata=CLOSENESS.field())
    distance: str = field(metadata=DISTANCE.field())

    title = "{t}-closeness ({distance})"
    limit = "t"
    bound = Bound.AT_MOST
    is_short = True
    of_whole = True

    def achieved(self, tally: Tally, whole: Whole) -> NDArray[np.float64]:
        """Return the distance of each class from the whole relation."""
        from dbanon.models.closeness.distances import distance_from

        return distance_from(tally, whole, whole.share, distance=self.distance)

    def search_rule(self, whole: Whole) -> Rule:
        """Return the rule that limits the distance of each group from the whole relation."""
        from dbanon.models.closeness.distances import closeness_rule

        return closeness_rule(self.t, whole, distance=self.distance)
