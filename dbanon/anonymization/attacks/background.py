"""To guess a value when one knows of some others that the person does not have them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.attacks.beliefs import beliefs, guesses
from dbanon.anonymization.attacks.case import Tries, result

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from dbanon.anonymization.attacks.case import Case
    from dbanon.domain.report import Attack

_EXCLUDED = (1, 2)


def background(case: Case, generator: np.random.Generator) -> Iterator[Attack]:
    """Guess the likeliest value without one or two others (Machanavajjhala et al., TKDD 2007).

    The others are any of those that the person's rows show and that are not the person's own, one
    as likely as the next: so which they are tells no more than that they are excluded.
    """
    weight = 1 / case.crowd
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
                Tries(
                    right[i],
                    baseline=float(without[i].mean()),
                    expected=case.admitted(target.limits.most_without(excluded)),
                    candidates=float(np.median(case.coverage.sums(case.released.size))),
                    words=f"knows of {known} that the person does not have",
                ),
            )


def exclude(
    belief: NDArray[np.float64],
    truth: NDArray[np.int64],
    *,
    excluded: int,
    generator: np.random.Generator,
) -> NDArray[np.float64]:
    """Return the beliefs without some values that are not true, drawn of those that are there.

    belief: (p, m); truth: (p,). Fewer are excluded where there are no more.
    """
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
