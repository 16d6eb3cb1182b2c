"""delta-disclosure privacy (Brickell, Shmatikov, KDD 2008)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dbanon.models.base import FACTOR, MARGIN, Bound, ClassModel, Rule

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dbanon.models.tally import Tally, Whole


@dataclass(frozen=True, slots=True)
class DeltaDisclosure(ClassModel):
    """Every value's frequency is within a factor of exp(delta) of that in the whole relation."""

    delta: float = field(metadata=FACTOR.field())

    title = "{delta}-disclosure privacy"
    limit = "delta"
    bound = Bound.BELOW
    is_short = True
    of_whole = True

    def achieved(self, tally: Tally, whole: Whole) -> NDArray[np.float64]:
        """Return the largest absolute logarithm of p / q, infinite if a value is missing."""
        import numpy as np

        logs = np.abs(np.log(tally.shares() / whole.share[tally.values]))
        complete = tally.distinct() == (whole.share > 0).sum()
        return np.where(complete, tally.most(logs), np.inf)

    def search_rule(self, whole: Whole) -> Rule:
        """Return the largest and the least share that each value may have in a class."""
        from dbanon.models.closeness.distances import between

        factor = math.exp(self.delta - MARGIN)
        return between(whole, whole.share * math.exp(MARGIN - self.delta), whole.share * factor)
