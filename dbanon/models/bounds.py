"""Comparing what classes achieve with what is asked."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TOLERANCE = 1e-9
MARGIN = 1e-8  # within which a search takes a bound that must not be reached for reached


class Bound(StrEnum):
    """How what a class achieves must lie to what is required."""

    AT_LEAST = "at least"
    AT_MOST = "at most"
    BELOW = "below"

    def holds(self, achieved: NDArray[np.float64], required: float) -> NDArray[np.bool_]:
        """Tell which classes meet it; numbers are compared with a tolerance, BELOW strictly."""
        if self is Bound.AT_LEAST:
            return achieved >= required - TOLERANCE
        if self is Bound.AT_MOST:
            return achieved <= required + TOLERANCE
        return achieved < required - TOLERANCE

    def gap(self, achieved: NDArray[np.float64], required: float) -> NDArray[np.float64]:
        """Return how far each class is from what is required, relatively; 0 when it is there."""
        import numpy as np

        over = required - achieved if self is Bound.AT_LEAST else achieved - required
        scale = max(abs(required), TOLERANCE)
        return np.where(self.holds(achieved, required), 0.0, np.maximum(over, TOLERANCE) / scale)
