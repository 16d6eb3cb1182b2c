"""The levels of a column: coarser and coarser classes of its values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.encoding.tree_cells import ancestors_by_height

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dbanon.domain.assignment import EncodedColumn
    from dbanon.kernels.arrays import Int32s, Int64s

FINEST = 6  # at most 2**6 intervals
_NULL = np.iinfo(np.int64).max


def column_levels(column: EncodedColumn) -> tuple[Int32s, tuple[Int32s, ...]]:
    """Return the value of each row, (n,), and for each level the class of each value, (v,).

    Values are those that rows hold, in the order of their codes. Level 0 has every value in a
    class of its own. An ordered column then has 64, 32 .. 2, 1 intervals of equal width over the
    range of the table, beginning where they are fewer than the values; a taxonomy has level by
    level the ancestors of height 1, 2 .. of the leaves, a leaf at less depth waiting until its
    parent is as high. NULL keeps a class of its own until the last level, which is everything. A
    level that joins nothing is left out. Each level joins classes of the one before.
    """
    present, values = np.unique(column.codes, return_inverse=True)
    levels = [np.arange(len(present), dtype=np.int32)]
    apart = [np.append(classes, _NULL) for classes in _steps(column)]
    for classes in (*apart, np.zeros(column.size + 1)):
        joined = np.unique(classes[present], return_inverse=True)[1]
        if joined.max() < levels[-1].max():
            levels.append(joined.astype(np.int32))
    return values.astype(np.int32), tuple(levels)


def _steps(column: EncodedColumn) -> Iterator[Int64s]:
    """Yield the class of each value of the domain, coarser and coarser."""
    if column.taxonomy is not None:
        yield from ancestors_by_height(column.taxonomy)
        return
    exponent = min(FINEST, max(column.size - 1, 0).bit_length() - 1)
    for n_intervals in (1 << i for i in range(exponent, -1, -1)):
        # the greatest value closes the last interval
        yield np.minimum((column.position * n_intervals).astype(np.int64), n_intervals - 1)
