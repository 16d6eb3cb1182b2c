"""Risk of a publication, from classes, populations and sensitive values."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.released.cells import Released, SensitiveCounts, covers
from dbanon.anonymization.risk.uniqueness import MOST_COLUMNS, unique_sets, uniqueness
from dbanon.domain.messages import floor_in_words
from dbanon.domain.report import (
    Attacker,
    Disclosure,
    Reidentification,
    Risk,
    SizeBand,
    Uniqueness,
    UniqueSet,
)
from dbanon.models.base import EQUAL
from dbanon.models.closeness.distances import distance_from
from dbanon.models.tally import Tally, Whole, joint_codes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.domain.assignment import SensitiveDomain


RELATION = "the relation"
BY_WEIGHTS = "an estimate by the weights of rows"
UNKNOWN = "the relation (upper bound: population unknown)"

_LEAST = (1, 2, 3, 5, 10, 20, 50, 100, 500)
"""Where the bands of sizes begin."""
_PAIRS_AT_ONCE = 4096
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
    for begin in range(0, pairs.shape[1], _PAIRS_AT_ONCE):
        f, p = pairs[:, begin : begin + _PAIRS_AT_ONCE, None]
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


@dataclass(frozen=True, eq=False, slots=True)
class PopulationCounts:
    """The population that contains the persons of a table.

    size: None if unknown; counted: the released data over its rows, None if unavailable.
    """

    size: int | None = None
    counted: Released | None = None
    name: str = ""

    @property
    def uncounted(self) -> str:
        """Basis of the figures without population counts."""
        if not self.name or self.counted is not None:
            return UNKNOWN
        return f"the relation, as {self.name} is counted once it is published: at most"


def risk(
    released: Released,
    population_counts: PopulationCounts,
    *,
    threshold: float,
    sizes: NDArray[np.int64] | None = None,
    achieved: float | None = None,
) -> Risk:
    """Return the risk, without sets of columns and attacks.

    sizes: the indistinguishable rows, if they are not classes, as in anatomy; achieved: the fewest
    persons of a class. If that is less than its rows, it bounds every class, because the persons of
    rows are not stored.
    """
    alike = released.size if sizes is None else sizes
    heads = _heads(alike, achieved)
    found, basis = None, population_counts.uncounted
    if population_counts.counted is not None and tells(population_counts.counted) and sizes is None:
        found, basis = of_counts(persons(population_counts.counted), heads), population_counts.name
    elif released.table.weights is not None and tells(released):
        of_classes = represented(released, released.table.weights, heads)
        found, basis = of_weights(of_classes, heads), BY_WEIGHTS
    elif population_counts.size is not None and alike.sum():
        sampled = min(float(alike.sum() / population_counts.size), 1.0)
        found, basis = (
            of_sample(heads, sampled),
            f"an estimate for {population_counts.size:,} persons",
        )
    identified = risks(alike, threshold=threshold, heads=heads, population=found, basis=basis)
    return Risk(
        reidentification=identified,
        sizes=size_bands(alike),
        disclosures=disclosures(released),
        floors={
            column.name: floor_in_words(column.rule).removeprefix("; ")
            for column in released.table.quasi
            if column.has_floor
        },
    )


def _heads(sizes: NDArray[np.int64], achieved: float | None) -> NDArray[np.int64]:
    """Return the least number of persons of each class, (g,), given the fewest counted."""
    if achieved is None or not len(sizes) or achieved >= sizes.min():
        return sizes
    return np.full_like(sizes, max(int(achieved), 1))


def unique_in(released: Released, population_counts: PopulationCounts) -> tuple[Uniqueness, ...]:
    """Return how many persons of a population are unique, by each estimator."""
    return (
        ()
        if population_counts.size is None
        else uniqueness(members(released), population_counts.size)
    )


def sets_of(released: Released, rows: NDArray[np.int64]) -> tuple[UniqueSet, ...]:
    """Return the sets of quasi-identifiers that make sampled rows of the source unique."""
    columns = released.table.quasi[:MOST_COLUMNS]
    coded = [(column.name, column.codes[rows].astype(np.int64)) for column in columns]
    return unique_sets(coded)


_AT_ONCE = 2_000


def tells(released: Released) -> bool:
    """Return True if there are quasi-identifiers and each excludes someone."""
    return bool(released.columns) and not any(column.is_point for column in released.columns)


def persons(released: Released) -> NDArray[np.int64]:
    """Return how many rows of the table each class covers; by distinct tuples, block by block."""
    covered = _covered(released, np.ones((1, released.table.n_rows)))[0]
    return np.asarray(covered, np.int64)


def represented(
    released: Released, weights: NDArray[np.float64], heads: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return how many persons of a population those of each class represent, (n_classes,).

    Each of ``heads`` counts with the mean weight of the rows that the class covers, at least 1.
    """
    total, rows = _covered(released, np.array([weights, np.ones_like(weights)]))
    mean = total / np.maximum(rows, 1.0)
    return np.asarray(heads * np.maximum(mean, 1.0))


