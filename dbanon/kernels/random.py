"""Random numbers with explicit state."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dbanon.kernels.compilation import maker, step

if TYPE_CHECKING:
    from dbanon.kernels.layout import Int64s, UInt64s


@maker
def make_dice(seed: int, number: int) -> UInt64s:
    """Return the state of a generator for a seed and number, (1,) uint64."""
    dice = np.empty(1, np.uint64)
    dice[0] = np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(number)
    for _ in range(2):
        _next(dice)
    return dice


@step
def _next(dice: UInt64s) -> np.uint64:
    """Return 64 random bits (Steele, Lea, Flood, OOPSLA 2014: SplitMix64)."""
    dice[0] += np.uint64(0x9E3779B97F4A7C15)
    z = dice[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@step
def roll(dice: UInt64s, n: int) -> int:
    """Return a random integer in 0..n-1, n >= 1."""
    return int(np.int64((_next(dice) >> np.uint64(33)) % np.uint64(n)))


@step
def uniform(dice: UInt64s) -> float:
    """Return a random number in [0, 1)."""
    return np.float64(_next(dice) >> np.uint64(11)) / 9007199254740992.0


@step
def shuffle(dice: UInt64s, items: Int64s, n: int) -> None:
    """Shuffle the first ``n`` items."""
    for i in range(n - 1, 0, -1):
        j = roll(dice, i + 1)
        items[i], items[j] = items[j], items[i]
