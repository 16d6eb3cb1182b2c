"""To guess a value that is more frequent where a person may be than in the whole relation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.attacks.beliefs import beliefs, guesses
from dbanon.anonymization.attacks.case import Tries, result

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dbanon.anonymization.attacks.case import Case
    from dbanon.domain.report import Attack


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
