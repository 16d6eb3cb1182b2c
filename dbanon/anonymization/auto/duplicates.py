"""Equal rows: put side by side, and frozen where there are more than a search needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.anonymization.auto.space import Space


class Frozen(NamedTuple):
    """The rows that a search moves, and those that stay with their equals.

    space: the active rows, in the order of their tuples; rows: (m,) where they are in the table;
    bounds: (u + 1,) where the rows of each tuple begin; frozen: the other rows of the table, and
    tuple_of_frozen: the tuple of each, both (n - m,).
    """

    space: Space
    rows: NDArray[np.int64]
    bounds: NDArray[np.int64]
    frozen: NDArray[np.int64]
    tuple_of_frozen: NDArray[np.int64]


def freeze(space: Space) -> Frozen:
    """Sort rows by their codes, and set the surplus of frequent tuples aside; O(n).

    Rows that differ in nothing are interchangeable, so the order of the table does not matter for
    what follows.
    """
    from dbanon.kernels.auto.diversity import make_rules
    from dbanon.kernels.auto.duplicates import distinct_rows, freeze_rows, sort_by

    number, first = distinct_rows(space.codes)
    by_codes = np.arange(len(first))
    for codes in np.ascontiguousarray(space.codes[first].T[::-1]):
        by_codes = sort_by(by_codes, codes, int(codes.max()) + 1)
    rank = np.empty(len(first), np.int32)
    rank[by_codes] = np.arange(len(first), dtype=np.int32)
    tuple_of = rank[number]
    order = np.arange(space.n_rows)
    for keys in (*space.sensitive.T[::-1], tuple_of):
        order = sort_by(order, np.ascontiguousarray(keys), int(keys.max()) + 1)
    tuple_of = tuple_of[order]
    ordered = space.take(order)
    bounds = _bounds(tuple_of, len(first))
    frozen = freeze_rows(bounds, make_rules(*space.rules, ordered.sensitive), space.k)
    active = ~frozen
    return Frozen(
        space=ordered.take(np.flatnonzero(active)),
        rows=order[active],
        bounds=_bounds(tuple_of[active], len(first)),
        frozen=order[frozen],
        tuple_of_frozen=tuple_of[frozen].astype(np.int64),
    )


def _bounds(tuple_of: NDArray[np.int32], n_tuples: int) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(np.bincount(tuple_of, minlength=n_tuples))])
