"""Boxes that merge, and the groups of rows that they bound."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dbanon.kernels.boxes.box_extension import cost_of, costs_of, reach_rows, stretch
from dbanon.kernels.boxes.costs import box_cost, group_boxes
from dbanon.kernels.compile import kernel

if TYPE_CHECKING:
    from dbanon.kernels.arrays import Floats, Int32s, Int64s
    from dbanon.kernels.boxes.box_extension import Costs

NONE = -1


class Boxes(NamedTuple):
    """Boxes of rows and what they cost.

    lo, hi: (g, d) least and greatest codes; size: (g,) rows, 0 for a box that is no more; cost:
    (g,); flat, layout: as ``dbanon.kernels.boxes.costs`` describes them.
    """

    lo: Int32s
    hi: Int32s
    size: Int64s
    cost: Floats
    flat: Floats
    layout: Int64s


@kernel
def boxes_of(rows: Int32s, group: Int32s, n_groups: int, flat: Floats, layout: Int64s) -> Boxes:
    """Return the boxes of groups; rows: (n, d + s), codes past the d columns are ignored."""
    lo, hi, size = group_boxes(rows[:, : layout.shape[0]], group, n_groups)
    boxes = Boxes(lo, hi, size, np.empty(n_groups), flat, layout)
    for a in range(n_groups):
        boxes.cost[a] = cost_of(lo[a], hi[a], flat, layout)
    return boxes


@kernel
def union_rises(lo: Int32s, hi: Int32s, size: int, boxes: Boxes) -> Floats:
    """Return what the total (rows * cost) rises by when a box of rows joins each of the boxes.

    lo, hi: (d,) and size are those of the joining box. (g,), infinite for boxes that are no more;
    O(g d).
    """
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
    """Stretch box ``a`` over another, which is gone afterwards."""
    stretch(b.lo[other], b.lo[a], b.hi[a])
    stretch(b.hi[other], b.lo[a], b.hi[a])
    b.size[a] += b.size[other]
    b.size[other] = 0
    b.cost[a] = cost_of(b.lo[a], b.hi[a], b.flat, b.layout)


class Corners(NamedTuple):
    """What is looked up before boxes are: lo: (d, g) theirs column by column; total: (g,)."""

    lo: Int32s
    total: Floats
    costs: Costs


@kernel
def corners_of(b: Boxes) -> Corners:
    """Return the corners of boxes, which are to follow them."""
    return Corners(b.lo.T.copy(), np.empty(b.size.shape[0]), costs_of(b.flat, b.layout))


@kernel
def nearest_box(a: int, b: Boxes, c: Corners) -> tuple[int, float]:
    """Return the box whose union with box ``a`` has the least rows times cost; ties: lowest.

    It is followed by the cost of the union; it is -1 when there is no other. What the union costs
    with one corner of a box alone is looked up first and rules most boxes out.
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
    """Merge every group of fewer than k rows, in order, with the group nearest to it.

    codes: (n, d); group: (n,). Return the new group of each row, which is the lower of the two at
    each merge, so that no group is merged on its own account twice: one round of the bottom-up
    algorithm (Xu et al., KDD 2006). O(g^2 d).
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

    rows: (n, d + s); boxes: of the groups; head: (g,) the first row of each; following: (n,) the
    next row of the same group, -1 after the last.
    """

    rows: Int32s
    boxes: Boxes
    head: Int64s
    following: Int64s


@kernel
def groups_of(rows: Int32s, group: Int32s, n_groups: int, flat: Floats, layout: Int64s) -> Groups:
    """Return the groups of rows, each list in rising order; O(n d)."""
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
    """Take a row out of the list of group a."""
    if g.head[a] == row:
        g.head[a] = g.following[row]
        return
    before = g.head[a]
    while g.following[before] != row:
        before = g.following[before]
    g.following[before] = g.following[row]


@kernel
def numbered(g: Groups) -> tuple[Int32s, int]:
    """Return the group of each row, and how many there are, those without rows left out."""
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
