"""To find the person of whom one knows the rows of both relations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.attacks.bounds import one_in
from dbanon.anonymization.attacks.case import Tries, result

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from dbanon.anonymization.attacks.case import Case
    from dbanon.anonymization.attacks.together.pair import Pair
    from dbanon.domain.report import Attack


def join(pair: Pair) -> Iterator[Attack]:
    """Take any person who may be in both classes of a person who is in both relations."""
    first, second = pair.first.released.classes, pair.second.released.classes
    known = first is not None and second is not None
    if first is not None and second is not None:
        same = [classes[rows] for classes, rows in zip((first, second), pair.same, strict=True)]
        mine = [_of(case) for case in (pair.first, pair.second)]
        rows = cell_sizes(same, mine).astype(np.float64)
        expected = one_in(pair.least_rows)
    else:
        rows, expected = in_both(pair.first, pair.second), None
    words = "knows a person's rows in both relations, and takes anybody whose rows these may be"
    alone = [1 / case.coverage.sums(case.released.size) for case in (pair.first, pair.second)]
    yield result(
        "join",
        None,
        Tries(
            1 / rows,
            baseline=max((float(one.mean()) for one in alone if len(one)), default=0.0),
            expected=expected,
            candidates=float(np.median(rows)) if len(rows) else None,
            words=words if known else f"{words}; at most, as nobody remembers who is where",
        ),
    )


def _of(case: Case) -> NDArray[np.int32]:
    found = case.true_class
    assert found is not None  # noqa: S101 - asked for only where the classes are known
    return found


def cell_sizes(same: list[NDArray[np.int32]], mine: list[NDArray[np.int32]]) -> NDArray[np.int64]:
    """Return how many persons are in the same classes of two releases as each of some persons.

    same: the classes of everybody, (n,) of each release, -1 for none; mine: of these persons, (m,).
    """
    width = int(max((int(same[1].max(initial=-1)), int(mine[1].max(initial=-1))))) + 2
    cells, counts = np.unique(same[0] * np.int64(width) + same[1], return_counts=True)
    return np.asarray(counts[np.searchsorted(cells, mine[0] * np.int64(width) + mine[1])])


def in_both(first: Case, second: Case) -> NDArray[np.float64]:
    """Return how many persons the likeliest classes of each person cover in both releases, (m,).

    The likeliest class is the one that covers fewest. Counted among those tried, and scaled.
    """
    covered = [_persons_of(case) for case in (first, second)]
    likeliest = [_fewest(case) for case in (first, second)]
    found = np.ones(first.tried)
    for person in range(first.tried):
        mine, other = (
            classes[start[own[person]] : start[own[person] + 1]]
            for (start, classes), own in zip(covered, likeliest, strict=True)
        )
        found[person] = len(np.intersect1d(mine, other, assume_unique=True))
    scale = first.released.table.n_rows / max(first.tried + first.unseen, 1)
    return np.asarray(1 + (found - 1) * scale, np.float64)


def _persons_of(case: Case) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the persons whom each class covers, those of class i from the first's entry i on."""
    person = np.repeat(np.arange(case.tried), np.diff(case.coverage.start))
    order = np.argsort(case.coverage.classes, kind="stable")
    counts = np.bincount(case.coverage.classes, minlength=case.released.n_classes)
    return np.append(0, np.cumsum(counts)), person[order]


def _fewest(case: Case) -> NDArray[np.int64]:
    """Return the class of each person that covers fewest."""
    start, classes = case.coverage
    person = np.repeat(np.arange(case.tried), np.diff(start))
    order = np.lexsort((classes, case.crowd[classes], person))
    return classes[order][start[:-1]].astype(np.int64)
