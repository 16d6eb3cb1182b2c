"""Similarities and divergences of vectors. None is a metric.

What relies on the triangle inequality, such as the bounds of clustering with centers, must not be
given any of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray


def pearson(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """Return the correlation coefficient in [-1, 1], 0 when a vector is constant; no metric."""
    return cosine(x - x.mean(), y - y.mean())


def cosine(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """Return the cosine of the angle of two vectors, 0 when one has no length; no metric."""
    lengths = float(np.linalg.norm(x) * np.linalg.norm(y))
    return float(np.clip(x @ y / lengths, -1.0, 1.0)) if lengths > 0.0 else 0.0


def kullback_leibler(p: NDArray[np.float64], q: NDArray[np.float64]) -> float:
    """Return the divergence sum p ln(p / q) of two distributions in nats; no metric.

    Infinite when q has no mass where p has some; not symmetric.
    """
    there = p > 0.0
    if (q[there] <= 0.0).any():
        return float("inf")
    return float((p[there] * np.log(p[there] / q[there])).sum())


def bregman(
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    *,
    potential: Callable[[NDArray[np.float64]], float],
    gradient: Callable[[NDArray[np.float64]], NDArray[np.float64]],
) -> float:
    """Return how far a convex potential lies at x above its tangent at y; no metric.

    The squared length as the potential gives the squared Euclidean distance, the negative entropy
    the Kullback-Leibler divergence of distributions.
    """
    return float(potential(x) - potential(y) - gradient(y) @ (x - y))
