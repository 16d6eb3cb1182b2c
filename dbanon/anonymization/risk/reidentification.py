"""How likely the record of a person is found in a relation.

Attackers as El Emam and Dankar (JAMIA 15, 2008) tell them apart, and their risks as El Emam (Guide
to the De-Identification of Personal Health Information, 2013) counts them: who picks one of n
records at random is right with 1/n.
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

    heads: (g,) the persons of each class at least, as many as its records by default.

    population: (g,) the chance that a record of each class is found among those of a population
    that may be in it, None where nobody knows. The marketer has the mean of what the journalist
    has, as he links all records, each to the person of the population who is likeliest; without a
    population he has the prosecutor's.
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
    """Return the chance of each class, given how many of a population may be in it.

    At least the records of the class are in it, also where the population lacks some of these.
    """
    return np.asarray(1.0 / np.maximum(np.maximum(persons, sizes), 1))


def of_sample(
    sizes: NDArray[np.int64], sampled: float | NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the chance of each class of a relation that is a share ``sampled`` of a population.

    The mean of 1/F, where F of the population may be in a class of which f were drawn, negative
    binomial given f (Benedetti and Franconi, 1998; Polettini, 2003). With the odds q = (1 - p) / p
    of not being drawn it is the integral of exp(-f v) / (1 + q exp(-v)) over all v >= 0. sampled: p
    of all classes, or of each.
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
    """Return the chance of each class, given how many of a population its persons stand for.

    As ``of_sample`` has it, with the share of each class (Franconi and Polettini, 2004).
    """
    sizes = np.maximum(sizes, 1)
    return of_sample(sizes, sizes / np.maximum(represented, sizes))


@lru_cache(maxsize=1)
def _gauss() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return where Gauss and Legendre look, and how much each place counts."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    return np.asarray(nodes), np.asarray(weights)


def size_bands(sizes: NDArray[np.int64]) -> tuple[SizeBand, ...]:
    """Return how many classes and rows there are by size, of those that some class has."""
    most = [least - 1 for least in _LEAST[1:]]
    bands = []
    for least, end in zip(_LEAST, [*most, None], strict=True):
        inside = sizes[(sizes >= least) & (sizes <= (end or np.iinfo(np.int64).max))]
        if len(inside):
            bands.append(SizeBand(least, end, len(inside), int(inside.sum())))
    return tuple(bands)
