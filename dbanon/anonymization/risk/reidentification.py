"""Probability of finding the record of a person in a relation.

Attackers as in El Emam and Dankar (JAMIA 15, 2008), risks as in El Emam (Guide to the
De-Identification of Personal Health Information, 2013): one of n records, picked at random, is
right with 1/n.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import TYPE_CHECKING

import numpy as np

from dbanon.domain.report import Attacker, Reidentification, SizeBand

if TYPE_CHECKING:
    from numpy.typing import NDArray

RELATION = "the relation"
BY_WEIGHTS = "an estimate by the weights of rows"
UNKNOWN = "the relation, as nothing is known of the population: at most"

_LEAST = (1, 2, 3, 5, 10, 20, 50, 100, 500)
"""Where the bands of sizes begin."""
_AT_ONCE = 4096
_NODES, _REACH = 400, 40.0  # beyond exp(-40) nothing is left of the integral


def risks(
    sizes: NDArray[np.int64],
    *,
    threshold: float,
    heads: NDArray[np.int64] | None = None,
    population: NDArray[np.float64] | None = None,
    basis: str = UNKNOWN,
) -> tuple[Reidentification, ...]:
    """Return the risks of a relation by attacker; sizes: (g,) the records of each class.

    heads: (g,) least number of persons of each class, by default its records.

    population: (g,) probability of finding a record of each class among the matching persons of a
    population, None if unknown. The marketer has the mean of the journalist's, because he links all
    records, each to the likeliest person; without a population he has the prosecutor's.
    """
    found = 1.0 / np.maximum(sizes if heads is None else heads, 1)
    of_population = found if population is None else population
    is_bound = heads is not None and not np.array_equal(heads, sizes)
    judge = partial(_risk, threshold=threshold, is_bound=is_bound)
    return (
        judge(Attacker.PROSECUTOR, sizes, found, basis=RELATION),
        judge(Attacker.JOURNALIST, sizes, of_population, basis=basis),
        judge(Attacker.MARKETER, sizes, of_population, basis=basis),
    )


def _risk(
    attacker: Attacker,
    sizes: NDArray[np.int64],
    found: NDArray[np.float64],
    *,
    threshold: float,
    basis: str,
    is_bound: bool,
) -> Reidentification:
    n_rows = max(int(sizes.sum()), 1)
    return Reidentification(
        attacker=attacker,
        highest=float(found.max(initial=0.0)),
        average=float((found * sizes).sum() / n_rows),
        above=float(sizes[found > threshold].sum() / n_rows),
        threshold=threshold,
        basis=basis,
        is_bound=is_bound,
    )


def of_counts(persons: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the probability for each class, given its matching persons, at least its records."""
    return np.asarray(1.0 / np.maximum(np.maximum(persons, sizes), 1))


def of_sample(
    sizes: NDArray[np.int64], sampled: float | NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the probability for each class of a relation that is a sample of a population.

    The mean of 1/F, for F matching persons of the population and f drawn ones, negative binomial
    given f (Benedetti and Franconi, 1998; Polettini, 2003). With the odds q = (1 - p) / p of not
    being drawn it is the integral of exp(-f v) / (1 + q exp(-v)) over all v >= 0. sampled: p of all
    classes, or of each.
    """
    shares = np.broadcast_to(sampled, sizes.shape)
    pairs, place = np.unique(np.stack([np.maximum(sizes, 1), shares]), axis=1, return_inverse=True)
    nodes, weights = _gauss()
    means = []
    for begin in range(0, pairs.shape[1], _AT_ONCE):
        f, p = pairs[:, begin : begin + _AT_ONCE, None]
        v = _REACH / f * 0.5 * (nodes + 1.0)
        values = np.exp(-f * v) / (1.0 + (1.0 / p - 1.0) * np.exp(-v))
        means.append((0.5 * _REACH / f * weights * values).sum(axis=1))
    return np.concatenate([np.zeros(0), *means])[place.reshape(-1)]


def of_weights(represented: NDArray[np.float64], sizes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the probability for each class, given how many persons its own represent.

    As in ``of_sample``, with the share of each class (Franconi and Polettini, 2004).
    """
    sizes = np.maximum(sizes, 1)
    return of_sample(sizes, sizes / np.maximum(represented, sizes))


@lru_cache(maxsize=1)
def _gauss() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the nodes and weights of Gauss-Legendre quadrature."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    return np.asarray(nodes), np.asarray(weights)


def size_bands(sizes: NDArray[np.int64]) -> tuple[SizeBand, ...]:
    """Return the number of classes and rows by size, without empty bands."""
    most = [least - 1 for least in _LEAST[1:]]
    bands = []
    for least, end in zip(_LEAST, [*most, None], strict=True):
        inside = sizes[(sizes >= least) & (sizes <= (end or np.iinfo(np.int64).max))]
        if len(inside):
            bands.append(SizeBand(least, end, len(inside), int(inside.sum())))
    return tuple(bands)
