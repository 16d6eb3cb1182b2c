"""The tuples of a table, and every box that a class of them can have.

A class is a set of at least k rows; each of its rows loses the cost of its box: for every column
with a taxonomy the share of leaves below the lowest common ancestor, for the ordered column the
width of its interval. Costs are sums over the columns here; NCP is their mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np


class Class(NamedTuple):
    """Which tuples are together, how many rows of each, and what all of these rows lose."""

    tuples: np.ndarray
    rows: np.ndarray
    cost: float


class Tuples:
    """The distinct tuples of a table, the ordered column first, and how many rows have each.

    Takes no NULL, and exactly one ordered column. ``nodes[j]`` and ``costs[j]`` are (levels, L):
    the ancestor of each leaf of the j-th taxonomy that is so many steps above the deepest leaf, or
    the leaf itself where that is higher, and what it loses. So leaves have their lowest common
    ancestor in one level, however deep each is.
    """

    def __init__(self, table):
        (ordered,) = [column for column in table.quasi if column.taxonomy is None]
        trees = [column for column in table.quasi if column.taxonomy is not None]
        if any((column.codes == column.size).any() for column in table.quasi):
            msg = "the bounds know no NULL"
            raise ValueError(msg)
        codes = np.column_stack([column.codes for column in (ordered, *trees)])
        self.codes, self.of_row, self.count = np.unique(
            codes, axis=0, return_inverse=True, return_counts=True
        )
        self.position = ordered.position
        self.trees = [column.taxonomy for column in trees]
        levels = [_levels(tree) for tree in self.trees]
        self.nodes, self.costs = [nodes for nodes, _ in levels], [costs for _, costs in levels]

    def __len__(self) -> int:
        return len(self.count)

    @property
    def cells(self) -> int:
        """How many values the rows have, of which NCP is the mean loss."""
        return int(self.count.sum()) * (1 + len(self.trees))

    def cost(self, tuples) -> float:
        """Return the cost of the least box that holds some tuples."""
        codes = self.codes[tuples]
        lo, hi = codes.min(axis=0), codes.max(axis=0)
        cost = self.position[hi[0]] - self.position[lo[0]]
        for j, (nodes, costs) in enumerate(zip(self.nodes, self.costs, strict=True), start=1):
            level = int(np.argmax(nodes[:, lo[j]] == nodes[:, hi[j]]))
            cost += costs[level, lo[j]]
        return float(cost)

    def class_of(self, tuples, rows) -> Class:
        return Class(tuples, rows, self.cost(tuples) * int(rows.sum()))

    def classes(self, group) -> list[Class]:
        """Return the classes of a publication that leaves nobody out; group: (n,)."""
        parts = np.split(np.argsort(group, kind="stable"), np.cumsum(np.bincount(group))[:-1])
        pairs = [np.unique(self.of_row[rows], return_counts=True) for rows in parts]
        return [self.class_of(*pair) for pair in pairs]


def _levels(taxonomy):
    below = taxonomy.leaf_hi - taxonomy.leaf_lo + 1
    lost = np.where(below > 1, below / taxonomy.n_leaves, 0.0)
    nodes = [taxonomy.leaves]
    for depth in range(taxonomy.height - 1, -1, -1):
        deeper = taxonomy.depth[nodes[-1]] > depth
        nodes.append(np.where(deeper, taxonomy.parent[nodes[-1]], nodes[-1]))
    return np.array(nodes), lost[np.array(nodes)]


@dataclass(frozen=True, eq=False)
class Boxes:
    """What the combinations of nodes hold, as far as that is k rows; each set of tuples once.

    The box of any class is such a combination and a window of the ordered column, and where
    several combinations hold the same tuples, the cheapest of them costs no class more.

    members: the tuples of one set after the other; set i has those from first[i] to first[i + 1];
    cost: (sets,) what the nodes of each lose.
    """

    tuples: Tuples
    k: int
    members: np.ndarray
    first: np.ndarray
    cost: np.ndarray

    @classmethod
    def of(cls, tuples: Tuples, k: int) -> Boxes:
        """Combine the nodes; O(combinations * T log T)."""
        sets: dict[bytes, float] = {}
        for levels in product(*(range(len(nodes)) for nodes in tuples.nodes)):
            for cost, members in _held(tuples, levels, k):
                name = members.astype(np.int32).tobytes()
                sets[name] = min(cost, sets.get(name, np.inf))
        parts = [np.frombuffer(name, np.int32) for name in sets]
        first = np.append(0, np.cumsum([len(part) for part in parts]))
        members = np.concatenate(parts).astype(np.int64)
        return cls(tuples, k, members, first, np.array(list(sets.values())))


def _held(tuples, levels, k):
    """Yield the cost and the tuples of each combination of nodes of these levels."""
    key, cost = np.zeros(len(tuples), np.int64), np.zeros(len(tuples))
    for j, level in enumerate(levels):
        code = tuples.codes[:, j + 1]
        key = key * len(tuples.trees[j].labels) + tuples.nodes[j][level, code]
        cost += tuples.costs[j][level, code]
    order = np.argsort(key, kind="stable")
    start = np.flatnonzero(np.diff(key[order], prepend=-1))
    enough = np.add.reduceat(tuples.count[order], start) >= k
    until = np.append(start[1:], len(order))
    for first, last in zip(start[enough], until[enough], strict=True):
        yield float(cost[order[first]]), order[first:last]


class Windows:
    """The boxes of one set of tuples: every window from a value of theirs to another.

    own: the tuples, dearest first; place: (len(own),) which of the values each has; cost: (values,
    values) that of the box by its first and last value.
    """

    def __init__(self, tuples: Tuples, own: np.ndarray, cost: float, *, k: int):
        self.tuples, self.own, self.k = tuples, own, k
        codes, self.place = np.unique(tuples.codes[own, 0], return_inverse=True)
        position = tuples.position[codes]
        self.cost = cost + position[None, :] - position[:, None]

    def best(self, prices: np.ndarray) -> np.ndarray:
        """Return what the best class of k to 2k - 1 rows gains, by first and last value.

        It is -inf where there are fewer rows. The dearest k rows and then those dearer than the
        box are the best, so of one value no more than 2k - 1 rows count.
        """
        value, taken = np.zeros_like(self.cost), np.zeros(self.cost.shape, np.int64)
        full = np.zeros(len(self.cost), np.int64)
        for number, place in zip(self.own.tolist(), self.place.tolist(), strict=True):
            if full[place] >= 2 * self.k - 1:
                continue
            full[place] += self.tuples.count[number]
            reached = (slice(place + 1), slice(place, None))
            more = prices[number] - self.cost[reached]
            room = np.where(more > 0, 2 * self.k - 1, self.k) - taken[reached]
            room = np.clip(room, 0, self.tuples.count[number])
            value[reached] += room * more
            taken[reached] += room
        value[taken < self.k] = -np.inf
        return value

    def inside(self, window: int) -> tuple[np.ndarray, float]:
        """Return the tuples in a window, numbered as in ``cost.flat``, and the cost of its box."""
        lo, hi = divmod(window, len(self.cost))
        return self.own[(self.place >= lo) & (self.place <= hi)], float(self.cost[lo, hi])

    def best_class(self, window: int, prices: np.ndarray) -> Class:
        inside, cost = self.inside(window)
        count = self.tuples.count[inside]
        until = np.cumsum(count)
        limit = np.where(prices[inside] > cost, 2 * self.k - 1, self.k)
        rows = np.clip(np.minimum(until, limit) - (until - count), 0, None)
        return self.tuples.class_of(inside[rows > 0], rows[rows > 0])


def promising(boxes: Boxes, prices: np.ndarray, *, above: float):
    """Yield the windows of each set of which a class may gain more than that."""
    size, k = np.diff(boxes.first), boxes.k
    owner = np.repeat(np.arange(len(size)), size)
    by_price = np.argsort(-prices, kind="stable")
    rank = np.empty(len(prices), np.int64)
    rank[by_price] = np.arange(len(prices))
    members = by_price[np.sort(owner * len(prices) + rank[boxes.members]) % len(prices)]
    until = np.cumsum(boxes.tuples.count[members])
    before = until - boxes.tuples.count[members]
    start = before[boxes.first[:-1]][owner]
    gain = prices[members] - boxes.cost[owner]
    limit = start + np.where(gain > 0, 2 * k - 1, k)
    taken = np.clip(np.minimum(until, limit) - before, 0, None)
    most = np.add.reduceat(taken * gain, boxes.first[:-1])
    for number in np.flatnonzero(most > above).tolist():
        own = members[boxes.first[number] : boxes.first[number + 1]]
        yield Windows(boxes.tuples, own, float(boxes.cost[number]), k=k)
