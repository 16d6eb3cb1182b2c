"""k-map (Sweeney)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dbanon.models.anonymity.presence import PopulationModel
from dbanon.models.base import Bound
from dbanon.models.parameters import COUNT

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dbanon.models.anonymity.presence import Presence


@dataclass(frozen=True, slots=True)
class KMap(PopulationModel):
    """Every published row may be that of at least k rows of the population.

    Of the rows in the region of a class, no more are taken by other classes than these have rows,
    and no more than they share; the class' own rows are always left to it. Any of the others may
    change places with a row of the class, and nobody could tell.
    """

    k: int = field(metadata=COUNT.field("--k-map", help="minimum population rows per class"))

    title = "{k}-map"
    limit = "k"
    bound = Bound.AT_LEAST

    def achieved(self, presence: Presence) -> NDArray[np.float64]:
        """Return how many rows of the population a row of each class may be."""
        import numpy as np

        free = np.maximum(presence.covered - presence.taken, presence.alone)
        left = np.maximum(free, presence.rows)
        achieved: NDArray[np.float64] = np.minimum(presence.covered, left).astype(float)
        return achieved
