"""The variants of l-diversity (Machanavajjhala et al., ICDE 2006, TKDD 2007); NULL is a value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from dbanon.anonymize.models.bounds import Bound

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.anonymize.models.tally import Tally, Whole


@dataclass(frozen=True, slots=True)
class LDiversity:
    """Every class has at least l distinct values of the sensitive column (distinct l-diversity)."""

    l: int
    bound: ClassVar[Bound] = Bound.AT_LEAST

    @property
    def required(self) -> float:
        """The least number of values."""
        return self.l

    def achieved(self, tally: Tally, whole: Whole) -> NDArray[np.float64]:  # noqa: ARG002 - counts
        """Return the number of distinct values of each class."""
        return tally.distinct().astype(float)


@dataclass(frozen=True, slots=True)
class ProbabilisticLDiversity:
    """No value takes more than 1 / l of a class."""

    l: float
    bound: ClassVar[Bound] = Bound.AT_LEAST

    @property
    def required(self) -> float:
        """The least effective l."""
        return self.l

    def achieved(self, tally: Tally, whole: Whole) -> NDArray[np.float64]:  # noqa: ARG002 - counts
        """Return the rows of each class over those of its most frequent value."""
        return tally.size / tally.most(tally.counts.astype(float))


@dataclass(frozen=True, slots=True)
class EntropyLDiversity:
    """The entropy of the values of every class is at least ln l."""

    l: float
    bound: ClassVar[Bound] = Bound.AT_LEAST

    @property
    def required(self) -> float:
        """The least effective l."""
        return self.l

    def achieved(self, tally: Tally, whole: Whole) -> NDArray[np.float64]:  # noqa: ARG002 - counts
        """Return exp(entropy) of each class."""
        shares = tally.shares()
        effective: NDArray[np.float64] = np.exp(-tally.total(shares * np.log(shares)))
        return effective


@dataclass(frozen=True, slots=True)
class RecursiveLDiversity:
    """The most frequent value occurs less than c times as often as the l-th and all after it."""

    c: float
    l: int
    bound: ClassVar[Bound] = Bound.BELOW

    @property
    def required(self) -> float:
        """The c that must not be reached."""
        return self.c

    def achieved(self, tally: Tally, whole: Whole) -> NDArray[np.float64]:  # noqa: ARG002 - counts
        """Return the least c that a class would not meet; infinite with fewer than l values."""
        if self.l == 1:
            return np.zeros(tally.n_classes)
        counts = tally.counts.astype(float)
        tail = tally.total(np.where(_ranks(tally) >= self.l, counts, 0.0))
        return _ratio(tally.most(counts), tail)


@dataclass(frozen=True, slots=True)
class PdRecursiveLDiversity:
    """Recursive diversity of all values but the ``positive`` ones, which anyone may learn.

    With y the rank of the most frequent other value, r_y stays below c times the sum of the
    counts from rank l on, or when y >= l from rank l - 1 on without r_y itself.
    """

    c: float
    l: int
    positive: tuple[str, ...]
    bound: ClassVar[Bound] = Bound.BELOW

    @property
    def required(self) -> float:
        """The c that must not be reached."""
        return self.c

    def achieved(self, tally: Tally, whole: Whole) -> NDArray[np.float64]:
        """Return the least c that a class would not meet; 0 where all values are positive."""
        if self.l == 1:
            return np.zeros(tally.n_classes)
        ranks, counts = _ranks(tally), tally.counts.astype(float)
        guarded = ~np.isin(tally.values, whole.domain.codes_of(self.positive))
        y = tally.least(np.where(guarded, ranks, np.inf))
        of_y = tally.total(np.where(ranks == y[tally.classes], counts, 0.0))
        early = y <= self.l - 1
        first = np.where(early, self.l, self.l - 1)
        rest = tally.total(np.where(ranks >= first[tally.classes], counts, 0.0))
        tail = rest - np.where(early, 0.0, of_y)
        return np.where(np.isinf(y), 0.0, _ratio(of_y, tail))


@dataclass(frozen=True, slots=True)
class NpdRecursiveLDiversity:
    """Positive-disclosure recursive, and each ``negative`` value makes up a least share."""

    c: float
    l: int
    positive: tuple[str, ...]
    share: float
    negative: tuple[str, ...]
    bound: ClassVar[Bound] = Bound.BELOW

    @property
    def required(self) -> float:
        """The c that must not be reached."""
        return self.c

    def achieved(self, tally: Tally, whole: Whole) -> NDArray[np.float64]:
        """Return the least c that a class would not meet; infinite where a share is too small."""
        found = PdRecursiveLDiversity(self.c, self.l, self.positive).achieved(tally, whole)
        shares = tally.shares()
        for label in self.negative:
            there = np.isin(tally.values, whole.domain.codes_of((label,)))
            found_share = tally.total(np.where(there, shares, 0.0))
            found = np.where(Bound.AT_LEAST.holds(found_share, self.share), found, np.inf)
        return found


@dataclass(frozen=True, slots=True)
class AlphaKAnonymity:
    """No value takes more than alpha of a class (Wong et al., KDD 2006); k is asked for apart."""

    alpha: float
    bound: ClassVar[Bound] = Bound.AT_MOST

    @property
    def required(self) -> float:
        """The largest share."""
        return self.alpha

    def achieved(self, tally: Tally, whole: Whole) -> NDArray[np.float64]:  # noqa: ARG002 - counts
        """Return the largest share of a value in each class."""
        return tally.most(tally.shares())


def _ranks(tally: Tally) -> NDArray[np.int64]:
    """Return the place of each entry in its class by falling count, from 1 on."""
    order = np.lexsort((-tally.counts, tally.classes))
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order)) - tally.start[tally.classes[order]] + 1
    return ranks


def _ratio(top: NDArray[np.float64], tail: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(tail > 0, top / np.maximum(tail, 1), np.inf)
