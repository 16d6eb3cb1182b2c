"""Recursive (c, l)-diversity (Machanavajjhala et al., ICDE 2006, TKDD 2007)."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dbanon.kernels.layout import RECURSIVE
from dbanon.models.base import (
    COUNT,
    FACTOR,
    MARGIN,
    Bound,
    Case,
    ClassModel,
    Reason,
    Rule,
    rounded_up,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dbanon.models.tally import Tally, Whole


@dataclass(frozen=True, slots=True)
class RecursiveLDiversity(ClassModel):
    """The most frequent value occurs less than c times as often as the l-th and all after it."""

    c: float = field(metadata=FACTOR.field())
    l: int = field(metadata=COUNT.field())

    title = "recursive ({c}, {l})-diversity"
    limit = "c"
    bound = Bound.BELOW

    def achieved(self, tally: Tally, whole: Whole) -> NDArray[np.float64]:  # noqa: ARG002 - counts
        """Return the least c that a class would fail; infinite with fewer than l values."""
        import numpy as np

        if self.l == 1:
            return np.zeros(tally.n_classes)
        counts = tally.counts.astype(float)
        tail = tally.total(np.where(tally.ranks() >= self.l, counts, 0.0))
        return ratio(tally.most(counts), tail)

    def search_rule(self, whole: Whole) -> Rule | None:  # noqa: ARG002 - counts
        """Return c and l, None for l = 1."""
        if self.l == 1:
            return None
        return RECURSIVE, [self.required - MARGIN, float(self.l)]

    def explain(self, case: Case) -> Reason:
        """Return the possible c."""
        return least_c(self, case, self.l)


def ratio(top: NDArray[np.float64], tail: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return top over tail, infinite without a tail."""
    import numpy as np

    return np.where(tail > 0, top / np.maximum(tail, 1), np.inf)


def least_c(model: ClassModel, case: Case, l: int) -> Reason:
    """Return the least c, or the number of values if it is too small for any c."""
    level = float(model.achieved(case.one, case.whole)[0])
    if math.isfinite(level):
        return case.shared, f"l = {l} with c > {rounded_up(level)}"
    for less in range(min(l, case.distinct), 1, -1):
        weaker = dataclasses.replace(model, l=less)  # type: ignore[call-arg] # all such have one
        level = float(weaker.achieved(case.one, case.whole)[0])
        if math.isfinite(level):
            return case.several, f"l = {less} with c > {rounded_up(level)}"
    return case.several, ""
