"""Cut rows in two so that sensitive values keep their shares on both sides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dbanon.kernels.auto.clusters import clear, cost_of, widen_pair
from dbanon.kernels.auto.diversity import (
    SCRATCH,
    Rules,
    count,
    forget_rule,
    make_rules_of_slots,
    rule_holds,
)
from dbanon.kernels.compilation import ZERO, kernel, maker, step

if TYPE_CHECKING:
    from dbanon.kernels.layout import Floats, Int32s, Int64s


PLACES = 5  # cuts of a column, at most
MANY, FEW = 2_000, 4  # of more rows, each column is cut at fewer places
STEPS = 8  # of the rows that a pure side gives up
GAIN = 1e-9
FIRST: Any = np.bool_(True)
LAST: Any = np.bool_(False)


class Cutter(NamedTuple):
    """Rows, the requirement of their groups, and reusable work memory.

    key: (n,) combination of sensitive values of each row, values: (m, s) of each, share: (m,) among
    all rows; order, aside, best: (n,) rows in a column's order, for any use, and in the parts of
    the best cut; total, before, pure, kept, rest, quota: (m,) rows by key; ratio: (m,);
    ends: (PLACES,); box: (2, d, 4) bounds of the two parts, or sets of values.
    """

    codes: Int32s
    flat: Floats
    layout: Int64s
    rules: Rules
    k: int
    key: Int32s
    values: Int32s
    share: Floats
    order: Int32s
    aside: Int32s
    best: Int32s
    total: Int64s
    before: Int64s
    pure: Int64s
    kept: Int64s
    rest: Int64s
    quota: Int64s
    ratio: Floats
    ends: Int64s
    box: Int32s


@maker
def _make_cutter(
    codes: Int32s,
    sensitive: Int32s,
    flat: Floats,
    layout: Int64s,
    rules: tuple[Int64s, Int64s, Floats],
    k: int,
    key: Int32s,
    share: Floats,
) -> Cutter:
    n, m, d = codes.shape[0], share.shape[0], codes.shape[1]
    values = np.zeros((m, sensitive.shape[1]), np.int32)
    for row in range(n):
        for column in range(sensitive.shape[1]):
            values[key[row], column] = sensitive[row, column]
    r = make_rules_of_slots(rules[0], rules[1], rules[2], sensitive, ZERO)
    rows, counts = np.empty((3, n), np.int32), np.zeros((6, m), np.int64)
    ends, ratio = np.empty(PLACES, np.int64), np.empty(m)
    return Cutter(
        codes,
        flat,
        layout,
        r,
        k,
        key,
        values,
        share,
        rows[0],
        rows[1],
        rows[2],
        counts[0],
        counts[1],
        counts[2],
        counts[3],
        counts[4],
        counts[5],
        ratio,
        ends,
        np.empty((2, d, 4), np.int32),
    )


@step
def _sum(counts: Int64s) -> int:
    total = ZERO
    for number in counts:
        total += number
    return total


@step
def _hold(c: Cutter, counts: Int64s) -> bool:
    """Return True if rows counted by key are enough and meet every rule; O(m) a rule."""
    n, r = _sum(counts), c.rules
    if n < c.k:
        return False
    for rule in range(r.kinds.shape[0]):
        column = r.columns[rule]
        for key in range(counts.shape[0]):
            count(r, rule, SCRATCH, c.values[key, column], counts[key])
        holds = rule_holds(r, rule, SCRATCH, n)
        forget_rule(r, rule, SCRATCH)
        if not holds:
            return False
    return True


@step
def _both_hold(c: Cutter) -> bool:
    """Return True if the rows kept on one side and the others both meet every rule."""
    if not _hold(c, c.kept):
        return False
    for key in range(c.total.shape[0]):
        c.rest[key] = c.total[key] - c.kept[key]
    return _hold(c, c.rest)


@step
def _keep(c: Cutter) -> bool:
    """Keep as many rows of a pure side as the rules of both sides allow; False if none."""
    if _sum(c.pure) < c.k:
        return False
    for key in range(c.pure.shape[0]):
        c.ratio[key] = c.pure[key] / c.share[key]
    _sort(c.ratio)
    if _keep_below(c, ZERO + STEPS):
        return True
    if not _keep_below(c, ZERO):
        return False
    fine, high = ZERO, ZERO + STEPS
    while high - fine > 1:
        step = (fine + high) // 2
        if _keep_below(c, step):
            fine = step
        else:
            high = step
    return _keep_below(c, fine)


@step
def _sort(values: Floats) -> None:
    """Sort numbers by Shell's method: numba's own takes longer to compile than to run."""
    gap = values.shape[0] // 2
    while gap > 0:
        for i in range(gap, values.shape[0]):
            value, at = values[i], i
            while at >= gap and values[at - gap] > value:
                values[at] = values[at - gap]
                at -= gap
            values[at] = value
        gap //= 2


@step
def _keep_below(c: Cutter, step: int) -> bool:
    """Keep rows of each value up to a quantile of the sorted relative frequencies."""
    m = c.ratio.shape[0]
    top = c.ratio[step * (m - 1) // STEPS]
    for key in range(m):
        c.kept[key] = min(c.pure[key], int(np.ceil(c.share[key] * top - GAIN)))
    return _both_hold(c)


@step
def _deal(c: Cutter) -> bool:
    """Keep half of the rows of each value, rounded alternately; False if none works."""
    dealt, seen = 0, 0
    for key in range(c.total.shape[0]):
        seen += c.total[key]
        c.kept[key] = (seen + 1) // 2 - dealt
        dealt += c.kept[key]
    return _both_hold(c)


@step
def _copy(numbers: Int64s, to: Int64s) -> None:
    for key in range(numbers.shape[0]):
        to[key] = numbers[key]


@step
def _tried(c: Cutter, n: int, end: int, low: bool, best: float) -> float:
    """Price a cut that keeps rows of one side by their quota, outermost first; record the best."""
    _copy(c.kept, c.quota)
    clear(c.layout, c.box, ZERO)
    clear(c.layout, c.box, ZERO + 1)
    n_kept, cost, first = _sum(c.kept), 0.0, ZERO
    second = n_kept
    for i in range(n):
        row = c.order[i if low else n - 1 - i]
        inside = i < (end if low else n - end)
        kept = inside and c.quota[c.key[row]] > 0
        c.quota[c.key[row]] -= kept
        c.aside[first if kept else second] = row
        first += kept
        second += not kept
        if widen_pair(c.layout, c.box, ZERO if kept else ZERO + 1, c.codes, ZERO + row) != 0:
            cost = 0.0
            if first > 0:
                cost += n_kept * cost_of(c.flat, c.layout, c.box, ZERO)
            if second > n_kept:
                cost += (n - n_kept) * cost_of(c.flat, c.layout, c.box, ZERO + 1)
            if cost >= best - GAIN:
                return best
    for i in range(n):
        c.best[i] = c.aside[i]
    c.ends[PLACES - 1] = n_kept
    return cost


@step
def _find_ends(c: Cutter, n: int, j: int) -> int:
    """Find code changes of the column near the quantiles of the places."""
    found, at, places = 0, 1, PLACES if n <= MANY else FEW
    for place in range(1, places):
        at = max(at, n * place // places)
        while at < n and c.codes[c.order[at], j] == c.codes[c.order[at - 1], j]:
            at += 1
        if at < n and (found == 0 or c.ends[found - 1] != at):
            c.ends[found] = at
            found += 1
    return found


@step
def _cut_column(c: Cutter, n: int, j: int, best: float) -> float:
    """Try all cuts of the rows in the order of a column; return the least cost."""
    n_kept = c.ends[PLACES - 1]
    found, at = _find_ends(c, n, j), 0
    for key in range(c.before.shape[0]):
        c.before[key] = 0
    c.ends[PLACES - 1] = n_kept
    for place in range(found):
        while at < c.ends[place]:
            c.before[c.key[c.order[at]]] += 1
            at += 1
        _copy(c.before, c.pure)
        if _keep(c):
            best = _tried(c, n, at, FIRST, best)
        for key in range(c.total.shape[0]):
            c.pure[key] = c.total[key] - c.before[key]
        if _keep(c):
            best = _tried(c, n, at, LAST, best)
    if _deal(c):
        best = _tried(c, n, n, FIRST, best)
    return best


@step
def _cut(c: Cutter, rows: Int32s) -> int:
    """Move rows into the two parts of the best cut; return the first's size, 0 for no cut."""
    n = rows.shape[0]
    if n < 2 * c.k:
        return 0
    for key in range(c.total.shape[0]):
        c.total[key] = 0
    for row in rows:
        c.total[c.key[row]] += 1
    if not _deal(c):  # then no other parts are likely to
        return 0
    best = np.inf
    for j in range(c.layout.shape[0]):
        if _put_in_order(c, rows, j):
            best = _cut_column(c, n, j, best)
    if best == np.inf:
        return 0
    for i in range(n):
        rows[i] = c.best[i]
    return c.ends[PLACES - 1]


