"""Check the diversity of rows by counts of their sensitive values, kept as rows come and go.

Counts are in slots: one for each cluster of a search, and the last for rows that are checked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dbanon.kernels.compilation import ZERO, kernel, maker, step
from dbanon.kernels.layout import BETWEEN, DISTINCT, ENTROPY, EQUAL, SHARE, TREE

if TYPE_CHECKING:
    from dbanon.kernels.layout import Floats, Int32s, Int64s


TIE = 1e-9
SCRATCH: Any = np.int64(-1)
# More counts than these would not fit into a processor's cache, nor several times into memory.
MOST_COUNTS = 1 << 22


class Rules(NamedTuple):
    """Rules of every cluster, and counts of sensitive values.

    kinds, columns: (r,) int64, rule and sensitive column; limits: (r, w) float64 (l of DISTINCT;
    greatest share of SHARE; least entropy of ENTROPY; c and l of RECURSIVE, unlimited for l = 1);
    sensitive: (n, s) int32; counts: (r, slots, values) int32, rows of each value; sums: (r, slots),
    number of values of DISTINCT, sum of n ln n of ENTROPY; logs: n ln n of each number of rows,
    empty without ENTROPY; members, tops: work memory.

    Rules from BETWEEN compare with a distribution over m values. Their numbers start with a limit,
    m, and the m shares; then follow the greatest and the least share of each value (BETWEEN);
    nothing (EQUAL); the cumulative shares (ORDERED: limit of the sum of differences); or the place
    of each value among the leaves, the number of nodes, and for each node the weight of the edge
    above, its share, and its first and last place (TREE).
    """

    kinds: Int64s
    columns: Int64s
    limits: Floats
    sensitive: Int32s
    counts: Int32s
    sums: Floats
    logs: Floats
    members: Int64s
    tops: Int64s


@maker
def make_rules_of_slots(
    kinds: Int64s, columns: Int64s, limits: Floats, sensitive: Int32s, slots: int
) -> Rules:
    """Return the rules with counts of so many clusters, or of none if these are too many."""
    n, n_rules, n_values = sensitive.shape[0], kinds.shape[0], ZERO + 1
    for row in range(n):
        for j in range(sensitive.shape[1]):
            n_values = max(n_values, sensitive[row, j] + 1)
    if n_rules * slots * n_values > MOST_COUNTS:
        slots = ZERO
    n_logs = ZERO
    for kind in kinds:
        if kind == ENTROPY:
            n_logs = n + 1
    logs = np.empty(n_logs)
    for i in range(n_logs):
        logs[i] = i * np.log(max(i, 1))
    counts = np.zeros((n_rules, slots + 1, n_values), np.int32)
    sums = np.zeros((n_rules, slots + 1))
    tops = np.empty(n_values + limits.shape[1] + 1, np.int64)
    members = np.empty(n + 1, np.int64)
    return Rules(kinds, columns, limits, sensitive, counts, sums, logs, members, tops)


@kernel
def make_rules(kinds: Int64s, columns: Int64s, limits: Floats, sensitive: Int32s) -> Rules:
    """Return the rules with counts of some rows at a time."""
    return make_rules_of_slots(kinds, columns, limits, sensitive, ZERO)


@step
def count(r: Rules, rule: int, slot: int, value: int, times: int) -> None:
    """Add a value so many times to the counts of a slot; O(1)."""
    before = r.counts[rule, slot, value]
    after = before + times
    r.counts[rule, slot, value] = after
    if r.kinds[rule] == DISTINCT:
        r.sums[rule, slot] += (after > 0) - (before > 0)
    elif r.kinds[rule] == ENTROPY:
        r.sums[rule, slot] += r.logs[after] - r.logs[before]


@step
def put(r: Rules, slot: int, row: int, times: int) -> None:
    """Add a row to the counts of a slot, or remove it (-1); O(1) a rule."""
    for rule in range(r.kinds.shape[0]):
        count(r, rule, slot, r.sensitive[row, r.columns[rule]], times)


@step
def forget(r: Rules, slot: int) -> None:
    """Empty a slot; O(values) a rule."""
    for rule in range(r.kinds.shape[0]):
        forget_rule(r, rule, slot)


@step
def forget_rule(r: Rules, rule: int, slot: int) -> None:
    """Empty a slot for one rule."""
    for value in range(r.counts.shape[2]):
        r.counts[rule, slot, value] = 0
    r.sums[rule, slot] = 0.0


@step
def forget_rows(r: Rules, rows: Int64s, n: int) -> None:
    """Empty the last slot, which has the first ``n`` rows; O(n) a rule."""
    for rule in range(r.kinds.shape[0]):
        column = r.columns[rule]
        for i in range(n):
            r.counts[rule, SCRATCH, r.sensitive[rows[i], column]] = 0
        r.sums[rule, SCRATCH] = 0.0


@step
def slot_holds(r: Rules, slot: int, n: int) -> bool:
    """Return True if the n rows of a slot meet every rule; O(values) a rule, or less."""
    for rule in range(r.kinds.shape[0]):
        if not rule_holds(r, rule, slot, n):
            return False
    return True


@step
def rule_holds(r: Rules, rule: int, slot: int, n: int) -> bool:
    """Return True if the n rows of a slot meet a rule."""
    kind, limit = r.kinds[rule], r.limits[rule, 0]
    if kind == DISTINCT:
        return r.sums[rule, slot] >= limit
    if kind == ENTROPY:
        return r.logs[n] - r.sums[rule, slot] >= n * (limit - TIE)
    counts = r.counts[rule, slot]
    if kind == SHARE:
        greatest = ZERO
        for value in range(counts.shape[0]):
            greatest = max(greatest, counts[value])
        return greatest <= limit * n + TIE
    if kind >= BETWEEN:
        return _is_near(kind, r.limits[rule], counts, r.tops, n)
    return _is_recursive(r, rule, counts, n)


@step
def _is_recursive(r: Rules, rule: int, counts: Int32s, n: int) -> bool:
    limit, l, met = r.limits[rule, 0], int(r.limits[rule, 1]), ZERO
    for value in range(counts.shape[0]):
        if counts[value] > 0:
            r.tops[met] = counts[value]
            met += 1
    tops = r.tops[:met]
    greatest, others = _put_greatest_first(tops, ZERO), n
    for i in range(min(l - 1, met)):
        others -= _put_greatest_first(tops, i)
    return l <= 1 or greatest < limit * others


@step
def _put_greatest_first(counts: Int64s, start: int) -> int:
    """Swap the greatest count from ``start`` with the one there; return it."""
    at = start
    for i in range(start + 1, counts.shape[0]):
        if counts[i] > counts[at]:
            at = i
    counts[start], counts[at] = counts[at], counts[start]
    return counts[start]


@step
def _is_near(kind: int, numbers: Floats, counts: Int32s, sums: Int64s, n: int) -> bool:
    """Check counts of all values, n in all, by their distance from a distribution; O(values)."""
    m = min(int(numbers[1]), counts.shape[0])
    more = 2 + int(numbers[1])
    if kind == TREE:
        return _is_near_in_tree(numbers, counts, sums, n)
    if kind == BETWEEN:
        for value in range(m):
            share = counts[value] / n
            if share > numbers[more + value] or share < numbers[more + int(numbers[1]) + value]:
                return False
        return True
    moved, carried, part = 0.0, ZERO, 1.0 / n
    if kind == EQUAL:
        for value in range(m):
            moved += max(counts[value] * part - numbers[2 + value], 0.0)
    else:
        for value in range(m):
            carried += counts[value]
            moved += abs(carried * part - numbers[more + value])
    return moved <= numbers[0] + TIE


@step
def _is_near_in_tree(numbers: Floats, counts: Int32s, sums: Int64s, n: int) -> bool:
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
    """Return True if a row adds a value that the last slot lacks, or that is too rare there."""
    value = r.sensitive[row, r.columns[rule]]
    found = r.counts[rule, SCRATCH, value]
    if r.kinds[rule] < BETWEEN:
        return found == 0
    return found + 0.5 <= r.limits[rule, 2 + value] * (size + 1)


@kernel
def rows_hold(r: Rules, rows: Int64s) -> bool:
    """Return True if rows together meet every rule; O(n) a rule."""
    return hold(r, rows, rows.shape[0])


@step
def hold(r: Rules, rows: Int64s, n: int) -> bool:
    """Return True if the first ``n`` rows together meet every rule; O(n + values) a rule."""
    for i in range(n):
        put(r, SCRATCH, rows[i], 1)
    held = slot_holds(r, SCRATCH, n)
    forget_rows(r, rows, n)
    return held


@kernel
def labels_hold(r: Rules, label: Int32s, n_clusters: int) -> bool:
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
