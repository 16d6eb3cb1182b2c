"""Attacks on sensitive values, by the classes that may contain a person's row.

Homogeneity: all candidate rows share one value. Skewness: a value is more frequent among them than
in the whole relation. Similarity: candidate values are close to each other. Background: values that
the person is known not to have are excluded. Minimality: why a class was generalized further.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.stats import hypergeom

from dbanon.anonymization.attacks.scenario import Case, Named, NotTried, Target, naming, result
from dbanon.models.tally import Tally, joint_codes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from dbanon.anonymization.released.cells import Coverage, Released
    from dbanon.domain.assignment import SensitiveDomain
    from dbanon.domain.report import Attack


_NEAR = 10  # parts of an order; values of one part are similar
_SETS = 1_000_000  # numbers of the table of sets

_EXCLUDED = (1, 2)

_CELLS = 4_000_000  # numbers that are held at once


def homogeneity(case: Case, generator: np.random.Generator) -> Iterator[Attack]:  # noqa: ARG001 - the values are seen
    """Name the value of each person with only one possible value (TKDD 2007)."""
    weight = np.ones(case.released.n_classes)
    for target in case.some_target():
        left = np.zeros(case.tried)
        likeliest = np.zeros(case.tried, np.int64)
        parts = beliefs(case.coverage, target.tally, weight, n_codes=len(target.whole))
        for some, belief in parts:
            left[some] = np.count_nonzero(belief, axis=1)
            likeliest[some] = belief.argmax(axis=1)
        right, usual = likeliest == target.truth, target.truth == target.guess
        yield naming(
            "homogeneity",
            target.name,
            Named(left == 1, right, usual),
            expected=0.0 if target.limits.distinct > 1 else None,
            left=float(np.median(left)),
        )


def skewness(case: Case, generator: np.random.Generator) -> Iterator[Attack]:  # noqa: ARG001 - it draws nothing
    """Guess the likeliest value of each person (Li et al., ICDE 2007)."""
    weight = 1 / case.n_candidates
    for target in case.some_target():
        right = np.zeros(case.tried)
        parts = beliefs(case.coverage, target.tally, weight, n_codes=len(target.whole))
        for some, belief in parts:
            right[some] = guesses(belief) == target.truth[some]
        yield result(
            "skewness",
            target.name,
            chances=right,
            baseline=target.baseline,
            expected=case.admitted(target.limits.most),
            candidates=case.candidates,
            words="guesses the most likely value among the candidate rows of the person",
        )


class Entries(NamedTuple):
    """The values that some persons may have.

    some: the persons; person, classes, value: (e,) a person, a class that may contain it, and a
    value of that class; mass: (e,) relative probability of each; n_codes: number of values.
    """

    some: slice
    person: NDArray[np.int64]
    classes: NDArray[np.int32]
    value: NDArray[np.int64]
    mass: NDArray[np.float64]
    n_codes: int

    def sums(self) -> NDArray[np.float64]:
        """Return the mass of each value for each person, (p, n_codes)."""
        shape = self.some.stop - self.some.start, self.n_codes
        key = (self.person - self.some.start) * self.n_codes + self.value
        found = np.bincount(key, self.mass, minlength=shape[0] * shape[1])
        return found.reshape(shape).astype(np.float64)


def beliefs(
    coverage: Coverage, tally: Tally, weight: NDArray[np.float64], *, n_codes: int
) -> Iterator[tuple[slice, NDArray[np.float64]]]:
    """Yield slices of persons and the probability of each value, (p, n_codes).

    weight: (n_classes,) relative probability that a row of the class is the person's.
    """
    for entries in possible_values(coverage, tally, weight, n_codes=n_codes):
        found = entries.sums()
        yield entries.some, found / found.sum(axis=1, keepdims=True)


def possible_values(
    coverage: Coverage, tally: Tally, weight: NDArray[np.float64], *, n_codes: int
) -> Iterator[Entries]:
    """Yield the values of all persons, slice by slice; arguments as for ``beliefs``."""
    lengths = tally.distinct()
    of_person = np.diff(coverage.start)
    entries = np.append(0, np.cumsum(lengths[coverage.classes]))[coverage.start]
    first = 0
    while first < len(of_person):
        most = min(first + max(_CELLS // max(n_codes, 1), 1), len(of_person))
        last = int(np.searchsorted(entries, entries[first] + _CELLS, side="right")) - 1
        last = min(max(last, first + 1), most)
        some = slice(first, last)
        classes = coverage.classes[coverage.start[first] : coverage.start[last]]
        person = np.repeat(np.arange(first, last), of_person[some])
        held = lengths[classes]
        place = np.repeat(tally.start[classes] - (np.cumsum(held) - held), held)
        place += np.arange(len(place))
        person, classes = np.repeat(person, held), np.repeat(classes, held)
        mass = weight[classes] * tally.counts[place]
        yield Entries(some, person, classes, tally.values[place], mass, n_codes)
        first = last


def guesses(belief: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the likeliest value of each person; ties: lowest code."""
    top = belief.max(axis=1, keepdims=True)
    return np.asarray((belief >= top * (1 - 1e-12)).argmax(axis=1), np.int64)


