"""Frequencies of each sensitive value in each class, and in the whole relation."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dbanon.domain.assignment import SensitiveDomain, height_shares

if TYPE_CHECKING:
    from numpy.typing import NDArray

_DENSE = 8
_NO_VALUES = SensitiveDomain((), np.zeros(0), np.zeros(0, np.int64))


class Tally(NamedTuple):
    """The values of each class, sorted by class, then by value; no class is empty.

    classes, values, counts: (c,) int64; start: (g,) the first entry of each class; size: (g,) its
    rows.
    """

    classes: NDArray[np.int64]
    values: NDArray[np.int64]
    counts: NDArray[np.int64]
    start: NDArray[np.int64]
    size: NDArray[np.int64]

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.size)

    def shares(self) -> NDArray[np.float64]:
        """Return the share of each entry in its class."""
        shares: NDArray[np.float64] = self.counts / self.size[self.classes]
        return shares

    def distinct(self) -> NDArray[np.int64]:
        """Return the number of distinct values of each class."""
        return np.diff(self.start, append=len(self.classes))

    def most(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the greatest of the entries' numbers in each class."""
        most: NDArray[np.float64] = np.maximum.reduceat(numbers, self.start)
        return most

    def least(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the least of the entries' numbers in each class."""
        least: NDArray[np.float64] = np.minimum.reduceat(numbers, self.start)
        return least

    def total(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sum of the entries' numbers in each class."""
        total: NDArray[np.float64] = np.add.reduceat(numbers, self.start)
        return total

    def ranks(self) -> NDArray[np.int64]:
        """Return the rank of each entry in its class by descending count, from 1."""
        order = np.lexsort((-self.counts, self.classes))
        ranks = np.empty(len(order), np.int64)
        ranks[order] = np.arange(len(order)) - self.start[self.classes[order]] + 1
        return ranks

    def of(self, some: NDArray[np.int64]) -> Tally:
        """Return the tally of some classes, numbered in the order given."""
        lengths = self.distinct()[some]
        start = np.cumsum(lengths) - lengths
        places = np.repeat(self.start[some] - start, lengths) + np.arange(lengths.sum())
        classes = np.repeat(np.arange(len(some)), lengths)
        return Tally(classes, self.values[places], self.counts[places], start, self.size[some])


def tally(classes: NDArray[np.int32], values: NDArray[np.int32]) -> Tally:
    """Count the pairs of class and value; O(n), or O(n log n) if most pairs do not occur.

    classes: (n,) 0..g-1 without gaps; values: (n,) codes; n >= 1.
    """
    width = int(values.max()) + 1
    keys = classes.astype(np.int64) * width + values
    most = int(keys.max()) + 1
    if most <= _DENSE * len(keys):
        dense = np.bincount(keys)
        found = np.flatnonzero(dense)
        counts = dense[found]
    else:
        found, counts = np.unique(keys, return_counts=True)
    of_class = found // width
    start = np.flatnonzero(np.diff(of_class, prepend=-1))
    return Tally(of_class, found % width, counts, start, np.add.reduceat(counts, start))


def joint_codes(codes: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the rank of each row of codes, (n, c), among the distinct rows, (n,)."""
    joint = np.zeros(len(codes), np.int64)
    for narrow in codes.T:
        column = narrow.astype(np.int64)
        least = column.min(initial=0)
        width = column.max(initial=0) - least + 1
        joint = np.unique(joint * width + (column - least), return_inverse=True)[1]
    return joint.astype(np.int32)


def tally_of_counts(counts: NDArray[np.int64]) -> Tally:
    """Return the tally of a table of counts, (g, m); no class is empty."""
    of_class, values = np.nonzero(counts)
    start = np.flatnonzero(np.diff(of_class, prepend=-1))
    return Tally(of_class, values, counts[of_class, values], start, counts.sum(axis=1))


class Whole(NamedTuple):
    """The relation that classes are compared with.

    share: (m,) float64, of each value, 0 for values of suppressed rows only; n_rows: its rows;
    domain: of the values; coarser: for each way to join classes, (g,) the joint class of each
    class, 0..h-1.
    """

    share: NDArray[np.float64]
    n_rows: int
    domain: SensitiveDomain
    coarser: tuple[NDArray[np.int64], ...] = ()


def whole_of(values: NDArray[np.int32], domain: SensitiveDomain | None) -> Whole:
    """Return the relation of these rows, or the larger one whose counts the domain has."""
    domain = domain or _NO_VALUES
    if domain.counts is not None:
        n_rows = int(domain.counts.sum())
        return Whole(domain.counts / n_rows, n_rows, domain)
    size = max(len(domain.labels), int(values.max()) + 1)
    counts = np.bincount(values, minlength=size)
    return Whole(counts / len(values), len(values), domain)


class Steps(NamedTuple):
    """The path from each leaf to the root, edge by edge.

    leaf, node: (e,) the leaf, and the lower node of each edge above it, 0..n-1; weight: (n,) half
    of the distance of the edge above the node.
    """

    leaf: NDArray[np.int64]
    node: NDArray[np.int64]
    weight: NDArray[np.float64]


def steps_of(domain: SensitiveDomain) -> Steps:
    """Return the edges above each value's code; NULL is a separate leaf below the root."""
    tree = domain.tree
    assert tree is not None  # noqa: S101 - the caller has checked
    height = height_shares(tree)
    weight = np.append((height[tree.parent] - height) / 2, 0.5)
    node = np.where(domain.leaf >= 0, tree.leaves[domain.leaf], len(tree.parent)).astype(np.int64)
    parent = np.append(tree.parent, 0)
    leaves, nodes = [], []
    code = np.arange(len(node))
    while True:
        inner = node > 0
        code, node = code[inner], node[inner]
        if not len(code):
            break
        leaves.append(code)
        nodes.append(node)
        node = parent[node]
    none = [np.zeros(0, np.int64)]
    return Steps(np.concatenate(leaves or none), np.concatenate(nodes or none), weight)
