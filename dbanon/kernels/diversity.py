"""Whether the sensitive values of some rows are diverse enough."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dbanon.kernels.clusters import NONE
from dbanon.kernels.compile import kernel
from dbanon.kernels.layout import DISTINCT, ENTROPY, SHARE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.kernels.clusters import Clusters

TIE = 1e-9


class Rules(NamedTuple):
    """What every cluster must keep, and work memory.

    kinds, columns: (r,) int64, the rule and the sensitive column that it is about; limits: (r, 2)
    float64, its numbers (l of DISTINCT; the largest share of SHARE; the least entropy of ENTROPY;
    c and l of RECURSIVE, l = 1 asking for nothing); sensitive: (n, s) int32; counts: (values,)
    int64, all 0 between calls; members: (n + 1,) int32; tops: (n + 1,) int64.
    """

    kinds: NDArray[np.int64]
    columns: NDArray[np.int64]
    limits: NDArray[np.float64]
    sensitive: NDArray[np.int32]
    counts: NDArray[np.int64]
    members: NDArray[np.int32]
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
    counts, members = np.zeros(n_values, np.int64), np.empty(n + 1, np.int32)
    return Rules(kinds, columns, limits, sensitive, counts, members, np.empty(n + 1, np.int64))


@kernel
def _rule_holds(r: Rules, rule: int, rows: NDArray[np.int32], n: int) -> bool:
    column = r.columns[rule]
    distinct = 0
    for i in range(n):
        value = r.sensitive[rows[i], column]
        distinct += r.counts[value] == 0
        r.counts[value] += 1
    met = 0
    for i in range(n):
        value = r.sensitive[rows[i], column]
        if r.counts[value] > 0:
            r.tops[met] = r.counts[value]
            r.counts[value] = 0
            met += 1
    return _counts_hold(r, rule, n, distinct)


@kernel
def _counts_hold(r: Rules, rule: int, n: int, distinct: int) -> bool:
    """Judge the first ``distinct`` counts in ``tops``, which add up to n."""
    kind, limit = r.kinds[rule], r.limits[rule, 0]
    if kind == DISTINCT:
        return distinct >= limit
    tops = r.tops[:distinct]
    if kind == SHARE:
        return tops.max() <= limit * n + TIE
    if kind == ENTROPY:
        entropy = np.log(n)
        for count in tops:
            entropy -= count * np.log(count) / n
        return entropy >= limit - TIE
    l = int(r.limits[rule, 1])
    tops.sort()
    return l <= 1 or tops[distinct - 1] < limit * tops[: max(distinct - l + 1, 0)].sum()


@kernel
def rows_hold(r: Rules, rows: NDArray[np.int32], n: int) -> bool:
    """Whether the first ``n`` rows, taken together, keep every rule; O(n) a rule."""
    for rule in range(r.kinds.shape[0]):
        if not _rule_holds(r, rule, rows, n):
            return False
    return True


@kernel
def _only_distinct(r: Rules) -> bool:
    for kind in r.kinds:
        if kind != DISTINCT:
            return False
    return True


@kernel
def cluster_holds(r: Rules, s: Clusters, c: int, out: int, into: int) -> bool:
    """Whether a cluster that keeps the rules does without row ``out`` and with row ``into``.

    NONE stands for no row. O(size); O(1) where one more row does no harm.
    """
    if r.kinds.shape[0] == 0 or (out == NONE and into != NONE and _only_distinct(r)):
        return True
    n = 0
    row = s.head[c]
    while row != NONE:
        if row != out:
            r.members[n] = row
            n += 1
        row = s.following[row]
    if into != NONE:
        r.members[n] = into
        n += 1
    return rows_hold(r, r.members, n)


@kernel
def labels_hold(r: Rules, label: NDArray[np.int32], n_clusters: int) -> bool:
    """Whether every cluster keeps every rule; O(n) a rule."""
    order = np.argsort(label, kind="mergesort").astype(np.int32)
    start = 0
    for c in range(n_clusters):
        stop = start
        while stop < label.shape[0] and label[order[stop]] == c:
            stop += 1
        if not rows_hold(r, order[start:stop], stop - start):
            return False
        start = stop
    return True
