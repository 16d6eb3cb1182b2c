"""A kd-tree of points with tight boxes that shrink as points are removed.

Cuts halve the rows at the column of greatest variance until a leaf is small. Nodes are numbered as
in a heap: root 1, children 2i and 2i + 1, leaves last. Bounds are computed term by term like
distances, so rounding never prunes wrongly, and ties go to the lowest row: answers equal those of a
scan exactly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dbanon.kernels.compilation import inlined, kernel

if TYPE_CHECKING:
    from dbanon.kernels.layout import Floats, Int64s


class Tree(NamedTuple):
    """The points by leaf, remaining ones first in their leaf.

    points: (n, d) float64; row: (n,) int64, row at each place; place: (n,) int64, place of each
    row, below 0 if removed; start, end: (leaves,) places of the remaining points; boxes: (nodes, 2,
    d); first: (nodes,) lowest remaining row, n if none; reach: (nodes,) see ``farthest``; stack,
    bounds: work memory.
    """

    points: Floats
    row: Int64s
    place: Int64s
    start: Int64s
    end: Int64s
    boxes: Floats
    first: Int64s
    reach: Floats
    stack: Int64s
    bounds: Floats


@kernel
def _widest(points: Floats) -> int:
    """Return the column of greatest variance."""
    n, best, widest = points.shape[0], -1.0, 0
    for j in range(points.shape[1]):
        total, squares, origin = 0.0, 0.0, points[0, j]
        for i in range(n):
            step = points[i, j] - origin
            total += step
            squares += step * step
        spread = squares - total * total / n
        if spread > best:
            best, widest = spread, j
    return widest


@inlined
def _less(a: float, row_a: int, b: float, row_b: int) -> bool:
    return a < b or (a == b and row_a < row_b)


@kernel
def _select(points: Floats, row: Int64s, at: int, column: int) -> None:
    """Move the ``at`` least points of a column to the front, ties by row (quickselect)."""
    low, high = 0, points.shape[0] - 1
    while low < high:
        middle = (low + high) // 2
        value, number = points[middle, column], row[middle]
        i, j = low, high
        while i <= j:
            while _less(points[i, column], row[i], value, number):
                i += 1
            while _less(value, number, points[j, column], row[j]):
                j -= 1
            if i <= j:
                row[i], row[j] = row[j], row[i]
                for c in range(points.shape[1]):
                    points[i, c], points[j, c] = points[j, c], points[i, c]
                i += 1
                j -= 1
        if at <= j:
            high = j
        elif at >= i:
            low = i
        else:
            return


@kernel
def split(points: Floats, row: Int64s, shares: Floats, multiple: int) -> Int64s:
    """Sort points and their rows into parts; return the start of each part, and n.

    shares: (parts,), left share of each node; parts is a power of two. Cuts are at multiples of
    ``multiple``. O(n d log parts).
    """
    n_parts = shares.shape[0]
    starts = np.zeros(n_parts + 1, np.int64)
    starts[n_parts] = points.shape[0]
    step, node = n_parts, 1
    while step > 1:
        for part in range(0, n_parts, step):
            begin, end = starts[part], starts[part + step]
            left = int((end - begin) * shares[node] / multiple) * multiple
            starts[part + step // 2] = begin + left
            if left > 0:
                segment = points[begin:end]
                _select(segment, row[begin:end], left, _widest(segment))
            node += 1
        step //= 2
    return starts


@kernel
def plant(points: Floats, leaf: int) -> Tree:
    """Build a tree of leaves of at most ``leaf`` points; O(n d log n)."""
    n, d = points.shape
    n_leaves = 1
    while n > leaf * n_leaves:
        n_leaves *= 2
    row, place = np.arange(n), np.empty(n, np.int64)
    points = points.copy()
    starts = split(points, row, np.full(n_leaves, 0.5), 1)
    for i in range(n):
        place[row[i]] = i
    boxes, reach = np.empty((2 * n_leaves, 2, d)), np.full(2 * n_leaves, np.inf)
    first, stack = np.empty(2 * n_leaves, np.int64), np.empty(64, np.int64)
    ends = starts[1:].copy()
    t = Tree(points, row, place, starts[:-1], ends, boxes, first, reach, stack, np.empty(64))
    for node in range(2 * n_leaves - 1, 0, -1):
        _fit(node, t)
    return t


@kernel
def _fit(node: int, t: Tree) -> bool:
    """Tighten the box of a node; return True if that changed it."""
    n_leaves, changed, first = t.start.shape[0], False, t.row.shape[0]
    if node >= n_leaves:
        begin, end = t.start[node - n_leaves], t.end[node - n_leaves]
        for i in range(begin, end):
            first = min(first, t.row[i])
    else:
        first = min(t.first[2 * node], t.first[2 * node + 1])
    for j in range(t.points.shape[1]):
        low, high = np.inf, -np.inf
        if node >= n_leaves:
            for i in range(begin, end):
                low, high = min(low, t.points[i, j]), max(high, t.points[i, j])
        else:
            low = min(t.boxes[2 * node, 0, j], t.boxes[2 * node + 1, 0, j])
            high = max(t.boxes[2 * node, 1, j], t.boxes[2 * node + 1, 1, j])
        changed |= low != t.boxes[node, 0, j] or high != t.boxes[node, 1, j]
        t.boxes[node, 0, j], t.boxes[node, 1, j] = low, high
    changed |= first != t.first[node]
    t.first[node] = first
    return changed


@kernel
def remove(row: np.int64 | int, t: Tree) -> None:
    """Remove a point and shrink the boxes above it, as far as they change."""
    place, n_leaves = t.place[row], t.start.shape[0]
    leaf = np.searchsorted(t.start, place, side="right") - 1
    t.end[leaf] -= 1
    last = t.end[leaf]
    t.row[place], t.row[last] = t.row[last], row
    for j in range(t.points.shape[1]):
        t.points[place, j], t.points[last, j] = t.points[last, j], t.points[place, j]
    t.place[t.row[place]] = place
    t.place[row] = -1
    node = leaf + n_leaves
    if last == t.start[leaf]:
        t.reach[node] = -np.inf
        _lift(node // 2, t.reach)
    while node > 0 and _fit(node, t):
        node //= 2


@inlined
def _nearest_of_box(point: Floats, node: int, boxes: Floats) -> float:
    """Return a lower bound of the squared distances below a node."""
    total = 0.0
    for j in range(point.shape[0]):
        step = max(boxes[node, 0, j] - point[j], point[j] - boxes[node, 1, j], 0.0)
        total += step * step
    return total


@kernel
def _farthest_of_box(point: Floats, node: int, boxes: Floats) -> float:
    """Return an upper bound of the squared distances below a node."""
    total = 0.0
    for j in range(point.shape[0]):
        step = max(boxes[node, 1, j] - point[j], point[j] - boxes[node, 0, j])
        total += step * step
    return total


@inlined
def squared_distance(point: Floats, i: int, points: Floats) -> float:
    """Return the squared distance from the i-th point, added in column order."""
    total = 0.0
    for j in range(point.shape[0]):
        step = points[i, j] - point[j]
        total += step * step
    return total


@inlined
def _insert(distance: float, row: int, found: int, rows: Int64s, distances: Floats) -> int:
    """Insert a row into the nearest so far; return their number."""
    place = min(found, rows.shape[0] - 1)
    if found == rows.shape[0] and not _less(distance, row, distances[place], rows[place]):
        return found
    while place > 0 and _less(distance, row, distances[place - 1], rows[place - 1]):
        distances[place], rows[place] = distances[place - 1], rows[place - 1]
        place -= 1
    distances[place], rows[place] = distance, row
    return min(found + 1, rows.shape[0])


@kernel
def nearest(point: Floats, rows: Int64s, distances: Floats, slack: float, t: Tree) -> int:
    """Fill the nearest rows in order, ties by row; return their number.

    slack: 1 is exact; above, boxes beyond the farthest found over the slack are skipped, so that
    some nearer rows can be missed.
    """
    # arrays are taken out of the tuple once, which saves counting references in the loop
    points, row, start, end, boxes = t.points, t.row, t.start, t.end, t.boxes
    first, stack, bounds = t.first, t.stack, t.bounds
    n_leaves, most, found, top = start.shape[0], rows.shape[0], 0, 1
    stack[0], bounds[0] = 1, 0.0
    while top > 0 and most > 0:
        top -= 1
        node, bound = stack[top], bounds[top]
        if found == most and not _less(
            bound * slack, first[node], distances[most - 1], rows[most - 1]
        ):
            continue
        if node >= n_leaves:
            for i in range(start[node - n_leaves], end[node - n_leaves]):
                distance = squared_distance(point, i, points)
                if found < most or distance <= distances[most - 1]:
                    found = _insert(distance, row[i], found, rows, distances)
            continue
        near, far = 2 * node, 2 * node + 1
        bound = _nearest_of_box(point, near, boxes)
        bound_far = _nearest_of_box(point, far, boxes)
        if _less(bound_far, first[far], bound, first[near]):
            near, far, bound, bound_far = far, near, bound_far, bound
        stack[top], bounds[top] = far, bound_far
        stack[top + 1], bounds[top + 1] = near, bound
        top += 2
    return found


@kernel
def farthest(point: Floats, drift: float, t: Tree) -> int:
    """Return the farthest remaining row, the lowest of equals; -1 if none remains.

    drift: length of the path of a moving point, infinite for any other point. A point's distance
    grows at most by the path since, so ``reach``, distance minus drift, is a permanent bound below
    a node.
    """
    n, n_leaves, top, best, answer = t.row.shape[0], t.start.shape[0], 1, -1.0, -1
    t.stack[0], t.bounds[0] = 1, np.inf
    while top > 0:
        top -= 1
        node, bound = t.stack[top], t.bounds[top]
        if bound < best or (bound == best and t.first[node] > answer) or t.first[node] == n:
            continue
        if node >= n_leaves:
            most = -1.0
            for i in range(t.start[node - n_leaves], t.end[node - n_leaves]):
                distance = squared_distance(point, i, t.points)
                most = max(most, distance)
                if _less(best, t.row[i], distance, answer):
                    best, answer = distance, t.row[i]
            if drift < np.inf:
                t.reach[node] = _reach(most, drift)
                _lift(node // 2, t.reach)
            continue
        near, far = 2 * node, 2 * node + 1
        bound = _farthest_of_box(point, near, t.boxes)
        bound_far = _farthest_of_box(point, far, t.boxes)
        if drift < np.inf:
            bound = _known(bound, near, drift, t.reach)
            bound_far = _known(bound_far, far, drift, t.reach)
            _lift(node, t.reach)
        if _less(bound, t.first[far], bound_far, t.first[near]):
            near, far, bound, bound_far = far, near, bound_far, bound
        t.stack[top], t.bounds[top] = far, bound_far
        t.stack[top + 1], t.bounds[top + 1] = near, bound
        top += 2
    return answer


@kernel
def _reach(squared: float, drift: float) -> float:
    """Return the distance minus the drift, rounded up."""
    distance = np.sqrt(squared)
    return distance - drift + 1e-12 * (distance + drift)


@kernel
def _known(bound: float, node: int, drift: float, reach: Floats) -> float:
    """Return the lesser of a bound and that of ``reach``, and update ``reach``."""
    most = reach[node] + drift
    if bound < most * most:
        reach[node] = _reach(bound, drift)
    return min(bound, most * most)


@kernel
def _lift(node: int, reach: Floats) -> None:
    """Propagate ``reach`` of a node upwards as the maximum of children."""
    while node > 0:
        most = max(reach[2 * node], reach[2 * node + 1])
        if most == reach[node]:
            return
        reach[node] = most
        node //= 2


@kernel
def survey(point: Floats, t: Tree) -> None:
    """Fill ``reach`` for a point that will move; otherwise the boxes alone are bounds."""
    n_leaves = t.start.shape[0]
    for leaf in range(n_leaves):
        most = 0.0
        for i in range(t.start[leaf], t.end[leaf]):
            most = max(most, squared_distance(point, i, t.points))
        t.reach[n_leaves + leaf] = _reach(most, 0.0)
        _lift((n_leaves + leaf) // 2, t.reach)
