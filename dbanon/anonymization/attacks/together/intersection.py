"""To take the values that a person may have by both relations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.attacks.beliefs import beliefs, guesses
from dbanon.anonymization.attacks.bounds import of_cells
from dbanon.anonymization.attacks.case import Tries, result
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
        tried = pair.first.tried
        right, certain, left = np.zeros((3, tried)), np.zeros((3, tried)), np.zeros(tried)
        for some, first, second in _parts(pair, target, other):
            both = together(first, second, target.whole / target.whole.sum())
            left[some] = np.count_nonzero(both, axis=1)
            for i, belief in enumerate((both, first, second)):
                is_right = guesses(belief) == target.truth[some]
                right[i, some] = is_right
                certain[i, some] = is_right & (np.count_nonzero(belief, axis=1) == 1)
        likeliest, distinct = of_cells(
            (pair.first.policy, pair.second.policy), target.name, target.whole
        )
        alone = "; the baseline has the better of both alone"
        yield result(
            "intersection",
            target.name,
            Tries(
                right[0],
                baseline=float(right[1:].mean(axis=1).max()),
                expected=pair.admitted(likeliest),
                candidates=float(np.median(left)) if tried else None,
                words=f"guesses the likeliest value by both relations{alone};"
                " candidates are values",
            ),
        )
        yield result(
            "intersection to one value",
            target.name,
            Tries(
                certain[0],
                baseline=float(certain[1:].mean(axis=1).max()),
                expected=0.0 if pair.is_bounded and distinct > 1 else None,
                candidates=float(np.median(left)) if tried else None,
                words=f"names a value where no other is in both classes{alone};"
                " candidates are values",
            ),
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
