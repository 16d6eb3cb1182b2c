"""Cut rows in two so that sensitive values keep their shares on both sides."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dbanon.kernels.auto.clusters import clear, cost_of
from dbanon.kernels.auto.diversity import Rules, _counts_hold, _is_near, make_rules
from dbanon.kernels.auto.pools import widen_pair
from dbanon.kernels.compilation import kernel
from dbanon.kernels.layout import BETWEEN

if TYPE_CHECKING:
    from numpy.typing import NDArray


PLACES = 9  # cuts of a column, at most
MANY, FEW = 2_000, 4  # of more rows, each column is cut at fewer places
STEPS = 8  # of the rows that a pure side gives up
GAIN = 1e-9


class Cutter(NamedTuple):
    """Rows, the requirement of their groups, and reusable work memory.

    key: (n,) combination of sensitive values of each row, values: (m, s) of each, share: (m,) among
    all rows; order, best: (n,) rows in a column's order, and in the parts of the best cut; total,
    before, pure, kept, rest, quota: (m,) rows by key; ratio: (m,); ends: (PLACES,); box: (2, d, 4)
    bounds of the two parts, or sets of values.
    """

    codes: NDArray[np.int32]
    flat: NDArray[np.float64]
    layout: NDArray[np.int64]
    rules: Rules
    k: int
    key: NDArray[np.int32]
    values: NDArray[np.int32]
    share: NDArray[np.float64]
    order: NDArray[np.int32]
    best: NDArray[np.int32]
    total: NDArray[np.int64]
    before: NDArray[np.int64]
    pure: NDArray[np.int64]
    kept: NDArray[np.int64]
    rest: NDArray[np.int64]
    quota: NDArray[np.int64]
    ratio: NDArray[np.float64]
    ends: NDArray[np.int64]
    box: NDArray[np.int32]


@kernel
def _make_cutter(
    codes: NDArray[np.int32],
    sensitive: NDArray[np.int32],
    flat: NDArray[np.float64],
    layout: NDArray[np.int64],
    rules: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]],
    k: int,
    key: NDArray[np.int32],
    share: NDArray[np.float64],
) -> Cutter:
    n, m, d = codes.shape[0], share.shape[0], codes.shape[1]
    values = np.zeros((m, sensitive.shape[1]), np.int32)
    for row in range(n):
        values[key[row]] = sensitive[row]
    r = make_rules(rules[0], rules[1], rules[2], sensitive)
    rows, counts = np.empty((2, n), np.int32), np.zeros((6, m), np.int64)
    box = np.empty((2, d, 4), np.int32)
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
        counts[0],
        counts[1],
        counts[2],
        counts[3],
        counts[4],
        counts[5],
        ratio,
        ends,
        box,
    )


@kernel
def _hold(c: Cutter, counts: NDArray[np.int64]) -> bool:
    """Return True if rows counted by key are enough and meet every rule; O(m) a rule."""
    n, r = counts.sum(), c.rules
    if n < c.k:
        return False
    for rule in range(r.kinds.shape[0]):
        column, distinct = r.columns[rule], 0
        for key in range(counts.shape[0]):
            r.counts[c.values[key, column]] += counts[key]
        if r.kinds[rule] >= BETWEEN:
            holds = _is_near(r.kinds[rule], r.limits[rule], r.counts, r.tops, n)
        else:
            for count in r.counts:
                if count > 0:
                    r.tops[distinct] = count
                    distinct += 1
            holds = _counts_hold(r, rule, n, distinct)
        r.counts[:] = 0
        if not holds:
            return False
    return True


@kernel
def _both_hold(c: Cutter) -> bool:
    """Return True if the rows kept on one side and the others both meet every rule."""
    if not _hold(c, c.kept):
        return False
    for key in range(c.total.shape[0]):
        c.rest[key] = c.total[key] - c.kept[key]
    return _hold(c, c.rest)


@kernel
def _keep(c: Cutter) -> bool:
    """Keep as many rows of a pure side as the rules of both sides allow; False if none."""
    if c.pure.sum() < c.k:
        return False
    for key in range(c.pure.shape[0]):
        c.ratio[key] = c.pure[key] / c.share[key]
    tops = np.sort(c.ratio)
    if _keep_below(c, tops, STEPS):
        return True
    if not _keep_below(c, tops, 0):
        return False
    fine, high = 0, STEPS
    while high - fine > 1:
        step = (fine + high) // 2
        if _keep_below(c, tops, step):
            fine = step
        else:
            high = step
    return _keep_below(c, tops, fine)


@kernel
def _keep_below(c: Cutter, tops: NDArray[np.float64], step: int) -> bool:
    """Keep rows of each value up to a quantile of its relative frequency."""
    m = tops.shape[0]
    top = tops[step * (m - 1) // STEPS]
    for key in range(m):
        c.kept[key] = min(c.pure[key], int(np.ceil(c.share[key] * top - GAIN)))
    return _both_hold(c)


@kernel
def _deal(c: Cutter) -> bool:
    """Keep half of the rows of each value, rounded alternately; False if none works."""
    dealt, seen = 0, 0
    for key in range(c.total.shape[0]):
        seen += c.total[key]
        c.kept[key] = (seen + 1) // 2 - dealt
        dealt += c.kept[key]
    return _both_hold(c)


@kernel
def _tried(c: Cutter, n: int, end: int, low: bool, best: float) -> float:
    """Price a cut that keeps rows of one side by their quota, outermost first; record the best."""
    c.quota[:] = c.kept
    clear(c.layout, c.box, 0)
    clear(c.layout, c.box, 1)
    n_kept = 0
    for i in range(n):
        row = c.order[i if low else n - 1 - i]
        inside = i < (end if low else n - end)
        kept = inside and c.quota[c.key[row]] > 0
        c.quota[c.key[row]] -= kept
        n_kept += kept
        widen_pair(c.layout, c.box, 0 if kept else 1, c.codes, row)
    cost = n_kept * cost_of(c.flat, c.layout, c.box, 0)
    cost += (n - n_kept) * cost_of(c.flat, c.layout, c.box, 1)
    if cost >= best - GAIN:
        return best
    c.quota[:] = c.kept
    first, second = 0, n_kept
    for i in range(n):
        row = c.order[i if low else n - 1 - i]
        if i < (end if low else n - end) and c.quota[c.key[row]] > 0:
            c.quota[c.key[row]] -= 1
            c.best[first] = row
            first += 1
        else:
            c.best[second] = row
            second += 1
    c.ends[PLACES - 1] = n_kept
    return cost


@kernel
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


@kernel
def _cut_column(c: Cutter, n: int, j: int, best: float) -> float:
    """Try all cuts of the rows in the order of a column; return the least cost."""
    n_kept = c.ends[PLACES - 1]
    found, at = _find_ends(c, n, j), 0
    c.before[:] = 0
    c.ends[PLACES - 1] = n_kept
    for place in range(found):
        while at < c.ends[place]:
            c.before[c.key[c.order[at]]] += 1
            at += 1
        c.pure[:] = c.before
        if _keep(c):
            best = _tried(c, n, at, True, best)
        for key in range(c.total.shape[0]):
            c.pure[key] = c.total[key] - c.before[key]
        if _keep(c):
            best = _tried(c, n, at, False, best)
    if _deal(c):
        best = _tried(c, n, n, True, best)
    return best


@kernel
def _cut(c: Cutter, rows: NDArray[np.int32]) -> int:
    """Move rows into the two parts of the best cut; return the first's size, 0 for no cut."""
    n = rows.shape[0]
    if n < 2 * c.k:
        return 0
    c.total[:] = 0
    for row in rows:
        c.total[c.key[row]] += 1
    best = np.inf
    for j in range(c.layout.shape[0]):
        codes = c.codes[:, j][rows]
        if codes.min() < codes.max():
            c.order[:n] = rows[np.argsort(codes, kind="mergesort")]
            best = _cut_column(c, n, j, best)
    if best == np.inf:
        return 0
    rows[:] = c.best[:n]
    return c.ends[PLACES - 1]