def background(case: Case, generator: np.random.Generator) -> Iterator[Attack]:
    """Guess the likeliest value without one or two others (Machanavajjhala et al., TKDD 2007).

    The excluded values are drawn uniformly from wrong candidates, so that they disclose nothing
    further.
    """
    weight = 1 / case.n_candidates
    for target in case.some_target():
        right = np.zeros((len(_EXCLUDED), case.tried))
        without = np.zeros((len(_EXCLUDED), case.tried))
        parts = beliefs(case.coverage, target.tally, weight, n_codes=len(target.whole))
        for some, belief in parts:
            truth = target.truth[some]
            for i, excluded in enumerate(_EXCLUDED):
                left = exclude(belief, truth, excluded=excluded, generator=generator)
                right[i, some] = (guesses(left) == truth) & (left.max(axis=1) > 0)
                guess = _usual(target.whole, left, belief)
                without[i, some] = guess == truth
        for i, excluded in enumerate(_EXCLUDED):
            known = "one other value" if excluded == 1 else f"{excluded} other values"
            yield result(
                f"background knowledge of {excluded}",
                target.name,
                chances=right[i],
                baseline=float(without[i].mean()),
                expected=case.admitted(target.limits.most_without(excluded)),
                candidates=case.candidates,
                words=f"knows of {known} that the person does not have",
            )


def exclude(
    belief: NDArray[np.float64],
    truth: NDArray[np.int64],
    *,
    excluded: int,
    generator: np.random.Generator,
) -> NDArray[np.float64]:
    """Return the beliefs (p, m) without some randomly drawn values other than the truth (p,)."""
    draws = generator.random(belief.shape)
    draws[belief <= 0] = np.inf
    draws[np.arange(len(truth)), truth] = np.inf
    some = np.argsort(draws, axis=1, kind="stable")[:, :excluded]
    left = belief.copy()
    taken = np.take_along_axis(draws, some, axis=1) < np.inf
    rows = np.broadcast_to(np.arange(len(truth))[:, None], some.shape)
    left[rows[taken], some[taken]] = 0.0
    return left


