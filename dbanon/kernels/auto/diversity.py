"""Check the diversity of the sensitive values of some rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dbanon.kernels.auto.clusters import NONE, Clusters
from dbanon.kernels.compilation import ZERO, kernel, step
from dbanon.kernels.layout import BETWEEN, DISTINCT, ENTROPY, EQUAL, SHARE, TREE

if TYPE_CHECKING:
    from numpy.typing import NDArray


TIE = 1e-9


class Rules(NamedTuple):
    """Rules of every cluster, and work memory.

    kinds, columns: (r,) int64, rule and sensitive column; limits: (r, w) float64 (l of DISTINCT;
    greatest share of SHARE; least entropy of ENTROPY; c and l of RECURSIVE, unlimited for l = 1);
    sensitive: (n, s) int32; counts: (values,) int64, 0 between calls; members: (n + 1,) int64;
    tops: (n + values + 1,) int64.

    Rules from BETWEEN compare with a distribution over m values. Their numbers start with a limit,
    m, and the m shares; then follow the greatest and the least share of each value (BETWEEN);
    nothing (EQUAL); the cumulative shares (ORDERED: limit of the sum of differences); or the place
    of each value among the leaves, the number of nodes, and for each node the weight of the edge
    above, its share, and its first and last place (TREE).
    """

    kinds: NDArray[np.int64]
    columns: NDArray[np.int64]
    limits: NDArray[np.float64]
    sensitive: NDArray[np.int32]
    counts: NDArray[np.int64]
    members: NDArray[np.int64]
    tops: NDArray[np.int64]


@kernel
def make_rules(
    kinds: NDArray[np.int64],
    columns: NDArray[np.int64],
    limits: NDArray[np.float64],
    sensitive: NDArray[np.int32],
) -> Rules:
    """Return the rules with work memory for these rows."""
    n = sensitive.shape[0]
    n_values = 1
    for row in range(n):
        for j in range(sensitive.shape[1]):
            n_values = max(n_values, sensitive[row, j] + 1)
    counts, members = np.zeros(n_values, np.int64), np.empty(n + 1, np.int64)
    tops = np.empty(n + n_values + 1, np.int64)
    return Rules(kinds, columns, limits, sensitive, counts, members, tops)


@step
def _rule_holds(r: Rules, rule: int, rows: NDArray[np.int64], n: int) -> bool:
    column = r.columns[rule]
    distinct = ZERO
    for i in range(n):
        value = r.sensitive[rows[i], column]
        distinct += r.counts[value] == 0
        r.counts[value] += 1
    near = r.kinds[rule] < BETWEEN or _is_near(r.kinds[rule], r.limits[rule], r.counts, r.tops, n)
    met = 0
    for i in range(n):
        value = r.sensitive[rows[i], column]
        if r.counts[value] > 0:
            r.tops[met] = r.counts[value]
            r.counts[value] = 0
            met += 1
    if r.kinds[rule] >= BETWEEN:
        return near
    return _counts_hold(r, rule, n, distinct)


@step
def _is_near(
    kind: int,
    numbers: NDArray[np.float64],
    counts: NDArray[np.int64],
    sums: NDArray[np.int64],
    n: int,
) -> bool:
    """Check counts of all values, n in all, by their distance from a distribution; O(values)."""
    m = min(int(numbers[1]), counts.shape[0])
    more = 2 + int(numbers[1])
    if kind == TREE:
        return _is_near_in_tree(numbers, counts, sums, n)
    moved, carried = 0.0, 0
    for value in range(m):
        share = counts[value] / n
        if kind == BETWEEN:
            if share > numbers[more + value] or share < numbers[more + int(numbers[1]) + value]:
                return False
        elif kind == EQUAL:
            moved += max(share - numbers[2 + value], 0.0)
        else:
            carried += counts[value]
            moved += abs(carried / n - numbers[more + value])
    return moved <= numbers[0] + TIE


@step
def _is_near_in_tree(
    numbers: NDArray[np.float64], counts: NDArray[np.int64], sums: NDArray[np.int64], n: int
) -> bool:
    m = int(numbers[1])
    place = 2 + m
    sums[: m + 1] = 0
    for value in range(min(m, counts.shape[0])):
        sums[int(numbers[place + value]) + 1] = counts[value]
    for i in range(m):
        sums[i + 1] += sums[i]
    at = place + m + 1
    moved = 0.0
    for _ in range(int(numbers[place + m])):
        share = (sums[int(numbers[at + 3]) + 1] - sums[int(numbers[at + 2])]) / n
        moved += numbers[at] * abs(share - numbers[at + 1])
        at += 4
    return moved <= numbers[0] + TIE


@step
def is_wanted(r: Rules, rule: int, size: int, row: int) -> bool:
    """Return True if a row adds a new value, or one that is too rare for a rule."""
    value = r.sensitive[row, r.columns[rule]]
    count = r.counts[value]
    if r.kinds[rule] < BETWEEN:
        return count == 0
    return count + 0.5 <= r.limits[rule, 2 + value] * (size + 1)


@step
def _counts_hold(r: Rules, rule: int, n: int, distinct: int) -> bool:
    """Check the first ``distinct`` counts in ``tops``, which add up to n."""
    kind, limit = r.kinds[rule], r.limits[rule, 0]
    if kind == DISTINCT:
        return distinct >= limit
    tops = r.tops[:distinct]
    if kind == ENTROPY:
        entropy = np.log(n)
        for count in tops:
            entropy -= count * np.log(count) / n
        return entropy >= limit - TIE
    greatest = _put_greatest_first(tops, ZERO)
    if kind == SHARE:
        return greatest <= limit * n + TIE
    l = int(r.limits[rule, 1])
    others = n
    for i in range(min(l - 1, distinct)):
        others -= _put_greatest_first(tops, i)
    return l <= 1 or greatest < limit * others


@step
def _put_greatest_first(counts: NDArray[np.int64], start: int) -> int:
    """Swap the greatest count from ``start`` with the one there; return it."""
    at = start
    for i in range(start + 1, counts.shape[0]):
        if counts[i] > counts[at]:
            at = i
    counts[start], counts[at] = counts[at], counts[start]
    return counts[start]


@kernel
def rows_hold(r: Rules, rows: NDArray[np.int64]) -> bool:
    """Return True if rows together meet every rule; O(n) a rule."""
    return hold(r, rows, rows.shape[0])


@step
def hold(r: Rules, rows: NDArray[np.int64], n: int) -> bool:
    """Return True if the first ``n`` rows together meet every rule; O(n) a rule."""
    for rule in range(r.kinds.shape[0]):
        if not _rule_holds(r, rule, rows, n):
            return False
    return True


@step
def _only_distinct(r: Rules) -> bool:
    for kind in r.kinds:
        if kind != DISTINCT:
            return False
    return True


@step
def cluster_holds(r: Rules, s: Clusters, c: int, out: int, into: int) -> bool:
    """Return True if a cluster still meets the rules without row ``out``, with row ``into``.

    NONE is no row. O(size); O(1) if another row cannot break a rule.
    """
    if r.kinds.shape[0] == 0 or (out == NONE and into != NONE and _only_distinct(r)):
        return True
    n = ZERO
    row = s.head[c]
    while row != NONE:
        if row != out:
            r.members[n] = row
            n += 1
        row = s.following[row]
    if into != NONE:
        r.members[n] = into
        n += 1
    return hold(r, r.members, n)


@kernel
def labels_hold(r: Rules, label: NDArray[np.int32], n_clusters: int) -> bool:
    """Return True if every cluster meets every rule; O(n) a rule."""
    order = np.argsort(label, kind="mergesort")
    start = 0
    for c in range(n_clusters):
        stop = start
        while stop < label.shape[0] and label[order[stop]] == c:
            stop += 1
        if not hold(r, order[start:stop], stop - start):
            return False
        start = stop
    return True
