"""To find the person of whom one knows the rows of both relations."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.attacks.bounds import one_in
from dbanon.anonymization.attacks.case import Tries, crowd_of, result
from dbanon.anonymization.released.cells import Released
from dbanon.domain.assignment import EncodedTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from dbanon.anonymization.attacks.case import Case
    from dbanon.anonymization.attacks.together.pair import Pair
    from dbanon.domain.report import Attack

_EVERYBODY = 1_000_000


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
        rows, expected = in_both(pair), None
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


def in_both(pair: Pair) -> NDArray[np.float64]:
    """Return how many persons the likeliest classes of each person cover in both releases, (m,).

    The likeliest class is the one that covers fewest. Counted among all who may be in both, or a
    million of them.
    """
    cases = (pair.first, pair.second)
    classes, place = np.unique(
        np.column_stack([_fewest(case) for case in cases]), axis=0, return_inverse=True
    )
    of_both = [
        (
            replace(cells, index=cells.index[classes[:, one]]),
            replace(quasi, codes=quasi.codes[rows]),
        )
        for one, (case, rows) in enumerate(zip(cases, pair.same, strict=True))
        for cells, quasi in zip(case.released.columns, case.released.table.quasi, strict=True)
    ]
    nothing = np.zeros((len(pair.same[0]), 0), np.int32)
    table = EncodedTable(tuple(quasi for _, quasi in of_both), nothing, (), len(nothing))
    cells = tuple(cells for cells, _ in of_both)
    joined = Released(table, cells, np.ones(len(classes), np.int64), ())
    crowd = crowd_of(joined, most=_EVERYBODY, generator=np.random.default_rng(0))
    return crowd[place.ravel()]


def _fewest(case: Case) -> NDArray[np.int64]:
    """Return the class of each person that covers fewest."""
    start, classes = case.coverage
    person = np.repeat(np.arange(case.tried), np.diff(start))
    order = np.lexsort((classes, case.crowd[classes], person))
    return classes[order][start[:-1]].astype(np.int64)