def _usual(
    whole: NDArray[np.int64], left: NDArray[np.float64], belief: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Return the most frequent value of the relation that is not excluded, for each person."""
    shares = np.broadcast_to(whole.astype(np.float64), left.shape).copy()
    shares[(belief > 0) & (left <= 0)] = 0.0
    return guesses(shares)


def similarity(case: Case, generator: np.random.Generator) -> Iterator[Attack]:  # noqa: ARG001 - it draws nothing
    """Guess the likeliest set of similar values (Li et al., ICDE 2007)."""
    weight, found = 1 / case.n_candidates, False
    for target in case.some_target():
        near = near_values(target.domain, target.whole)
        if near is None:
            continue
        found = True
        yield _tried(case, target, near, weight)
    if not found:
        raise NotTried("no sensitive column has an order or a taxonomy by which values are near")


def _tried(
    case: Case, target: Target, near: NDArray[np.int64], weight: NDArray[np.float64]
) -> Attack:
    n_sets = int(near.max()) + 1
    right = np.zeros(case.tried)
    parts = beliefs(case.coverage, target.tally, weight, n_codes=len(target.whole))
    for some, belief in parts:
        right[some] = guesses(_joined(belief, near, n_sets)) == near[target.truth[some]]
    usual = int(np.bincount(near, target.whole, minlength=n_sets).argmax())
    expected = None
    if n_sets * len(near) <= _SETS:
        expected = case.admitted(target.limits.most_of(np.arange(n_sets)[:, None] == near))
    return result(
        "similarity",
        target.name,
        chances=right,
        baseline=float((near[target.truth] == usual).mean()),
        expected=expected,
        candidates=case.candidates,
        words="guesses the set of similar values that contains the person's value",
    )


def near_values(domain: SensitiveDomain, whole: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """Return the set of similar values of each code; None if no similarity is defined.

    In a taxonomy, the values of one branch below the root. In an order, one tenth of the ranks, or
    of the range of numbers, among published values, because the source may have outliers. NULL is
    similar to nothing. whole: (n_codes,) frequencies in the publication.
    """
    known = len(domain.labels) - (domain.labels[-1:] == (None,))
    shown = np.flatnonzero(whole[:known])
    if domain.tree is not None:
        found = _branches(domain)[:known]
    elif domain.has_order and len(shown) > 1:
        place = np.cumsum(whole[:known] > 0) - 1.0
        numbers = domain.numbers[:known]
        if np.isfinite(numbers[shown]).all():
            place = np.clip(np.nan_to_num(numbers, nan=np.inf), *numbers[shown[[0, -1]]])
        place -= place[shown[0]]
        place /= max(place[shown[-1]], 1e-300)
        found = np.clip((place * _NEAR).astype(np.int64), 0, _NEAR - 1)
    else:
        return None
    if len(np.unique(found[shown])) in {1, len(shown)}:
        return None  # all values are near each other, or none of them
    sets = np.unique(found, return_inverse=True)[1]
    alone = np.arange(len(whole) - known) + (int(sets.max()) + 1)
    return np.append(sets, alone).astype(np.int64)


def _branches(domain: SensitiveDomain) -> NDArray[np.int64]:
    """Return the branch below the root for each value."""
    tree = domain.tree
    assert tree is not None  # noqa: S101 - asked for only where there is one
    top = np.arange(len(tree.parent))
    for node in range(1, len(top)):
        if tree.parent[node] != 0:
            top[node] = top[tree.parent[node]]
    return np.where(domain.leaf >= 0, top[tree.leaves[domain.leaf]], -1)


def _joined(
    belief: NDArray[np.float64], near: NDArray[np.int64], n_sets: int
) -> NDArray[np.float64]:
    """Return the probability of each set of values, (p, n_sets)."""
    order = np.argsort(near, kind="stable")
    starts = np.searchsorted(near[order], np.arange(n_sets))
    return np.asarray(np.add.reduceat(belief[:, order], starts, axis=1), np.float64)


_ROWS = 10_000_000  # no more of a class than scipy counts with


def minimality(case: Case, generator: np.random.Generator) -> Iterator[Attack]:  # noqa: ARG001 - it draws nothing
    """Find classes generalized further because of sensitive values (Wong et al., VLDB 2007).

    If k persons with equal quasi-identifiers are no class, some value must be too frequent among
    them.
    """
    alike, some = _widened(case)
    if not len(some):
        raise NotTried("no persons share all quasi-identifiers and are published with others")
    found = False
    for target in case.some_target():
        if target.limits.most is None and target.limits.distinct < 2:  # noqa: PLR2004 - of any class
            continue
        found = True
        yield _of_widened(case, target, alike, some)
    if not found:
        raise NotTried("no model of sensitive values could have made a class wider")


def _of_widened(
    case: Case, target: Target, alike: NDArray[np.int64], some: NDArray[np.int64]
) -> Attack:
    weight = np.ones(case.released.n_classes)
    rows = case.coverage.sums(case.released.size)
    most = target.limits.most
    share = 1 / max(target.limits.distinct - 1, 1) if most is None else most
    right = np.zeros(case.tried)
    parts = beliefs(case.coverage, target.tally, weight, n_codes=len(target.whole))
    for part, belief in parts:
        within = some[(some >= part.start) & (some < part.stop)]
        counts = np.rint(belief[within - part.start] * rows[within, None]).astype(np.int64)
        guess = guesses(suspicion(counts, alike[within], share=share, strictly=most is not None))
        right[within] = guess == target.truth[within]
    return result(
        "minimality",
        target.name,
        chances=right[some],
        baseline=float((target.truth[some] == target.guess).mean()),
        candidates=float(np.median(rows[some])),
        words="assumes that a value was too frequent among persons who could have been a class",
    )


def suspicion(
    counts: NDArray[np.int64], alike: NDArray[np.int64], *, share: float, strictly: bool
) -> NDArray[np.float64]:
    """Return the probability of each value of a person, given that some value was too frequent.

    counts: (p, m) frequency of each value in the person's class; alike: (p,) number of its rows
    with the person's quasi-identifiers, which would be a class if no value exceeded ``share``
    (reached, if not ``strictly``). Each subset of the class is equally likely; a value counts by
    its rows in the subsets in which it is too frequent.
    """
    size = counts.sum(axis=1)
    among = np.minimum(alike, size)
    least = np.floor(share * among + 1e-9) + 1 if strictly else np.ceil(share * among - 1e-9)
    person, value = np.nonzero(counts)
    rows, has = np.minimum(size[person], _ROWS), counts[person, value]
    drawn = among[person]
    # The mean of a hypergeometric count from some number on, by the distribution of one draw less.
    beyond = hypergeom.sf(least[person] - 2, rows - 1, has - 1, drawn - 1)
    found = np.zeros(counts.shape)
    found[person, value] = drawn * has / rows * np.nan_to_num(beyond)
    total = found.sum(axis=1, keepdims=True)
    return np.where(total > 0, found / np.where(total > 0, total, 1), counts / size[:, None])


def _widened(case: Case) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return how many share each person's quasi-identifiers, and who was generalized further."""
    table = case.released.table
    if not table.quasi or not case.released.columns:
        raise NotTried("the relation has no quasi-identifiers")
    alike_as = joint_codes(table.codes)
    alike = np.bincount(alike_as)[alike_as[case.rows]]
    exact = _exact(case.released)
    apart = np.add.reduceat(
        np.append(exact[case.coverage.classes], False), case.coverage.start[:-1]
    )
    return alike, np.flatnonzero((alike >= max(case.policy.k, 2)) & (apart == 0))


def _exact(released: Released) -> NDArray[np.bool_]:
    """Return a mask of the classes that show their rows' exact values."""
    exact = np.ones(released.n_classes, np.bool_)
    for column in released.columns:
        codes = column.hi - column.lo + 1
        single = np.where(column.nulls, codes <= 0, codes == 1) & (not column.is_point)
        exact &= single[column.index]
    return exact
