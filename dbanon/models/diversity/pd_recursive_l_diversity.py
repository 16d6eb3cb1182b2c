"""Positive disclosure-recursive diversity (Machanavajjhala et al., TKDD 2007)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dbanon.models.base import COUNT, FACTOR, TEXTS, Bound, Case, ClassModel, Reads, Reason
from dbanon.models.diversity.recursive_l_diversity import least_c, ratio

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dbanon.models.tally import Tally, Whole


@dataclass(frozen=True, slots=True)
class PdRecursiveLDiversity(ClassModel):
    """Recursive diversity of all values but the ``positive`` ones, which may be disclosed.

    With y the rank of the most frequent other value, r_y is below c times the sum of the counts
    from rank l, or if y >= l from rank l - 1 without r_y.
    """

    c: float = field(metadata=FACTOR.field())
    l: int = field(metadata=COUNT.field())
    positive: tuple[str, ...] = field(metadata=TEXTS.field())

    title = "positive disclosure-recursive ({c}, {l})-diversity"
    limit = "c"
    bound = Bound.BELOW
    reads = Reads.LABELS

    def achieved(self, tally: Tally, whole: Whole) -> NDArray[np.float64]:
        """Return the least c that a class would fail; 0 if all values are positive."""
        import numpy as np

        if self.l == 1:
            return np.zeros(tally.n_classes)
        ranks, counts = tally.ranks(), tally.counts.astype(float)
        guarded = ~np.isin(tally.values, whole.domain.codes_of(self.positive))
        y = tally.least(np.where(guarded, ranks, np.inf))
        of_y = tally.total(np.where(ranks == y[tally.classes], counts, 0.0))
        early = y <= self.l - 1
        first = np.where(early, self.l, self.l - 1)
        rest = tally.total(np.where(ranks >= first[tally.classes], counts, 0.0))
        tail = rest - np.where(early, 0.0, of_y)
        return np.where(np.isinf(y), 0.0, ratio(of_y, tail))

    def explain(self, case: Case) -> Reason:
        """Return the possible c."""
        return least_c(self, case, self.l)
