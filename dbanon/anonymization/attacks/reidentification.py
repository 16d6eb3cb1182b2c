"""To find the row of a person, or the person of a row (El Emam, Dankar, JAMIA 2008)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.attacks.bounds import found_among
from dbanon.anonymization.attacks.case import NotTried, Tries, result
from dbanon.domain.report import Attacker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from dbanon.anonymization.attacks.case import Case
    from dbanon.domain.report import Attack


def prosecutor(case: Case, generator: np.random.Generator) -> Iterator[Attack]:  # noqa: ARG001 - the chances are known
    """Take any row that the quasi-identifiers of a person allow."""
    rows = case.coverage.sums(case.released.size)
    persons = case.released.persons
    own = 1 if persons is None else np.bincount(persons)[persons[case.rows]]
    yield result(
        f"re-identification, {Attacker.PROSECUTOR}",
        None,
        Tries(
            np.minimum(own / rows, 1),  # any row of theirs will do
            baseline=_anybody(int(case.released.size.sum())),
            expected=found_among(case.policy, case.released.persons),
            candidates=float(np.median(rows)),
            words="knows who is in the relation, and takes any row that the person may have",
        ),
    )


def journalist(case: Case, generator: np.random.Generator) -> Iterator[Attack]:  # noqa: ARG001 - as above
    """Take the rows that are easiest to find, and any person who each may be of."""
    crowd, size = case.crowd, case.released.size
    if not len(size):
        raise NotTried("the relation is empty")
    least = float(crowd.min())
    rows = int(size[crowd == least].sum())
    yield result(
        f"re-identification, {Attacker.JOURNALIST}",
        None,
        Tries(
            np.full(rows, 1 / least),
            baseline=_anybody(case.released.table.n_rows),
            expected=found_among(case.policy, case.released.persons),
            candidates=least,
            words="takes the rows of the relation that fewest persons of the table may have",
        ),
    )


def marketer(case: Case, generator: np.random.Generator) -> Iterator[Attack]:
    """Take all rows, and any person who each may be of."""
    crowd = _of_rows(case, generator)
    yield result(
        f"re-identification, {Attacker.MARKETER}",
        None,
        Tries(
            1 / crowd,
            baseline=_anybody(case.released.table.n_rows),
            expected=found_among(case.policy, case.released.persons),
            candidates=float(np.median(crowd)) if len(crowd) else None,
            words="links every row of the relation with any person of the table who may have it",
        ),
    )


def _of_rows(case: Case, generator: np.random.Generator) -> NDArray[np.float64]:
    """Return of how many persons each of some published rows may be."""
    size = case.released.size
    ends = np.cumsum(size)
    total = int(ends[-1]) if len(ends) else 0
    rows = np.arange(total)
    if total > case.tried:
        rows = np.sort(generator.choice(total, case.tried, replace=False))
    return case.crowd[np.searchsorted(ends, rows, side="right")]


def _anybody(rows: int) -> float:
    """Return how likely the right one of all rows is taken by chance."""
    return 1 / max(rows, 1)
