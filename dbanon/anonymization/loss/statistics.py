"""IL1 to IL5: what becomes of the statistics of numbers (relative forms, sample variances)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


_ROUNDING = 4.0 * np.finfo(np.float64).eps


class StatisticalLoss(NamedTuple):
    """Means of relative differences, None where every denominator is 0.

    il1: over the cells, cells of 0 left out; il2: of the means of the columns; il3: of their
    variances; il4: of the covariances of pairs of columns; il5: of their correlations.
    """

    il1: float | None
    il2: float | None
    il3: float | None
    il4: float | None
    il5: float | None

    @property
    def overall(self) -> float | None:
        """100 times the mean of the five; None when one of them is."""
        known = [measure for measure in self if measure is not None]
        return 20.0 * sum(known) if len(known) == len(self) else None


def statistical_loss(original: NDArray[np.float64], masked: NDArray[np.float64]) -> StatisticalLoss:
    """Compare two matrices, (n, p) without NaN, n >= 2; O(n p^2).

    Terms with a denominator of 0 are left out, as in a pair with a constant column, and a mean that
    no float64 holds is None.
    """
    of_cells = _relative(original, masked)
    original, masked = _scaled(original, masked)
    before, after = _covariances(original), _covariances(masked)
    pairs = np.triu_indices(len(before), 1)
    return StatisticalLoss(
        of_cells,
        _relative(_means(original), _means(masked)),
        _relative(before.diagonal(), after.diagonal()),
        _relative(before[pairs], after[pairs]),
        _relative(_correlations(before)[pairs], _correlations(after)[pairs]),
    )


def scaled_difference(original: NDArray[np.float64], masked: NDArray[np.float64]) -> float | None:
    """Return IL1s: cells differ by a share of sqrt(2) sample deviations of their column."""
    original, masked = _scaled(original, masked)
    spread = (2.0 * _covariances(original).diagonal()) ** 0.5
    varies = spread > 0.0
    if not varies.any():
        return None
    return float((np.abs(original - masked)[:, varies] / spread[varies]).mean())


def _scaled(
    original: NDArray[np.float64], masked: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Divide each column by a power of two, below 1: relative forms stay, and no sum overflows."""
    _, exponent = np.frexp(np.maximum(np.abs(original).max(axis=0), np.abs(masked).max(axis=0)))
    return np.ldexp(original, -exponent), np.ldexp(masked, -exponent)


def _means(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return means, 0 where they are no more than what rounding the numbers makes of 0."""
    found = numbers.mean(axis=0)
    return np.where(np.abs(found) <= _rounded(numbers), 0.0, found)


def _rounded(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what rounding may make of the mean of each column."""
    greatest: NDArray[np.float64] = np.abs(numbers).max(axis=0)
    return greatest * _ROUNDING


def _covariances(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return covariances, 0 where they are so in the same way."""
    found: NDArray[np.float64] = np.atleast_2d(np.cov(numbers, rowvar=False))
    noise = np.outer(_rounded(numbers), np.sqrt(found.diagonal()))
    return np.where(np.abs(found) <= noise + noise.T, 0.0, found)


def _correlations(covariances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return correlations, 0 with a constant column."""
    spread = np.sqrt(covariances.diagonal())
    spreads = np.outer(spread, spread)
    correlations: NDArray[np.float64] = np.divide(
        covariances, spreads, out=np.zeros_like(spreads), where=spreads > 0.0
    )
    return correlations


def _relative(before: NDArray[np.float64], after: NDArray[np.float64]) -> float | None:
    some = before != 0.0
    if not some.any():
        return None
    with np.errstate(over="ignore"):  # of no difference, but of a quotient
        mean = float(np.abs(1.0 - after[some] / before[some]).mean())
    return mean if np.isfinite(mean) else None