@kernel
def cut_by_shares(
    codes: NDArray[np.int32],
    sensitive: NDArray[np.int32],
    flat: NDArray[np.float64],
    layout: NDArray[np.int64],
    rules: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]],
    key: NDArray[np.int32],
    share: NDArray[np.float64],
    limits: tuple[int, int],
) -> tuple[NDArray[np.int32], float]:
    """Cut rows in two repeatedly; return the group of each, and the total of rows * cost.

    key: (n,) combination of sensitive values of each row; share: (m,) of each in the whole table;
    limits: least rows of a group, and greatest size of a part that stays uncut (0: none). Each cut
    is the cheapest of two kinds: one column at a few places, rows moving to the other side until
    both meet the rules; or half of the rows of every value, in the order of a column. All rows as
    one group meet the rules. O(n d^2 log n).
    """
    n = codes.shape[0]
    c = _make_cutter(codes, sensitive, flat, layout, rules, limits[0], key, share)
    rows, label = np.arange(n).astype(np.int32), np.empty(n, np.int32)
    stack, found, total = [(0, n)], 0, 0.0
    while len(stack) > 0:
        start, stop = stack.pop()
        middle = start
        if stop - start > limits[1]:
            middle += _cut(c, rows[start:stop])
        if middle > start:
            stack.append((middle, stop))
            stack.append((start, middle))
            continue
        clear(c.layout, c.box, 0)
        for row in rows[start:stop]:
            label[row] = found
            widen_pair(c.layout, c.box, 0, c.codes, row)
        total += (stop - start) * cost_of(c.flat, c.layout, c.box, 0)
        found += 1
    return label, total
