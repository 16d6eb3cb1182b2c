"""Means of groups, each computed from the values of its own group only."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from dbanon.kernels.arrays import Floats

_HALF = 2**62  # of what int64 holds
_SCALE = 64  # binary digits: a sum of less than 2**63 numbers scaled by it does not overflow


def _sorted(
    values: NDArray[Any], group: NDArray[Any], *, n_groups: int
) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[np.int64]]:
    """Return the values by group, the start of each group, and its number of values."""
    count = np.bincount(group, minlength=n_groups)
    return values[np.argsort(group, kind="stable")], np.cumsum(count) - count, count


def mean_of(numbers: Sequence[float]) -> float:
    """Return the correctly rounded mean of finite numbers, within their range; at least one."""
    return min(max(_mean(numbers), min(numbers)), max(numbers))


def _mean(numbers: Sequence[float]) -> float:
    try:
        return math.fsum(numbers) / len(numbers)
    except OverflowError:
        scaled = [math.ldexp(number, -_SCALE) for number in numbers]
        return math.ldexp(math.fsum(scaled) / len(numbers), _SCALE)


def group_means(values: Floats, group: NDArray[Any], *, n_groups: int) -> Floats:
    """Return the mean of each group, (n_groups,), as ``mean_of``; no group is empty."""
    if not n_groups:
        return np.empty(0)
    ordered, starts, count = _sorted(values, group, n_groups=n_groups)
    least, greatest = (f.reduceat(ordered, starts) for f in (np.minimum, np.maximum))
    numbers, ends = ordered.tolist(), (starts + count).tolist()
    means = [_mean(numbers[a:b]) for a, b in zip(starts.tolist(), ends, strict=True)]
    return np.asarray(np.clip(means, least, greatest), np.float64)


def group_medians(values: Floats, group: NDArray[Any], *, n_groups: int) -> Floats:
    """Return the lower median of each group, (n_groups,); no group is empty."""
    count = np.bincount(group, minlength=n_groups)
    middle = np.cumsum(count) - count + (count - 1) // 2
    return np.asarray(values[np.lexsort((values, group))[middle]])


def group_totals(
    values: NDArray[np.int64], group: NDArray[Any], *, n_groups: int, times: int = 1
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return ``times`` the exact sum of each group, and its number of values, both (n_groups,)."""
    if not n_groups:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    ordered, starts, count = _sorted(values, group, n_groups=n_groups)
    greatest = max(-int(values.min()), int(values.max()))
    exact = ordered if greatest * int(count.max()) * times < _HALF else ordered.astype(object)
    return np.add.reduceat(exact, starts) * times, count


def shifts(within: Floats, between: Floats, count: NDArray[np.int64]) -> Floats:
    """Return how far to move group means to regain the variance of the values, (g,).

    within: (n,) values minus their group mean; between: (g,) group means minus the mean of all;
    count: (g,) group sizes. Domingo-Ferrer et al. (DMKD 2005) stretch by sqrt(total / between);
    subtracting one here avoids cancellation. 0 if all group means are equal.
    """
    explained = float((count * between**2).sum())
    if explained == 0.0:
        return np.zeros(len(between))
    rest = float((within**2).sum()) / explained
    return np.asarray(between * (rest / (1.0 + math.sqrt(1.0 + rest))))


def stretched(means: Floats, values: Floats, group: NDArray[Any]) -> Floats:
    """Return group means, moved apart to the variance of the values, (g,)."""
    exponent = int(np.frexp(np.abs(values).max(initial=0.0))[1])
    # a power of two changes no digit and keeps squares finite
    scaled, scaled_means = np.ldexp(values, -exponent), np.ldexp(means, -exponent)
    middle = mean_of(scaled.tolist())
    count = np.bincount(group, minlength=len(means))
    moved = shifts(scaled - scaled_means[group], scaled_means - middle, count)
    greatest = np.finfo(np.float64).max
    with np.errstate(over="ignore"):
        return np.clip(means + np.ldexp(moved, exponent), -greatest, greatest)
