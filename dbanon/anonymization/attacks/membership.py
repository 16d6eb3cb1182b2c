"""To tell whether a person is in the release at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.attacks.case import NotTried, Tries, result
from dbanon.anonymization.released.covering import covers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dbanon.anonymization.attacks.case import Case
    from dbanon.domain.report import Attack

_EVEN = 0.5
FEW = "fewer than k rows were left out, or none"
"""Why it is not tried; whether any were is not disclosed."""


def membership(case: Case, generator: np.random.Generator) -> Iterator[Attack]:
    """Tell those whom the release shows from as many whom it leaves out.

    Somebody is taken to be in it where the classes that cover the person have a row for a greater
    share of those who could have one than the relation has of all.
    """
    classes = case.released.classes
    if classes is None:
        raise NotTried(FEW if case.is_complete else "nobody remembers who was left out")
    left_out, shown = np.flatnonzero(classes < 0), np.flatnonzero(classes >= 0)
    if not len(left_out) or not len(shown) or len(left_out) < case.least:
        raise NotTried(FEW)
    size = min(len(left_out), len(shown), case.tried)
    rows = np.concatenate(
        [np.sort(generator.choice(some, size, replace=False)) for some in (left_out, shown)]
    )
    coverage = covers(case.released, rows)
    # Among the persons drawn it is counted how many a class covers, of whom some are left out.
    everybody = covers(case.released, np.sort(generator.permutation(len(classes))[: 2 * size]))
    found = np.bincount(everybody.classes, minlength=case.released.n_classes)
    crowd = np.maximum(found * (len(classes) / max(len(everybody.start) - 1, 1)), 1)
    density = case.released.size / np.maximum(crowd, case.released.size)
    total = np.append(0, np.cumsum(density[coverage.classes]))[coverage.start]
    is_shown = np.append(np.zeros(size, np.bool_), np.ones(size, np.bool_))
    share = len(shown) / len(classes)
    right = (np.diff(total) > share) == is_shown
    yield result(
        "membership",
        None,
        Tries(
            right.astype(np.float64),
            baseline=_EVEN,
            expected=None,
            candidates=None,
            words="tells persons whom the relation shows from as many whom it leaves out",
        ),
    )
