"""Negative/positive disclosure-recursive diversity (Machanavajjhala et al., TKDD 2007)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dbanon.models.base import (
    COUNT,
    FACTOR,
    SHARE,
    TEXTS,
    TOLERANCE,
    Bound,
    Case,
    ClassModel,
    Reads,
    Reason,
    rounded_down,
)
from dbanon.models.diversity.pd_recursive_l_diversity import PdRecursiveLDiversity

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dbanon.models.tally import Tally, Whole

_PRINTED = 0.01  # the least share that two places can show


@dataclass(frozen=True, slots=True)
class NpdRecursiveLDiversity(ClassModel):
    """Positive-disclosure recursive, and each ``negative`` value has at least a given ``share``."""

    c: float = field(metadata=FACTOR.field())
    l: int = field(metadata=COUNT.field())
    positive: tuple[str, ...] = field(metadata=TEXTS.field())
    share: float = field(metadata=SHARE.field())
    negative: tuple[str, ...] = field(metadata=TEXTS.field())

    title = "negative/positive disclosure-recursive ({c}, {share}, {l})-diversity"
    limit = "c"
    bound = Bound.BELOW
    reads = Reads.LABELS

    @property
    def _positive_only(self) -> PdRecursiveLDiversity:
        return PdRecursiveLDiversity(self.c, self.l, self.positive)

    def achieved(self, tally: Tally, whole: Whole) -> NDArray[np.float64]:
        """Return the least c that a class would fail; infinite if a share is too small."""
        import numpy as np

        found = self._positive_only.achieved(tally, whole)
        for label in self.negative:
            held = Bound.AT_LEAST.holds(_share_of(label, tally, whole), self.share)
            found = np.where(held, found, np.inf)
        return found

    def explain(self, case: Case) -> Reason:
        """Return the negative value's share if it is too small, otherwise the possible c."""
        least = min(float(_share_of(v, case.one, case.whole)[0]) for v in self.negative)
        if least >= self.share - TOLERANCE:
            return self._positive_only.explain(case)
        fact = f"{100 * least:.2g} % of the rows hold one of the negative values of {case.name}"
        return fact, f"share <= {rounded_down(least)}" if least >= _PRINTED else ""


def _share_of(label: str, tally: Tally, whole: Whole) -> NDArray[np.float64]:
    import numpy as np

    there = np.isin(tally.values, whole.domain.codes_of((label,)))
    return tally.total(np.where(there, tally.shares(), 0.0))
