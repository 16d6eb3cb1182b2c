"""beta-likeness (Cao, Karras, VLDB 2012)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dbanon.models.base import FACTOR, Bound, ClassModel, Parameter, Rule

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dbanon.models.tally import Tally, Whole

BASIC, ENHANCED = "basic", "enhanced"
_KIND = Parameter(str, among=(BASIC, ENHANCED), default=BASIC)


@dataclass(frozen=True, slots=True)
class BetaLikeness(ClassModel):
    """The relative gain of a value's share in a class over that in the relation is at most beta.

    ``enhanced`` bounds the relative gain of a value of share q by min(beta, -ln q); the achievement
    is scaled to beta by that bound.
    """

    beta: float = field(metadata=FACTOR.field())
    kind: str = field(metadata=_KIND.field())

    title = "{kind} {beta}-likeness"
    limit = "beta"
    bound = Bound.AT_MOST
    is_short = True
    of_whole = True

    def achieved(self, tally: Tally, whole: Whole) -> NDArray[np.float64]:
        """Return the largest gain (p - q) / q of a value in each class, 0 if there is none."""
        import numpy as np

        share = whole.share[tally.values]
        gain = np.maximum(tally.shares() - share, 0.0) / share
        if self.kind == ENHANCED:
            most = np.minimum(self.beta, -np.log(share))
            gain = np.where(gain > 0, gain * self.beta / np.where(gain > 0, most, 1.0), 0.0)
        return tally.most(gain)

    def search_rule(self, whole: Whole) -> Rule:
        """Return the largest share that each value may have in a class."""
        import numpy as np

        from dbanon.models.closeness.distances import between

        gain = np.full(len(whole.share), self.beta)
        if self.kind == ENHANCED:
            gain = np.minimum(gain, -np.log(np.maximum(whole.share, 1e-300)))
        most = whole.share * (1 + gain) + 1e-12
        return between(whole, np.zeros(len(whole.share)), most)
