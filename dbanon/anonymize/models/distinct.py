"""Models that count distinct values in other ways."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from dbanon.anonymize.models.bounds import Bound

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.anonymize.models.tally import Tally, Whole


@dataclass(frozen=True, slots=True)
class PSensitivity:
    """Every class has at least p distinct values (Truta, Vinay 2006); k is asked for apart."""

    p: int
    bound: ClassVar[Bound] = Bound.AT_LEAST

    @property
    def required(self) -> float:
        """The least number of values."""
        return self.p

    def achieved(self, tally: Tally, whole: Whole) -> NDArray[np.float64]:  # noqa: ARG002 - counts
        """Return the number of distinct values of each class."""
        return tally.distinct().astype(float)


@dataclass(frozen=True, slots=True)
class KEAnonymity:
    """Every class has k distinct numbers with a range of at least e (Zhang et al., ICDE 2007).

    NULL is no number.
    """

    k: int
    e: float
    bound: ClassVar[Bound] = Bound.AT_LEAST

    @property
    def required(self) -> float:
        """The least range."""
        return self.e

    def achieved(self, tally: Tally, whole: Whole) -> NDArray[np.float64]:
        """Return the range of the numbers of each class, -1 where there are fewer than k."""
        numbers = whole.domain.numbers[tally.values]
        there = ~np.isnan(numbers)
        least = tally.least(np.where(there, numbers, np.inf))
        most = tally.most(np.where(there, numbers, -np.inf))
        enough = tally.total(there.astype(float)) >= self.k
        return np.where(enough, most - np.where(enough, least, 0.0), -1.0)


@dataclass(frozen=True, slots=True)
class MUniqueness:
    """Every class has at least m rows, all of different values (Xiao, Tao, SIGMOD 2007)."""

    m: int
    bound: ClassVar[Bound] = Bound.AT_LEAST

    @property
    def required(self) -> float:
        """The least number of rows."""
        return self.m

    def achieved(self, tally: Tally, whole: Whole) -> NDArray[np.float64]:  # noqa: ARG002 - counts
        """Return the number of rows of each class, 0 where a value repeats."""
        unique = tally.most(tally.counts.astype(float)) <= 1
        return np.where(unique, tally.size, 0).astype(float)
