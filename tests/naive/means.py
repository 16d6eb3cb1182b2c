"""Means by their definition alone, in exact fractions."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction


def exact(value):
    """Return a number as the fraction that its shortest text is."""
    return Fraction(Decimal(repr(value)))


def mean(values):
    """Return the sum of some numbers over how many they are."""
    numbers = [exact(value) for value in values]
    return sum(numbers, Fraction(0)) / len(numbers)


def is_rounded(published, value, *, unit, error=Fraction(0)):
    """Whether a published number is the nearest multiple of a unit to a value, or next to it.

    error: how far the value may be from the true one.
    """
    found = Fraction(Decimal(published))
    return found % unit == 0 and abs(found - value) <= unit / 2 + error


def is_within(published, values, *, unit):
    """Whether a published number is no further outside of some numbers than rounding takes it."""
    numbers, found = [exact(value) for value in values], Fraction(Decimal(published))
    return min(numbers) - unit / 2 <= found <= max(numbers) + unit / 2


def stretched(groups):
    """Return the means of groups at such distances from that of all that the variance stays."""
    everything = [exact(value) for group in groups for value in group]
    middle = sum(everything, Fraction(0)) / len(everything)
    means = [mean(group) for group in groups]
    total = sum((value - middle) ** 2 for value in everything)
    between = sum(len(g) * (m - middle) ** 2 for g, m in zip(groups, means, strict=True))
    if between == 0:
        return means
    ratio = Fraction(Decimal(total.numerator * between.denominator)) / (
        total.denominator * between.numerator
    )
    return [middle + (m - middle) * _root(ratio) for m in means]


def _root(square):
    """Return the square root of a fraction to 200 digits."""
    from math import isqrt

    scale = 10**200
    return Fraction(isqrt(square.numerator * scale**2 // square.denominator), scale)
