"""Mask numbers by noise, by rounding, and by coding the tails.

Additive noise (Kim, ASA Survey Research Methods 1986; Sullivan, 1989; Brand, 2002), and top and
bottom coding (Hundepool et al., Statistical Disclosure Control, 2012, section 3.3).
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from math import exp
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from dbanon.anonymization.interfaces import Bounds, NumberMasking, Rows
from dbanon.anonymization.recodings.central import mean_of

if TYPE_CHECKING:
    from fractions import Fraction

    from dbanon.kernels.layout import Floats, Int64s


_SHARE = Bounds("share of noise", above=0)
_EXPLAINED = 1e-9  # of the deviation of a column, below which other columns explain all of it


@dataclass(frozen=True, slots=True)
class Noise(NumberMasking):
    """Add normal noise to each column, with ``share`` of its variance.

    Means and covariances stay in expectation; variances are multiplied by 1 + share, correlations
    by 1 / (1 + share). The deviation is rounded to two digits and is part of the random seed, so
    that noise is either the same or independent, never the old one on another scale.
    """

    share: float = field(metadata=_SHARE.field())

    solvable: ClassVar[bool] = False

    def mask(self, values: Floats, rows: Rows) -> Floats:
        """Return the numbers with noise."""
        deviation = _two_digits(self.share**0.5 * float(values.std()))
        return np.asarray(values + deviation * _normal(rows.draw(1, repr(deviation))))


@dataclass(frozen=True, slots=True)
class CorrelatedNoise(NumberMasking):
    """Add normal noise to columns together, with ``share`` of their covariances.

    Means and correlations stay in expectation; covariances are multiplied by 1 + share. As in
    ``Noise``, noise is the same or independent: two published values with one draw on two known
    scales would disclose the masked value.
    """

    share: float = field(metadata=_SHARE.field())

    joint: ClassVar[bool] = True
    solvable: ClassVar[bool] = False

    def mask(self, values: Floats, rows: Rows) -> Floats:
        """Return the numbers with noise; O(n p^2)."""
        return values + _correlated(values, self.share, rows)


@dataclass(frozen=True, slots=True)
class Kim(NumberMasking):
    """Add correlated noise and shrink all values to their mean, so that covariances also stay.

    Means and covariances stay in expectation; with ``exact`` they are those of the rows.
    """

    share: float = field(metadata=_SHARE.field())
    exact: bool = False

    joint: ClassVar[bool] = True

    def mask(self, values: Floats, rows: Rows) -> Floats:
        """Return the numbers with noise; O(n p^2)."""
        mean, spread = _scale(values)
        scores = (values - mean) / spread
        noisy = scores + _correlated(values, self.share, rows) / spread
        if self.exact:
            whitened = (noisy - noisy.mean(axis=0)) @ _power(_covariance(noisy), -0.5)
            drawn = whitened @ _power(_covariance(scores), 0.5)
        else:
            drawn = noisy / np.sqrt(1.0 + self.share)
        return np.asarray(mean + drawn * spread)


@dataclass(frozen=True, slots=True)
class Sullivan(NumberMasking):
    """Add correlated noise to normal scores of the ranks, and return the values of the new ranks.

    Each column keeps its multiset of values; for columns that are not normal, and for discrete
    ones.
    """

    share: float = field(metadata=_SHARE.field())

    joint: ClassVar[bool] = True

    def mask(self, values: Floats, rows: Rows) -> Floats:
        """Return each column in another order; O(n p (p + log n))."""
        n, p = values.shape
        spread = rows.draw(p, "order of equal values")
        scores = np.empty((n, p))
        for j in range(p):
            order = np.lexsort((spread[:, j], values[:, j]))
            scores[order, j] = _normal((np.arange(n) + 0.5) / n)
        noisy = scores + _correlated(scores, self.share, rows)
        masked = np.empty((n, p))
        for j in range(p):
            masked[np.argsort(noisy[:, j], kind="stable"), j] = np.sort(values[:, j])
        return masked


def _normal(uniform: Floats) -> Floats:
    """Return the standard normal quantiles of these probabilities."""
    from scipy.special import ndtri

    return np.asarray(ndtri(uniform))


def _scale(values: Floats) -> tuple[Floats, Floats]:
    """Return the mean and the deviation of each column, 1 if nothing varies."""
    spread = values.std(axis=0)
    return values.mean(axis=0), np.where(spread > 0.0, spread, 1.0)


def _correlated(values: Floats, share: float, rows: Rows) -> Floats:
    """Return normal noise whose covariances are a share of those of the values, (n, p).

    Regression on the columns before, plus noise of the residual. Weights are rounded little, so
    nearly equal columns keep nearly equal noise. Noise is drawn by person and value in the column
    only, so that it stays when other columns change.
    """
    p = values.shape[1]
    scores = (values - values.mean(axis=0)) / _scale(values)[1]
    deviation, weights, parts = np.zeros(p), np.eye(p), np.zeros(values.shape)
    for j, spread in enumerate(_scale(values)[1]):
        before = np.linalg.lstsq(scores[:, :j], scores[:, j], rcond=None)[0]
        rest = (scores[:, j] - scores[:, :j] @ before).std()
        before *= spread / _scale(values)[1][:j]
        weights[j, :j] = before @ weights[:j, :j]
        if rest > _EXPLAINED:
            deviation[j] = _two_digits(share**0.5 * spread * rest)
            varies = deviation[:j] > 0.0
            ratio = deviation[j] / np.where(varies, deviation[:j], 1.0)
            unit = np.asarray(10.0 ** np.floor(np.log10(ratio))) / 10
            weights[j, :j] = np.where(varies, np.rint(weights[j, :j] / unit) * unit, 0.0)
            salt = repr([*weights[j, :j].tolist(), deviation[j]])
            parts[:, j] = deviation[j] * _normal(rows.draw(1, salt, j)[:, 0])
    return np.asarray(parts @ weights.T)


def _two_digits(number: float) -> float:
    return float(f"{number:.1e}")


def _covariance(values: Floats) -> Floats:
    return np.atleast_2d(np.cov(values, rowvar=False, ddof=0))


def _power(covariance: Floats, exponent: float) -> Floats:
    """Return a power of a covariance matrix, 0 in the directions without variance."""
    spread, directions = np.linalg.eigh(covariance)
    varies = spread > 1e-12 * max(spread.max(), 0.0)
    powers = np.where(varies, np.where(varies, spread, 1.0) ** exponent, 0.0)
    return np.asarray((directions * powers) @ directions.T)


@dataclass(frozen=True, slots=True)
class Rounding(NumberMasking):
    """Round to the nearest multiple of ``base``, ties to the even one (days for dates)."""

    base: float = field(metadata=Bounds("base of rounding", above=0).field())

    whole: ClassVar[bool] = False
    solvable: ClassVar[bool] = False

    @property
    def least(self) -> int:
        """Least number of persons whose values hide each other."""
        return 1

    def mask(self, values: Floats, rows: Rows) -> Floats:  # noqa: ARG002 - of the interface
        """Return multiples of the base."""
        return np.asarray(np.rint(values / self.base) * self.base)


@dataclass(frozen=True, slots=True)
class Discretization(NumberMasking):
    """Cut the range into bins [a, b), the last closed, and replace values by bin centers.

    ``by``: "width" for equal widths, "quantile" for about equally many rows.
    """

    bins: int = field(metadata=Bounds("bins of discretization", least=1).field())
    by: Literal["quantile", "width"] = "quantile"

    def mask(self, values: Floats, rows: Rows) -> Floats:  # noqa: ARG002 - of the interface
        """Return the middles of the bins; O(n log n)."""
        steps = np.linspace(0.0, 1.0, self.bins + 1)
        if self.by == "width":
            least, greatest = values.min(), values.max()
            edges = least + steps * (greatest - least)
        else:
            edges = np.unique(np.quantile(values, steps))
        if len(edges) == 1:
            return values.copy()
        place = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)
        return np.asarray((edges[place] + edges[place + 1]) / 2)


@dataclass(frozen=True, slots=True)
class TopCoding(NumberMasking):
    """Replace the greatest numbers by the least of them, or by their mean.

    The tail starts at ``at``, or lower so that it has ``persons`` persons, if there are as many.
    """

    persons: int = field(metadata=Bounds("persons of a tail", least=1).field())
    at: float | None = None
    shown: Literal["threshold", "mean"] = "threshold"

    of_ranks: ClassVar[bool] = True

    @property
    def least(self) -> int:
        """Least number of persons whose values hide each other."""
        return self.persons

    def mask(self, values: Floats, rows: Rows) -> Floats:
        """Return the numbers with one for the tail; O(n log n)."""
        column = values[:, 0]
        start = _start(column, rows.person, self.persons)
        start = start if self.at is None else min(start, self.at)
        tail = column >= start
        coded = mean_of(column[tail].tolist()) if self.shown == "mean" else start
        return np.where(tail, coded, column)[:, None]


@dataclass(frozen=True, slots=True)
class BottomCoding(TopCoding):
    """Replace the least numbers by the greatest of them, or by their mean; see ``TopCoding``."""

    def mask(self, values: Floats, rows: Rows) -> Floats:
        """Return the numbers with one for the tail; O(n log n)."""
        mirrored = None if self.at is None else -self.at
        return -TopCoding(self.persons, mirrored, self.shown).mask(-values, rows)


def _start(column: Floats, person: Int64s, persons: int) -> float:
    """Return the greatest value from which there are ``persons`` persons, otherwise the least."""
    order = np.argsort(-column, kind="stable")
    seen = np.zeros(len(column), np.bool_)
    seen[np.unique(person[order], return_index=True)[1]] = True
    enough = np.flatnonzero(np.cumsum(seen) >= persons)
    return float(column[order[enough[0]]] if len(enough) else column.min())


def probability(noise: int, *, epsilon: float) -> float:
    """Return the probability of a noise: (1 - g) / (1 + g) * g ** |noise|, with g = exp(-epsilon).

    Ghosh, Roughgarden, Sundararajan (STOC 2009), for counts that one person changes by one.
    """
    g = exp(-epsilon)
    return (1.0 - g) / (1.0 + g) * g ** abs(noise)


def within(share: float, *, epsilon: float) -> int:
    """Return the bound of the absolute noise with this probability in (0, 1)."""
    bound, reached = 0, probability(0, epsilon=epsilon)
    while reached < share:
        bound += 1
        reached += 2.0 * probability(bound, epsilon=epsilon)
    return bound


def draw(epsilon: Fraction) -> int:
    """Draw noise with that ``probability`` from the system's source of secrets; epsilon > 0.

    Canonne, Kamath, Steinke (NeurIPS 2020), algorithms 1 and 2, without rounding.
    """
    s, t = epsilon.numerator, epsilon.denominator
    while True:
        rest = secrets.randbelow(t)
        if not _happens(rest, t):
            continue
        whole = 0
        while _happens(1, 1):
            whole += 1
        size = (rest + t * whole) // s
        is_negative = secrets.randbelow(2) == 1
        if not (is_negative and size == 0):  # otherwise 0 would be drawn twice as often
            return -size if is_negative else size


def _happens(numerator: int, denominator: int) -> bool:
    """Return True with probability exp(-numerator / denominator), at most 1."""
    tries = 1
    while secrets.randbelow(denominator * tries) < numerator:
        tries += 1
    return tries % 2 == 1
