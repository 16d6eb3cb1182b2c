"""Which sets of columns tell rows apart that no fewer of them do.

Minimal sample uniques (Elliot, Manning and Ford, Int. J. of Uncertainty, Fuzziness and
Knowledge-Based Systems 10, 2002), up to three columns.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from dbanon.domain.report import UniqueSet

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

MOST_COLUMNS = 12
LARGEST = 3
_DENSE = 4  # as many counters as that for each row cost less than sorting the rows


def unique_sets(columns: Sequence[tuple[str, NDArray[np.int64]]]) -> tuple[UniqueSet, ...]:
    """Return the sets of columns that make rows unique, those that do so of most rows first.

    columns: the name and the codes, from 0 on, of each; NULL is a value. A row counts for a set if
    no other row has its values there, and some has them in every smaller part of the set.
    O(d^3 n log n).
    """
    if not columns or not len(columns[0][1]):
        return ()
    n_rows = len(columns[0][1])
    found = []
    alone: dict[tuple[int, ...], NDArray[np.bool_]] = {(): np.zeros(n_rows, bool)}
    for places, unique in _uniques([codes for _, codes in columns]):
        alone[places] = unique
        before = np.zeros(n_rows, bool)
        for part in combinations(places, len(places) - 1):
            before |= alone[part]
        minimal = unique & ~before
        rows = int(minimal.sum())
        if rows:
            names = tuple(columns[place][0] for place in places)
            found.append(UniqueSet(names, rows, rows / n_rows))
    return tuple(sorted(found, key=lambda one: (-one.rows, len(one.columns))))


def _uniques(
    columns: Sequence[NDArray[np.int64]],
) -> Iterator[tuple[tuple[int, ...], NDArray[np.bool_]]]:
    """Yield each set of columns, smaller ones first, with the rows that it tells from all others.

    A set of more columns than two is joined with what its first ones have in common.
    """
    joint: dict[tuple[int, ...], NDArray[np.int64]] = {(): np.zeros(len(columns[0]), np.int64)}
    for size in range(1, min(LARGEST, len(columns)) + 1):
        for places in combinations(range(len(columns)), size):
            keys = joint[places[:-1]] * (int(columns[places[-1]].max()) + 1) + columns[places[-1]]
            numbers, counts = _numbered(keys)
            if size < LARGEST:
                joint[places] = numbers
            yield places, counts[numbers] == 1


def _numbered(keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return a number for each distinct key, from 0 on, and how often each is there."""
    if int(keys.max()) < _DENSE * len(keys):
        return keys, np.bincount(keys)
    _, numbers, counts = np.unique(keys, return_inverse=True, return_counts=True)
    return numbers, counts
