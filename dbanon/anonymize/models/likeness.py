"""Models that compare the frequency of each value with its frequency in the whole relation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from dbanon.anonymize.models.bounds import Bound
from dbanon.domain.models import ENHANCED

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.anonymize.models.tally import Tally, Whole


@dataclass(frozen=True, slots=True)
class BetaLikeness:
    """No value is relatively more frequent in a class by more than beta (Cao, Karras, VLDB 2012).

    ``enhanced`` bounds a value of share q by min(beta, -ln q); what is achieved is then scaled to
    beta by that bound.
    """

    beta: float
    kind: str
    bound: ClassVar[Bound] = Bound.AT_MOST

    @property
    def required(self) -> float:
        """The largest gain."""
        return self.beta

    def achieved(self, tally: Tally, whole: Whole) -> NDArray[np.float64]:
        """Return the largest gain (p - q) / q of a value in each class, 0 when none gains."""
        share = whole.share[tally.values]
        gain = np.maximum(tally.shares() - share, 0.0) / share
        if self.kind == ENHANCED:
            most = np.minimum(self.beta, -np.log(share))
            gain = np.where(gain > 0, gain * self.beta / np.where(gain > 0, most, 1.0), 0.0)
        return tally.most(gain)


@dataclass(frozen=True, slots=True)
class DeltaDisclosure:
    """Every value's frequency is within a factor of exp(delta) (Brickell, Shmatikov, KDD 2008)."""

    delta: float
    bound: ClassVar[Bound] = Bound.BELOW

    @property
    def required(self) -> float:
        """The logarithm that must not be reached."""
        return self.delta

    def achieved(self, tally: Tally, whole: Whole) -> NDArray[np.float64]:
        """Return the largest absolute logarithm of p / q, infinite where a value is missing."""
        logs = np.abs(np.log(tally.shares() / whole.share[tally.values]))
        complete = tally.distinct() == (whole.share > 0).sum()
        return np.where(complete, tally.most(logs), np.inf)
