"""To be certain of a value, as all rows that a person may have share it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.attacks.beliefs import beliefs
from dbanon.anonymization.attacks.case import Named, naming

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dbanon.anonymization.attacks.case import Case
    from dbanon.domain.report import Attack


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