def _covered(released: Released, amounts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the sums of amounts, (t, table.n_rows), over the rows each class covers, (t, g)."""
    _, rows, place = np.unique(
        joint_codes(released.table.codes), return_index=True, return_inverse=True
    )
    of_tuples = [np.bincount(place, amount, len(rows)) for amount in amounts]
    covered = np.zeros((len(amounts), released.n_classes))
    for begin in range(0, len(rows), _AT_ONCE):
        found = covers(released, rows[begin : begin + _AT_ONCE])
        for i, amount in enumerate(of_tuples):
            each = np.repeat(amount[begin : begin + _AT_ONCE], np.diff(found.start))
            covered[i] += np.bincount(found.classes, each, released.n_classes)
    return covered


def members(released: Released) -> NDArray[np.int64]:
    """Return the number of rows of each distinct tuple of quasi-identifiers."""
    return np.bincount(joint_codes(released.table.codes))


DELTA = EPSILON = 0.1
"""A value is believed with more than 1 - delta, and ruled out with less than epsilon."""


def posterior(
    counts: NDArray[np.int64], among_known: NDArray[np.float64], among_class: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the belief about a person's sensitive value, given the person's class.

    Bayes-optimal (Machanavajjhala et al., TKDD 2007, theorem 3.1). counts: (m,) frequency of each
    value in the class; among_known: (m,) its share among persons with the known quasi-identifiers;
    among_class: among all that the class covers. A value impossible in the class (share 0) is
    ignored.
    """
    weight = np.zeros(len(counts))
    some = (np.asarray(among_class) > 0.0) & (np.asarray(counts) > 0)
    weight[some] = (counts * among_known)[some] / np.asarray(among_class)[some]
    total = weight.sum()
    return weight / total if total > 0.0 else weight


def disclosures(released: Released) -> tuple[Disclosure, ...]:
    """Return the disclosure of each unmasked sensitive column by the classes.

    The prior is the distribution in the relation, the posterior that in the class.
    """
    if not released.n_classes:
        return ()
    domains = dict(zip(released.table.sensitive_names, released.table.domains, strict=True))
    return tuple(_disclosure(one, domains[one.name]) for one in released.sensitive)


def _disclosure(counted: SensitiveCounts, domain: SensitiveDomain) -> Disclosure:
    tally = counted.tally
    n_rows = int(tally.size.sum())
    total = np.zeros(counted.n_codes, np.int64)
    np.add.at(total, tally.values, tally.counts)
    prior, after = total / n_rows, tally.shares()
    before = prior[tally.values]
    whole = Whole(prior, n_rows, domain)
    entropy = -tally.total(after * np.log(after))
    believed = (after > 1.0 - DELTA) & (before <= 1.0 - DELTA)
    return Disclosure(
        column=counted.name,
        values=int((total > 0).sum()),
        highest=float(after.max()),
        lift=float((after / before).max()),
        guessed=float(tally.most(tally.counts.astype(np.float64)).sum() / n_rows),
        baseline=float(prior.max()),
        positive=float(tally.counts[believed].sum() / n_rows),
        negative=float(tally.size[_ruled_out(tally, prior)].sum() / n_rows),
        diversity=float(np.exp(entropy.min())),
        closeness=float(distance_from(tally, whole, prior, distance=EQUAL).max()),
    )


def _ruled_out(tally: Tally, prior: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return the classes in which a value becomes rare or absent."""
    possible = prior >= EPSILON
    kept = possible[tally.values] & (tally.shares() >= EPSILON)
    n_kept = np.bincount(tally.classes[kept], minlength=tally.n_classes)
    return np.asarray(n_kept < possible.sum())
