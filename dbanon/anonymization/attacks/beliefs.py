"""Attacks on sensitive values by the classes that the row of a person may be in.

Homogeneity: all candidate rows share one value. Skewness: a value is more frequent among them than
in the whole relation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.attacks.case import Named, Tries, naming, result

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from dbanon.anonymization.attacks.case import Case
    from dbanon.anonymization.released.covering import Coverage
    from dbanon.domain.report import Attack
    from dbanon.models.tally import Tally

_CELLS = 4_000_000  # numbers that are held at once


def homogeneity(case: Case, generator: np.random.Generator) -> Iterator[Attack]:  # noqa: ARG001 - the values are seen
    """Name a value of those persons alone of whom no other is possible (TKDD 2007)."""
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
            Named(left == 1, right, usual, case.least),
            expected=0.0 if target.limits.distinct > 1 else None,
            left=float(np.median(left)),
        )


def skewness(case: Case, generator: np.random.Generator) -> Iterator[Attack]:  # noqa: ARG001 - it draws nothing
    """Guess the likeliest value of everybody (Li et al., ICDE 2007)."""
    weight = 1 / case.crowd
    for target in case.some_target():
        right = np.zeros(case.tried)
        parts = beliefs(case.coverage, target.tally, weight, n_codes=len(target.whole))
        for some, belief in parts:
            right[some] = guesses(belief) == target.truth[some]
        yield result(
            "skewness",
            target.name,
            Tries(
                right,
                baseline=float((target.truth == target.guess).mean()),
                expected=case.admitted(target.limits.most),
                candidates=float(np.median(case.coverage.sums(case.released.size))),
                words="guesses the likeliest value of the rows that a person may have",
            ),
        )


def beliefs(
    coverage: Coverage, tally: Tally, weight: NDArray[np.float64], *, n_codes: int
) -> Iterator[tuple[slice, NDArray[np.float64]]]:
    """Yield some persons after the other, and how likely each has each value, (p, n_codes).

    A row of a class is that of the person with a chance as great as the weight of the class,
    (n_classes,), so that each of its values counts as often as the class has it.
    """
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
        person = np.repeat(np.arange(last - first), of_person[some])
        held = lengths[classes]
        place = np.repeat(tally.start[classes] - (np.cumsum(held) - held), held)
        place += np.arange(len(place))
        key = np.repeat(person, held) * n_codes + tally.values[place]
        mass = np.repeat(weight[classes], held) * tally.counts[place]
        found = np.bincount(key, mass, minlength=(last - first) * n_codes)
        found = found.reshape(last - first, n_codes)
        yield some, found / found.sum(axis=1, keepdims=True)
        first = last


def guesses(belief: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the likeliest value of each person, of equally likely ones that of the least code."""
    top = belief.max(axis=1, keepdims=True)
    return np.asarray((belief >= top * (1 - 1e-12)).argmax(axis=1), np.int64)
