"""To take the values that a person may have by both relations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.attacks.beliefs import beliefs, guesses
from dbanon.anonymization.attacks.bounds import of_cells
from dbanon.anonymization.attacks.case import Named, Tries, naming, result
from dbanon.anonymization.attacks.together.pair import codes_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from dbanon.anonymization.attacks.case import Target
    from dbanon.anonymization.attacks.together.pair import Pair
    from dbanon.domain.report import Attack

Part = tuple[slice, "NDArray[np.float64]", "NDArray[np.float64]"]


def intersection(pair: Pair) -> Iterator[Attack]:
    """Guess the likeliest value by both classes, and name it where only one is left.

    The better guess by one relation alone is the baseline.
    """
    for target, other in pair.targets():
        right, left = np.zeros((3, pair.first.tried), np.bool_), np.zeros(pair.first.tried)
        for some, first, second in _parts(pair, target, other):
            both = together(first, second, target.whole / target.whole.sum())
            left[some] = np.count_nonzero(both, axis=1)
            for i, belief in enumerate((both, first, second)):
                right[i, some] = guesses(belief) == target.truth[some]
        likeliest, distinct = of_cells(
            (pair.first.policy, pair.second.policy), target.name, target.whole
        )
        median = float(np.median(left))
        yield result(
            "intersection",
            target.name,
            Tries(
                right[0].astype(np.float64),
                baseline=float(right[1:].mean(axis=1).max()),
                expected=pair.admitted(likeliest),
                candidates=median,
                words="guesses the likeliest value by both relations; the baseline has the better"
                " of both alone; candidates are values",
            ),
        )
        yield naming(
            "intersection to one value",
            target.name,
            Named(left == 1, right[0], target.truth == target.guess, pair.least),
            expected=0.0 if pair.is_bounded and distinct > 1 else None,
            left=median,
        )


def together(
    first: NDArray[np.float64], second: NDArray[np.float64], share: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return how likely each value is of each person, by two beliefs that depend on it alone.

    first, second: (p, m); share: (m,) of the relation, by which both began. Where no value is in
    both, the first holds: the person's value changed, or the person is not in one of them.
    """
    both = np.divide(first * second, share, out=np.zeros(first.shape), where=share > 0)
    total = both.sum(axis=1, keepdims=True)
    return np.where(total > 0, both / np.where(total > 0, total, 1), first)


def _parts(pair: Pair, target: Target, other: Target) -> Iterator[Part]:
    """Yield some persons after the other, and what is believed of them by each relation."""
    size, codes = len(target.whole), len(other.whole)
    code = codes_in(target, other)
    mine, theirs = 1 / pair.first.crowd, 1 / pair.second.crowd
    for some, first in beliefs(pair.first.coverage, target.tally, mine, n_codes=size):
        rest = pair.second.coverage_of(some)
        second = np.zeros((some.stop - some.start, size))
        for within, belief in beliefs(rest, other.tally, theirs, n_codes=codes):
            moved = np.zeros((len(belief), size))
            np.add.at(moved.T, code[code >= 0], belief.T[code >= 0])
            second[within] = moved
        yield some, first, second
