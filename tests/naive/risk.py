"""Risks, counted one by one."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from math import comb, exp, lgamma


def minimal_uniques(rows, n_columns, *, largest):
    """Return how many rows each set of columns tells apart that no part of it does."""
    found = Counter()
    for row in rows:
        minimal = []
        for size in range(1, largest + 1):
            for places in combinations(range(n_columns), size):
                if any(set(part) <= set(places) for part in minimal):
                    continue
                same = sum(all(row[p] == other[p] for p in places) for other in rows)
                if same == 1:
                    minimal.append(places)
        found.update(minimal)
    return dict(found)


def expected_inverse(f, p, *, most=4000):
    """Return the mean of 1/F over negative binomial F of which f were drawn."""
    return sum(
        exp(lgamma(F) - lgamma(f) - lgamma(F - f + 1)) * p**f * (1 - p) ** (F - f) / F
        for F in range(f, most)
    )


def slide_shares(alpha, beta, f, *, most=3000):
    """Return the shares of classes of which a sample has one member, and two."""
    ones = twos = 0.0
    for size in range(1, most):
        share = exp(lgamma(size - 1 + alpha) - lgamma(alpha) - lgamma(size))
        share *= beta**alpha * (1 - beta) ** (size - 1)
        ones += share * size * f * (1 - f) ** (size - 1)
        twos += share * comb(size, 2) * f**2 * (1 - f) ** (size - 2)
    return ones, twos


def pitman_uniques(theta, alpha, n):
    """Return how many of n persons are expected to be unique, adding one after the other."""
    unique = 0.0
    for before in range(n):
        classes_new = (theta + alpha * _classes(theta, alpha, before)) / (theta + before)
        unique += classes_new - unique * (1 - alpha) / (theta + before)
    return unique


def _classes(theta, alpha, n):
    """Return how many classes n persons are expected to have."""
    classes = 0.0
    for before in range(n):
        classes += (theta + alpha * classes) / (theta + before)
    return classes
