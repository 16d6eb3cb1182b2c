"""Merge boxes, and the groups of rows that they bound."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dbanon.kernels.boxes.box_extension import Costs, cost_of, costs_of, reach_rows, stretch
from dbanon.kernels.boxes.costs import box_cost, group_boxes
from dbanon.kernels.compilation import kernel

if TYPE_CHECKING:
    from dbanon.kernels.layout import Floats, Int32s, Int64s

NONE = -1


class Boxes(NamedTuple):
    """Boxes (g, d) and their rows (0 if absorbed) and costs, (g,); flat, layout: of costs."""

    lo: Int32s
    hi: Int32s
    size: Int64s
    cost: Floats
    flat: Floats
    layout: Int64s


@kernel
def boxes_of(rows: Int32s, group: Int32s, n_groups: int, flat: Floats, layout: Int64s) -> Boxes:
    """Return the boxes of groups; rows: (n, d + s), codes beyond d columns are ignored."""
    lo, hi, size = group_boxes(rows[:, : layout.shape[0]], group, n_groups)
    boxes = Boxes(lo, hi, size, np.empty(n_groups), flat, layout)
    for a in range(n_groups):
        boxes.cost[a] = cost_of(lo[a], hi[a], flat, layout)
    return boxes


@kernel
def union_rises(lo: Int32s, hi: Int32s, size: int, boxes: Boxes) -> Floats:
    """Return the rise of rows * cost if a box joins each of g boxes, inf if absorbed; O(g d)."""
    rises = np.zeros(boxes.size.shape[0])
    own = 0.0
    flat, layout, los, his = boxes.flat, boxes.layout, boxes.lo, boxes.hi
    for j in range(lo.shape[0]):
        own += box_cost(flat, layout, j, lo[j], hi[j])
        for b in range(rises.shape[0]):
            rises[b] += box_cost(flat, layout, j, min(lo[j], los[b, j]), max(hi[j], his[b, j]))
    for b in range(rises.shape[0]):
        if boxes.size[b] == 0:
            rises[b] = np.inf
        else:
            union = (size + boxes.size[b]) * rises[b]
            rises[b] = union - size * own - boxes.size[b] * boxes.cost[b]
    return rises


@kernel
def absorb(a: int, other: int, b: Boxes) -> None:
    """Extend box ``a`` over another, which is then absorbed."""
    stretch(b.lo[other], b.lo[a], b.hi[a])
    stretch(b.hi[other], b.lo[a], b.hi[a])
    b.size[a] += b.size[other]
    b.size[other] = 0
    b.cost[a] = cost_of(b.lo[a], b.hi[a], b.flat, b.layout)


class Corners(NamedTuple):
    """Index of boxes: lo (d, g) by column, and total (g,)."""

    lo: Int32s
    total: Floats
    costs: Costs


@kernel
def corners_of(b: Boxes) -> Corners:
    """Return the corners of boxes; they must be kept up to date."""
    return Corners(b.lo.T.copy(), np.empty(b.size.shape[0]), costs_of(b.flat, b.layout))


@kernel
def nearest_box(a: int, b: Boxes, c: Corners) -> tuple[int, float]:
    """Return the box whose union with box ``a`` has the least rows times cost, and that cost.

    Ties: lowest; -1 if there is no other box. The cost with one corner is a bound that excludes
    most.
    """
    reach_rows(b.size.shape[0], c.lo, b.lo[a], b.hi[a], c.costs, c.total)
    best, best_cost, least = NONE, np.inf, np.inf
    for other in range(b.size.shape[0]):
        n = b.size[a] + b.size[other]
        if other == a or b.size[other] == 0 or n * c.total[other] >= least:
            continue
        cost = 0.0
        for j in range(b.lo.shape[1]):
            low, high = min(b.lo[a, j], b.lo[other, j]), max(b.hi[a, j], b.hi[other, j])
            cost += box_cost(b.flat, b.layout, j, low, high)
        if n * cost < least:
            best, best_cost, least = other, cost, n * cost
    return best, best_cost


@kernel
def merge_small(
    codes: Int32s, group: Int32s, n_groups: int, flat: Floats, layout: Int64s, k: int
) -> Int64s:
    """Merge every group of fewer than k rows, in order, with the nearest group; O(g^2 d).

    codes: (n, d); group: (n,). Returns the new group of each row, the lower of two merged ones, so
    that no group is merged as the small one twice: one round of bottom-up (Xu et al., KDD 2006).
    """
    boxes = boxes_of(codes, group, n_groups, flat, layout)
    corners, into = corners_of(boxes), np.arange(n_groups)
    for a in range(n_groups):
        if boxes.size[a] == 0 or boxes.size[a] >= k:
            continue
        b, _ = nearest_box(a, boxes, corners)
        if b == NONE:
            break
        kept = min(a, b)
        absorb(kept, max(a, b), boxes)
        corners.lo[:, kept] = boxes.lo[kept]
        into[max(a, b)] = kept
    for a in range(n_groups):
        into[a] = into[into[a]]
    return into[group]


class Groups(NamedTuple):
    """Groups as linked lists of rows, with their boxes.

    rows: (n, d + s); head: (g,) first row of each; following: (n,) next row, -1 after the last.
    """

    rows: Int32s
    boxes: Boxes
    head: Int64s
    following: Int64s


@kernel
def groups_of(rows: Int32s, group: Int32s, n_groups: int, flat: Floats, layout: Int64s) -> Groups:
    """Return the groups of rows, each list ascending; O(n d)."""
    head, following = np.full(n_groups, NONE), np.full(rows.shape[0], NONE)
    for row in range(rows.shape[0] - 1, -1, -1):
        following[row] = head[group[row]]
        head[group[row]] = row
    return Groups(rows, boxes_of(rows, group, n_groups, flat, layout), head, following)


@kernel
def merge(a: int, b: int, g: Groups) -> None:
    """Move all rows of group b to group a; O(rows of the smaller + d)."""
    first, then = (a, b) if g.boxes.size[a] <= g.boxes.size[b] else (b, a)
    last = g.head[first]
    while g.following[last] != NONE:
        last = g.following[last]
    g.following[last] = g.head[then]
    g.head[a] = g.head[first]
    absorb(a, b, g.boxes)


@kernel
def unlink(row: int, a: int, g: Groups) -> None:
    """Remove a row from the list of group a."""
    if g.head[a] == row:
        g.head[a] = g.following[row]
        return
    before = g.head[a]
    while g.following[before] != row:
        before = g.following[before]
    g.following[before] = g.following[row]


@kernel
def numbered(g: Groups) -> tuple[Int32s, int]:
    """Return the group of each row, and the number of nonempty groups."""
    group, n_groups = np.empty(g.rows.shape[0], np.int32), 0
    for a in range(g.boxes.size.shape[0]):
        if g.boxes.size[a] == 0:
            continue
        row = g.head[a]
        while row != NONE:
            group[row] = n_groups
            row = g.following[row]
        n_groups += 1
    return group, n_groups
