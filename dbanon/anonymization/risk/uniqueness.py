"""Estimates of unique persons in a population, and sets of columns that make rows unique.

A class is a distinct tuple of quasi-identifiers. All estimators use only the number of classes of
each size in the sample, and the size of the population. Sets of columns are minimal sample uniques
(Elliot, Manning and Ford, Int. J. of Uncertainty, Fuzziness and Knowledge-Based Systems 10, 2002),
of up to three columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from dbanon.domain.report import Uniqueness, UniqueSet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray


PITMAN, ZAYATZ, SNB = "pitman", "zayatz", "slide-negative-binomial"
_SPREADS = (-6.0, -3.0, 0.0, 3.0, 6.0)
_SMALL = 1e-9
_MET = 1e-6  # of what an equation misses, as a share of the unique ones


@dataclass(frozen=True, eq=False, slots=True)
class Sizes:
    """Number of classes of a sample of each size; size: (m,) float64, ascending, count: (m,)."""

    size: NDArray[np.float64]
    count: NDArray[np.float64]

    @property
    def rows(self) -> float:
        """Number of rows of the sample."""
        return float((self.size * self.count).sum())

    @property
    def classes(self) -> float:
        """Number of classes of the sample."""
        return float(self.count.sum())

    def of(self, size: int) -> float:
        """Return the number of classes of a size."""
        return float(self.count[self.size == size].sum())


def sizes_of(members: NDArray[np.int64]) -> Sizes:
    """Return the number of classes of each size; members: (g,) the rows of each class."""
    size, count = np.unique(members[members > 0], return_counts=True)
    return Sizes(size.astype(np.float64), count.astype(np.float64))


def uniqueness(members: NDArray[np.int64], population: int) -> tuple[Uniqueness, ...]:
    """Return the estimates for a population, or the true value if all persons are sampled.

    members: as for ``sizes_of``. An estimator without an answer for such a sample is omitted.
    """
    sizes = sizes_of(members)
    if not sizes.classes or population < sizes.rows:
        return ()
    sampled = sizes.rows / population
    estimators: dict[str, Callable[[Sizes, int], float | None]] = {
        PITMAN: pitman,
        ZAYATZ: zayatz,
        SNB: slide_negative_binomial,
    }
    found = []
    for name, estimate in estimators.items():
        if sampled >= 1.0:
            share: float | None = sizes.of(1) / population
        else:
            share = estimate(sizes, population)
        if share is not None:
            found.append(Uniqueness(name, population, sampled, min(max(share, 0.0), 1.0)))
    return tuple(found)


def pitman(sizes: Sizes, population: int) -> float | None:
    """Return the share of unique persons by maximum likelihood of Pitman's sampling formula.

    Hoshino (J. Official Statistics 17, 2001), who uses a power of N asymptotically. Of N persons, N
    (theta + alpha) .. (theta + alpha + N - 2) / ((theta + 1) .. (theta + N - 1)) are expected to be
    unique.
    """
    if sizes.of(1) == sizes.rows:
        return 1.0  # the likelihood grows up to alpha = 1
    if sizes.classes == 1:
        return 0.0
    found = _likeliest(sizes)
    if found is None:
        return None
    theta, alpha = found
    from scipy.special import gammaln as log_gamma

    log = log_gamma(theta + alpha + population - 1) - log_gamma(theta + population)
    log += log_gamma(theta + 1) - log_gamma(theta + alpha)
    return float(np.exp(log))


def _likeliest(sizes: Sizes) -> tuple[float, float] | None:
    """Return the maximum-likelihood theta > -alpha and alpha in [0, 1)."""
    from scipy import optimize, special

    n, u = sizes.rows, sizes.classes
    steps = np.arange(1.0, u)

    def cost(point: NDArray[np.float64]) -> float:
        alpha = special.expit(point[1])
        theta = np.exp(point[0]) - alpha
        joined = np.log(theta + steps * alpha).sum()
        drawn = special.gammaln(theta + n) - special.gammaln(theta + 1.0)
        inside = special.gammaln(sizes.size - alpha) - special.gammaln(1.0 - alpha)
        return float(drawn - joined - (sizes.count * inside).sum()) / n

    starts = [np.array([np.log(scale), odds]) for scale in (1.0, u, n) for odds in (-2.0, 2.0)]
    start = min(starts, key=cost)
    found = optimize.minimize(
        cost,
        start,
        method="Nelder-Mead",
        options={"xatol": _SMALL, "fatol": 1e-15, "maxiter": 2000},
    )
    if not np.isfinite(found.fun):
        return None
    alpha = float(special.expit(found.x[1]))
    return float(np.exp(found.x[0])) - alpha, alpha


def zayatz(sizes: Sizes, population: int) -> float | None:
    """Return the share of unique persons if classes are as large as in the sample.

    Zayatz (Estimation of the Percent of Unique Population Elements on a Microdata File, 1991), by
    Bayes: P(unique | unique in the sample) is the share of unique classes, times their probability
    of one sampled member, over the same of all sizes.
    """
    unique, n = sizes.of(1), sizes.rows
    if not unique:
        return 0.0
    from scipy.stats import hypergeom

    one = hypergeom.pmf(1, population, sizes.size, n)
    total = (sizes.count * one).sum()
    if not total:
        return None
    conditional = unique * (n / population) / total
    return float(unique * conditional / n)


def slide_negative_binomial(sizes: Sizes, population: int) -> float | None:
    """Return the share of unique persons if class sizes are 1 + a negative binomial number.

    Chen and Keller-McNulty (J. Official Statistics 14, 1998), with Shlosser's number of classes
    (Haas and Stokes, JASA 93, 1998).
    """
    unique, sampled = sizes.of(1), sizes.rows / population
    if not unique:
        return 0.0
    classes = shlosser(sizes, sampled)
    found = slide(classes, sampled, unique=unique, pairs=sizes.of(2))
    return None if found is None else classes * found / population


def shlosser(sizes: Sizes, sampled: float) -> float:
    """Return the estimated number of classes of the population, given the sampled share."""
    i, count, q = sizes.size, sizes.count, sampled
    missed = ((1.0 - q) ** i * count).sum()
    alone = (i * q * (1.0 - q) ** (i - 1.0) * count).sum()
    squared = (i * q**2 * (1.0 - q**2) ** (i - 1.0) * count).sum()
    both = ((1.0 - q) ** i * ((1.0 + q) ** i - 1.0) * count).sum()
    return float(sizes.classes + sizes.of(1) * (squared / both) * (missed / alone) ** 2)


def slide(classes: float, sampled: float, *, unique: float, pairs: float) -> float | None:
    """Return the share of unique classes, given the sample's unique classes and pairs.

    None if no slide negative binomial has these expectations. With b = 1 - beta and w = 1 - b (1 -
    f), the generating function z (beta / (1 - b z))^alpha, thinned by f, gives f (beta / w)^alpha
    (1 + alpha b (1 - f) / w) unique ones, and f^2 / 2 (beta / w)^alpha alpha b (2 + (alpha - 1) b
    (1 - f)) / w^2 pairs.
    """
    from scipy import optimize, special

    f = sampled

    def of(point: NDArray[np.float64]) -> tuple[float, float]:
        alpha = np.exp(point[0])
        b = special.expit(-point[1])
        w = 1.0 - b * (1.0 - f)
        common = f * np.exp(alpha * (special.log_expit(point[1]) - np.log(w)))
        ones = common * (1.0 + alpha * b * (1.0 - f) / w)
        twos = 0.5 * f * common * alpha * b * (2.0 + (alpha - 1.0) * b * (1.0 - f)) / w**2
        return float(ones), float(twos)

    def missing(point: NDArray[np.float64]) -> NDArray[np.float64]:
        ones, twos = of(point)
        return np.array([(classes * ones - unique) / unique, (classes * twos - pairs) / unique])

    for spread in _SPREADS:
        found = optimize.least_squares(
            missing, np.array([0.0, spread]), bounds=([-30.0, -40.0], [30.0, 40.0]), xtol=1e-14
        )
        if np.abs(found.fun).max() < _MET:
            return float(np.exp(np.exp(found.x[0]) * special.log_expit(found.x[1])))
    return None


MOST_COLUMNS = 12
LARGEST = 3
_NEARLY = 0.95  # of the rows that all columns make unique
_DENSE = 4  # counters per row up to which counting is faster than sorting


def unique_sets(columns: Sequence[tuple[str, NDArray[np.int64]]]) -> tuple[UniqueSet, ...]:
    """Return the sets of columns that make rows unique, those of most rows first; O(d^3 n log n).

    columns: name and codes; NULL is a value. A row counts if it is unique in no smaller subset.
    """
    if not columns or not len(columns[0][1]):
        return ()
    n_rows = len(columns[0][1])
    found = []
    alone: dict[tuple[int, ...], NDArray[np.bool_]] = {(): np.zeros(n_rows, bool)}
    for places, unique in _uniques([codes for _, codes in columns]):
        alone[places] = unique
        before = np.zeros(n_rows, bool)
        for part in combinations(places, len(places) - 1):
            before |= alone[part]
        minimal = unique & ~before
        rows = int(minimal.sum())
        if rows:
            names = tuple(columns[place][0] for place in places)
            found.append(UniqueSet(names, rows, rows / n_rows))
    return tuple(sorted(found, key=lambda one: (-one.rows, len(one.columns))))


def explaining(columns: Sequence[tuple[str, NDArray[np.int64]]]) -> tuple[UniqueSet, UniqueSet]:
    """Return a small set of columns that makes nearly all rows unique that all columns do, and all.

    Greedy: the column that makes most rows unique with those before is next; O(d^2 n log n).
    """
    n_rows = len(columns[0][1])
    joint, rows = np.zeros(n_rows, np.int64), 0
    for _, codes in columns:
        joint, rows, _ = _joined(joint, codes)
    every = UniqueSet(tuple(name for name, _ in columns), rows, rows / n_rows)
    left, names = dict(columns), list[str]()
    joint, rows = np.zeros(n_rows, np.int64), 0
    while left and rows < _NEARLY * every.rows:
        tried = {name: _joined(joint, codes) for name, codes in left.items()}
        best = max(tried, key=lambda name: tried[name][1:])
        joint, rows, _ = tried[best]
        names.append(best)
        del left[best]
    return UniqueSet(tuple(names), rows, rows / n_rows), every


def _joined(
    joint: NDArray[np.int64], codes: NDArray[np.int64]
) -> tuple[NDArray[np.int64], int, int]:
    """Return numbers of the tuples with one more column, and how many are unique and distinct."""
    numbers, counts = _numbered(joint * (int(codes.max()) + 1) + codes)
    return numbers, int((counts == 1).sum()), int((counts > 0).sum())


def _uniques(
    columns: Sequence[NDArray[np.int64]],
) -> Iterator[tuple[tuple[int, ...], NDArray[np.bool_]]]:
    """Yield each set of columns, smaller ones first, with the rows that are unique in it."""
    joint: dict[tuple[int, ...], NDArray[np.int64]] = {(): np.zeros(len(columns[0]), np.int64)}
    for size in range(1, min(LARGEST, len(columns)) + 1):
        for places in combinations(range(len(columns)), size):
            keys = joint[places[:-1]] * (int(columns[places[-1]].max()) + 1) + columns[places[-1]]
            numbers, counts = _numbered(keys)
            if size < LARGEST:
                joint[places] = numbers
            yield places, counts[numbers] == 1


def _numbered(keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return a number for each distinct key, from 0, and the frequency of each."""
    if int(keys.max()) < _DENSE * len(keys):
        return keys, np.bincount(keys)
    _, numbers, counts = np.unique(keys, return_inverse=True, return_counts=True)
    return numbers, counts
