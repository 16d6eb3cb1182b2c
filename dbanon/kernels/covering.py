"""Find the classes that cover a row, by the labels of their columns.

For each column and code, a bit for each class that covers it: those of a row are the intersection
(Wong, Liu, Olken, Rotem, Wong, Bit transposed files, VLDB 1985). Neighbouring codes of a column of
many share their bits, so that what is found has still to be compared with the labels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dbanon.kernels.compilation import ZERO, inlined, kernel, step

if TYPE_CHECKING:
    from dbanon.kernels.layout import Int32s, Int64s, UInt64s

BITS: Any = np.int64(64)
AT_ONCE = 512  # words of a piece of bits, so that those of a row stay in a processor's cache


class Cells(NamedTuple):
    """The labels of all columns in one table, those of each class, and the pieces of each code.

    sizes: (d,) int32, code of NULL; labels: (g, d) int32, of each class; bounds: (t, 3) int32,
    least and greatest code of a label, and NULL flag; members[start[t]:start[t + 1]], int32,
    sorted: codes between them, all if empty; start: (t + 1,) int64; pieces: int32, the row of bits
    of each code, ascending, NULL after a row that is none's; begin: (d + 1,) int64, of a column in
    them.
    """

    sizes: Int32s
    labels: Int32s
    bounds: Int32s
    start: Int64s
    members: Int32s
    pieces: Int32s
    begin: Int64s


@step
def _mark(cells: Cells, first: int, last: int, bits: UInt64s) -> None:
    """Set the bits of classes from ``first`` to ``last`` for all codes that they cover."""
    for row in range(bits.shape[0]):
        for word in range(bits.shape[1]):
            bits[row, word] = 0
    for one in range(first, last):
        for column in range(cells.sizes.shape[0]):
            _mark_ends(cells, one, column, bits[:, (one - first) // BITS], (one - first) % BITS)
    for column in range(cells.sizes.shape[0]):
        begin = cells.begin[column]
        for row in range(cells.pieces[begin] + 1, cells.pieces[begin + cells.sizes[column]]):
            for word in range(bits.shape[1]):
                bits[row, word] ^= bits[row - 1, word]


@step
def _mark_ends(cells: Cells, one: int, column: int, word: UInt64s, place: int) -> None:
    """Change the bit of a class in a column where codes that it covers begin, and end."""
    label, begin, bit = cells.labels[one, column], cells.begin[column], np.uint64(1 << place)
    lo, hi, pieces = cells.bounds[label, 0], cells.bounds[label, 1], cells.pieces
    if cells.bounds[label, 2] != 0:
        word[pieces[begin + cells.sizes[column]]] |= bit
    if hi >= lo and cells.start[label] == cells.start[label + 1]:
        word[pieces[begin + lo]] ^= bit
        word[pieces[begin + hi] + 1] ^= bit
    before = -1
    for at in range(cells.start[label], cells.start[label + 1]):
        piece = pieces[begin + cells.members[at]]
        if piece != before:
            word[piece] ^= bit
            word[piece + 1] ^= bit
        before = piece


@step
def _is_covered(code: int, size: int, label: int, cells: Cells) -> bool:
    """Return True if a label of a column covers a code, of which ``size`` is NULL."""
    bounds, start, members = cells.bounds, cells.start, cells.members
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


@step
def _is_in_class(codes: Int32s, row: int, one: int, cells: Cells) -> bool:
    for column in range(codes.shape[1]):
        label = cells.labels[one, column]
        if not _is_covered(codes[row, column], cells.sizes[column], label, cells):
            return False
    return True


@inlined
def _common(bits: UInt64s, mine: Int32s, word: int) -> np.uint64:
    """Return the classes of a word whose bits are set in all pieces of a row."""
    common = bits[mine[0], word]
    for column in range(1, mine.shape[0]):
        if common == 0:
            break
        common &= bits[mine[column], word]
    return common


@kernel
def covering(codes: Int32s, cells: Cells) -> tuple[Int64s, Int32s]:
    """Return the classes that cover each row, sorted, and the start of each row's.

    codes: (r, d), the columns that exclude most classes first. O(r g / 64) words, g classes.
    """
    n_rows, d = codes.shape
    n_classes = ZERO + cells.labels.shape[0]
    words = min((n_classes + BITS - 1) // BITS, AT_ONCE)
    bits = np.empty((cells.pieces.max() + 1, words), np.uint64)
    mine, count = np.empty(d, np.int32), ZERO
    found, start = np.empty((1024, 2), np.int32), np.zeros(n_rows + 1, np.int64)
    for first in range(0, n_classes, words * BITS):
        _mark(cells, first, min(first + words * BITS, n_classes), bits)
        for row in range(n_rows):
            for column in range(d):
                mine[column] = cells.pieces[cells.begin[column] + codes[row, column]]
            for word in range(words):
                common, one = _common(bits, mine, word), first + word * BITS
                while common != 0:
                    if common & np.uint64(1) and _is_in_class(codes, row, one, cells):
                        if count == found.shape[0]:
                            found = np.concatenate((found, found))
                        found[count, 0], found[count, 1] = row, one
                        start[row + 1] += 1
                        count += 1
                    common >>= np.uint64(1)
                    one += 1
    for row in range(n_rows):
        start[row + 1] += start[row]
    classes, at = np.empty(count, np.int32), start.copy()
    for i in range(count):
        classes[at[found[i, 0]]] = found[i, 1]
        at[found[i, 0]] += 1
    return start, classes
