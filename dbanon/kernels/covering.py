"""Which classes cover a row, by the labels of their columns.

The labels of all columns lie in one table: ``bounds`` (t, 3) int32 are the least and the greatest
code that a label covers, and whether it covers NULL; the codes that are between them are
members[start[t]:start[t + 1]], sorted, or all where these are none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dbanon.kernels.compile import inlined, kernel

if TYPE_CHECKING:
    from dbanon.kernels.arrays import Int32s, Int64s


@inlined
def _is_covered(
    code: int, size: int, label: int, bounds: Int32s, start: Int64s, members: Int32s
) -> bool:
    """Whether a label covers a code, of which ``size`` is NULL."""
    if code == size:
        return bounds[label, 2] != 0
    if code < bounds[label, 0] or code > bounds[label, 1]:
        return False
    first, last = start[label], start[label + 1]
    if first == last:
        return True
    while first < last:
        middle = (first + last) >> 1
        if members[middle] < code:
            first = middle + 1
        else:
            last = middle
    return first < start[label + 1] and members[first] == code


@inlined
def _is_inside(
    codes: Int32s,
    sizes: Int32s,
    labels: Int32s,
    bounds: Int32s,
    start: Int64s,
    members: Int32s,
) -> bool:
    """Whether the labels of a class cover a row in all columns but the first."""
    for column in range(1, len(codes)):
        if not _is_covered(codes[column], sizes[column], labels[column], bounds, start, members):
            return False
    return True


@kernel
def covering(
    codes: Int32s,
    sizes: Int32s,
    index: Int32s,
    bounds: Int32s,
    start: Int64s,
    members: Int32s,
    begins: Int64s,
    order: Int32s,
) -> tuple[Int64s, Int32s]:
    """Return the classes that cover each row, sorted, and where those of each row begin.

    codes: (r, d); sizes: (d,), the code of NULL; index: (g, d) the label of each class; begins,
    order: the classes of each label of the first column.
    """
    n_rows = codes.shape[0]
    first = np.zeros(n_rows + 1, np.int64)
    found = np.empty(1024, np.int32)
    count = 0
    for row in range(n_rows):
        for label in range(len(begins) - 1):
            if not _is_covered(codes[row, 0], sizes[0], label, bounds, start, members):
                continue
            for place in range(begins[label], begins[label + 1]):
                one = order[place]
                if not _is_inside(codes[row], sizes, index[one], bounds, start, members):
                    continue
                if count == len(found):
                    larger = np.empty(2 * count, np.int32)
                    larger[:count] = found
                    found = larger
                found[count] = one
                count += 1
        first[row + 1] = count
        found[first[row] : count].sort()
    return first, found[:count].copy()
