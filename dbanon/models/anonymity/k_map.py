"""k-map (Sweeney)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dbanon.models.anonymity.presence import PopulationModel, Presence
from dbanon.models.base import COUNT, Bound

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class KMap(PopulationModel):
    """Every published row may represent at least k rows of the population.

    Of the population rows in the region of a class, other classes take at most as many as they have
    rows, and at most the shared ones; the class keeps at least its own number of rows.
    """

    k: int = field(metadata=COUNT.field())

    title = "{k}-map"
    limit = "k"
    bound = Bound.AT_LEAST

    def achieved(self, presence: Presence) -> NDArray[np.float64]:
        """Return how many rows of the population a row of each class may represent."""
        import numpy as np

        free = np.maximum(presence.covered - presence.taken, presence.alone)
        left = np.maximum(free, presence.rows)
        achieved: NDArray[np.float64] = np.minimum(presence.covered, left).astype(float)
        return achieved
