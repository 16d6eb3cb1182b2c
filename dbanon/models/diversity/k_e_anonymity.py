"""(k, e)-anonymity (Zhang et al., ICDE 2007)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dbanon.models.base import COUNT, SPAN, Bound, Case, ClassModel, Reads, Reason

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dbanon.models.tally import Tally, Whole


@dataclass(frozen=True, slots=True)
class KEAnonymity(ClassModel):
    """Every class has k distinct numbers with a range of at least e; NULL is no number."""

    k: int = field(metadata=COUNT.field())
    e: float = field(metadata=SPAN.field())

    title = "({k}, {e})-anonymity"
    limit = "e"
    bound = Bound.AT_LEAST
    reads = Reads.NUMBERS

    @property
    def least_rows(self) -> int:
        """A row for each of the numbers, and two for any range."""
        return max(self.k, 2 if self.e > 0 else 1)

    def achieved(self, tally: Tally, whole: Whole) -> NDArray[np.float64]:
        """Return the range of the numbers of each class, -1 with fewer than k."""
        import numpy as np

        numbers = whole.domain.numbers[tally.values]
        there = ~np.isnan(numbers)
        least = tally.least(np.where(there, numbers, np.inf))
        most = tally.most(np.where(there, numbers, -np.inf))
        enough = tally.total(there.astype(float)) >= self.k
        return np.where(enough, most - np.where(enough, least, 0.0), -1.0)

    def explain(self, case: Case) -> Reason:
        """Return the number of distinct numbers, or their range."""
        numbers = case.whole.domain.numbers[case.one.values]
        distinct = int((numbers == numbers).sum())  # noqa: PLR0124 - NaN is no number
        if distinct < self.k:
            fact = f"{case.name} has {distinct:,} distinct numbers"
            return fact, f"k = {distinct} with a small enough e" if distinct else ""
        return f"the numbers of {case.name} lie less than {self.e:g} apart", "a smaller e"
