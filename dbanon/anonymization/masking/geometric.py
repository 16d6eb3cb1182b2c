"""Two-sided geometric noise for counts, drawn exactly with integers.

The last bits of floating-point Laplace noise disclose the original number (Mironov, CCS 2012).
"""

from __future__ import annotations

import secrets
from math import exp
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fractions import Fraction


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
