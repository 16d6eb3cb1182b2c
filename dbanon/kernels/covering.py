"""Find the classes that cover a row, by the labels of their columns.

Classes are boxes in a hierarchy of bounding boxes, split in the column in which their centers vary
most (Rubin and Whitted, SIGGRAPH 1980; packed as in Roussopoulos and Leifker, SIGMOD 1985).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dbanon.kernels.compilation import inlined, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.kernels.layout import Int32s, Int64s

_IN_LEAF = 4  # boxes that are looked at one by one
_DEEPEST = 64


class Cells(NamedTuple):
    """The labels of all columns in one table, and those of each class.

    sizes: (d,) int32, code of NULL; labels: (g, d) int32, of each class; bounds: (t, 3) int32,
    least and greatest code of a label, and NULL flag; members[start[t]:start[t + 1]], int32,
    sorted: codes between them, all if empty; start: (t + 1,) int64.
    """

    sizes: Int32s
    labels: Int32s
    bounds: Int32s
    start: Int64s
    members: Int32s


class Hierarchy(NamedTuple):
    """Bounding boxes of classes, each before those inside it.

    box: (nodes, d, 3) int32, as ``Cells.bounds``; order[begin:end], int32: the classes inside;
    skip: (nodes,) int32, the next box that is not inside.
    """

    box: Int32s
    order: Int32s
    begin: Int32s
    end: Int32s
    skip: Int32s


@kernel
def hierarchy(cells: Cells) -> Hierarchy:
    """Return the hierarchy of the boxes of g classes; O(g log^2 g)."""
    n_classes, d = cells.labels.shape
    middle = _middles(cells)
    most = max(2 * n_classes, 1)
    box = np.empty((most, d, 3), np.int32)
    begin, end, skip = (
        np.empty(most, np.int32),
        np.empty(most, np.int32),
        np.empty(most, np.int32),
    )
    order = np.arange(n_classes).astype(np.int32)
    stack = np.empty((_DEEPEST, 2), np.int32)
    stack[0, 0], stack[0, 1] = 0, n_classes
    waiting, count = 1, 0
    while waiting:
        waiting -= 1
        first, last = stack[waiting, 0], stack[waiting, 1]
        begin[count], end[count] = first, last
        _bound(cells, order[first:last], box[count])
        count += 1
        if last - first <= _IN_LEAF:
            continue
        _sort(order[first:last], middle)
        half = (first + last) >> 1
        stack[waiting, 0], stack[waiting, 1] = half, last
        stack[waiting + 1, 0], stack[waiting + 1, 1] = first, half
        waiting += 2
    for node in range(count - 1, -1, -1):
        is_leaf = end[node] - begin[node] <= _IN_LEAF
        skip[node] = node + 1 if is_leaf else skip[skip[node + 1]]
    return Hierarchy(box[:count], order, begin[:count], end[:count], skip[:count])


@kernel
def _middles(cells: Cells) -> NDArray[np.float32]:
    """Return the center of each class in each column, (g, d) in [0, 1], 1.5 for NULL alone."""
    n_classes, d = cells.labels.shape
    middle = np.empty((n_classes, d), np.float32)
    for one in range(n_classes):
        for column in range(d):
            label = cells.labels[one, column]
            lo, hi = cells.bounds[label, 0], cells.bounds[label, 1]
            known = (lo + np.float64(hi)) / (2 * max(cells.sizes[column], 1))
            middle[one, column] = known if hi >= lo else 1.5
    return middle


@kernel
def _bound(cells: Cells, classes: Int32s, box: Int32s) -> None:
    """Write the bounding box of some classes, (d, 3)."""
    for column in range(len(box)):
        box[column, 0], box[column, 1], box[column, 2] = cells.sizes[column], -1, 0
        for one in classes:
            label = cells.labels[one, column]
            lo, hi = cells.bounds[label, 0], cells.bounds[label, 1]
            box[column, 2] |= cells.bounds[label, 2]
            if hi >= lo:
                box[column, 0] = min(box[column, 0], lo)
                box[column, 1] = max(box[column, 1], hi)


@kernel
def _sort(classes: Int32s, middle: NDArray[np.float32]) -> None:
    """Sort classes by the column in which their centers vary most."""
    along, widest = 0, -1.0
    for column in range(middle.shape[1]):
        total, squares = 0.0, 0.0
        for one in classes:
            total += middle[one, column]
            squares += middle[one, column] ** 2
        variance = squares / len(classes) - (total / len(classes)) ** 2
        if variance > widest:
            along, widest = column, variance
    keys = np.empty(len(classes), np.float32)
    for place in range(len(classes)):
        keys[place] = middle[classes[place], along]
    classes[:] = classes[np.argsort(keys)]


@inlined
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


@inlined
def _is_in_class(codes: Int32s, one: int, cells: Cells) -> bool:
    for column in range(len(codes)):
        label = cells.labels[one, column]
        if not _is_covered(codes[column], cells.sizes[column], label, cells):
            return False
    return True


@inlined
def _is_in_box(codes: Int32s, sizes: Int32s, box: Int32s) -> bool:
    for column in range(len(codes)):
        code = codes[column]
        if code == sizes[column]:
            if box[column, 2] == 0:
                return False
        elif code < box[column, 0] or code > box[column, 1]:
            return False
    return True


@kernel
def covering(codes: Int32s, cells: Cells, tree: Hierarchy, enough: int) -> tuple[Int64s, Int32s]:
    """Return the classes that cover each row, sorted, and the start of each row's.

    codes: (r, d); enough: search limit per row; there may be further classes.
    """
    n_rows = codes.shape[0]
    first = np.zeros(n_rows + 1, np.int64)
    found = np.empty(1024, np.int32)
    count = 0
    for row in range(n_rows):
        node = 0
        while node < len(tree.skip) and count - first[row] < enough:
            if not _is_in_box(codes[row], cells.sizes, tree.box[node]):
                node = tree.skip[node]
                continue
            node += 1
            if tree.skip[node - 1] != node:
                continue
            for place in range(tree.begin[node - 1], tree.end[node - 1]):
                one = tree.order[place]
                if not _is_in_class(codes[row], one, cells):
                    continue
                if count == len(found):
                    found = np.append(found, found)
                found[count] = one
                count += 1
        first[row + 1] = count
        found[first[row] : count].sort()
    return first, found[:count].copy()