@step
def _put_in_order(c: Cutter, rows: Int32s, j: int) -> bool:
    """Fill ``order`` with rows by their codes in a column, stably; False if all are equal."""
    n, codes, order, aside = rows.shape[0], c.codes, c.order, c.aside
    differs, run = False, ZERO + 1
    for i in range(n):
        order[i] = rows[i]
        differs |= codes[rows[i], j] != codes[rows[0], j]
    while differs and run < n:
        for start in range(0, n, 2 * run):
            middle, stop = min(start + run, n), min(start + 2 * run, n)
            low, high = start, middle
            for at in range(start, stop):
                if low < middle and (high == stop or codes[order[low], j] <= codes[order[high], j]):
                    aside[at] = order[low]
                    low += 1
                else:
                    aside[at] = order[high]
                    high += 1
        for i in range(n):
            order[i] = aside[i]
        run *= 2
    return differs


@kernel
def cut_by_shares(
    codes: Int32s,
    sensitive: Int32s,
    flat: Floats,
    layout: Int64s,
    rules: tuple[Int64s, Int64s, Floats],
    key: Int32s,
    share: Floats,
    limits: tuple[int, int],
) -> tuple[Int32s, float]:
    """Cut rows in two repeatedly; return the group of each, and the total of rows * cost.

    key: (n,) combination of sensitive values of each row; share: (m,) of each in the whole table;
    limits: least rows of a group, and greatest size of a part that stays uncut (0: none). Each cut
    is the cheapest of two kinds: one column at a few places, rows moving to the other side until
    both meet the rules; or half of the rows of every value, in the order of a column. All rows as
    one group meet the rules. O(n d^2 log n).
    """
    n = codes.shape[0]
    c = _make_cutter(codes, sensitive, flat, layout, rules, limits[0], key, share)
    rows, label = np.empty(n, np.int32), np.empty(n, np.int32)
    for row in range(n):
        rows[row] = row
    ends = np.empty(n // limits[0] + 1, np.int64)  # at its end wait the parts that may yet be cut
    top, start, waiting, found, total = ends.shape[0], 0, 1, 0, 0.0
    ends[top - 1] = n
    while waiting > 0:
        stop = ends[top - waiting]
        n_low = _cut(c, rows[start:stop]) if stop - start > limits[1] else ZERO
        if n_low > 0:
            waiting += 1
            ends[top - waiting] = start + n_low
            continue
        clear(c.layout, c.box, ZERO)
        for row in rows[start:stop]:
            label[row] = found
            widen_pair(c.layout, c.box, ZERO, c.codes, ZERO + row)
        total += (stop - start) * cost_of(c.flat, c.layout, c.box, ZERO)
        found += 1
        start = stop
        waiting -= 1
    return label, total
