"""Recursive cutting of a table into boxes (LeFevre et al., ICDE 2006)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dbanon.kernels.boxes.costs import box_cost
from dbanon.kernels.compilation import kernel, step
from dbanon.kernels.layout import SIZE, STRIDE, Floats, Int32s, Int64s

SLOTS = 65


class Work(NamedTuple):
    """The costs of boxes, and reusable work memory.

    open: (d,) columns with more than one value; lo, hi, top: (d,) least and greatest code of the
    box, and greatest but NULL; cost: (d,); slot, keys: (n,); counts, lows, highs: (SLOTS,) rows,
    least and greatest code; box_lo, box_hi: (SLOTS, d) boxes; below, above: (SLOTS,) costs of the
    boxes up to and from each slot; arrivals, departures: (SLOTS,) sensitive values met first and
    last; first, last, seen: by sensitive value.
    """

    flat: Floats
    layout: Int64s
    open: Int32s
    lo: Int32s
    hi: Int32s
    top: Int32s
    cost: Floats
    slot: Int32s
    keys: Int32s
    pairs: Int64s
    counts: Int32s
    lows: Int32s
    highs: Int32s
    box_lo: Int32s
    box_hi: Int32s
    below: Floats
    above: Floats
    arrivals: Int32s
    departures: Int32s
    first: Int32s
    last: Int32s
    seen: Int32s


@kernel
def grid_slots(segment: Int32s, column: int, base: int, top: int, w: Work) -> int:
    """Fill the slots by equal steps over base..top, or one value a slot; O(rows)."""
    shift = 0
    while (top - base) >> shift >= SLOTS - 1:
        shift += 1
    steps = ((top - base) >> shift) + 1
    for place in range(steps + 1):
        w.counts[place] = 0
    for row in range(segment.shape[0]):
        code = segment[row, column]
        place = steps
        if code != w.layout[column, SIZE]:
            place = (min(max(code, base), top) - base) >> shift
        if w.counts[place] == 0:
            w.lows[place], w.highs[place] = code, code
        w.counts[place] += 1
        w.lows[place] = min(w.lows[place], code)
        w.highs[place] = max(w.highs[place], code)
        w.slot[row] = place
    n_slots = 0
    for place in range(steps + 1):
        w.keys[place] = n_slots
        if w.counts[place] > 0:
            w.counts[n_slots] = w.counts[place]
            w.lows[n_slots], w.highs[n_slots] = w.lows[place], w.highs[place]
            n_slots += 1
    for row in range(segment.shape[0]):
        w.slot[row] = w.keys[w.slot[row]]
    return n_slots


@kernel
def sorted_codes(segment: Int32s, column: int, w: Work) -> Int32s:
    """Return the sorted codes of the rows, in the memory of ``w.keys``; O(rows log rows)."""
    n_rows = segment.shape[0]
    for row in range(n_rows):
        w.keys[row] = segment[row, column]
    codes = w.keys[:n_rows]
    codes.sort()
    return codes


@kernel
def _fill_from_highs(segment: Int32s, column: int, n_slots: int, w: Work) -> int:
    for row in range(segment.shape[0]):
        w.slot[row] = np.searchsorted(w.highs[:n_slots], segment[row, column])
    return n_slots


@kernel
def value_slots(segment: Int32s, column: int, w: Work) -> int:
    """Fill one slot for each value of fewer than SLOTS rows, by insertion sort."""
    n_rows = segment.shape[0]
    for row in range(n_rows):
        key = np.int64(segment[row, column]) * SLOTS + row
        i = row
        while i > 0 and w.pairs[i - 1] > key:
            w.pairs[i] = w.pairs[i - 1]
            i -= 1
        w.pairs[i] = key
    n_slots = 0
    for i in range(n_rows):
        code, row = w.pairs[i] // SLOTS, w.pairs[i] % SLOTS
        if i == 0 or code != w.lows[n_slots - 1]:
            w.lows[n_slots], w.highs[n_slots], w.counts[n_slots] = code, code, 0
            n_slots += 1
        w.counts[n_slots - 1] += 1
        w.slot[row] = n_slots - 1
    return n_slots


@kernel
def child_slots(segment: Int32s, column: int, w: Work) -> int:
    """Fill one slot for each nonempty child of the common ancestor; O(rows log rows).

    If there are too many, neighbours share a slot up to an equal share of the rows.
    """
    codes = sorted_codes(segment, column, w)
    n_rows = codes.shape[0]
    null = w.layout[column, SIZE]
    whole = box_cost(w.flat, w.layout, column, w.lo[column], w.top[column])
    n_children = 1
    for row in range(1, n_rows):
        if codes[row] != codes[row - 1]:
            n_children += box_cost(w.flat, w.layout, column, codes[row - 1], codes[row]) >= whole
    share = 1 if n_children < SLOTS else 2 * n_rows // (SLOTS - 3) + 1
    n_slots, begin = 0, 0
    for row in range(1, n_rows + 1):
        if row < n_rows:
            between = box_cost(w.flat, w.layout, column, codes[row - 1], codes[row])
            if between < whole or codes[row] == codes[row - 1]:  # of weight 0, all costs are 0
                continue
        fresh = n_slots == 0 or w.counts[n_slots - 1] >= share or row - begin >= share
        if fresh or codes[begin] == null:
            w.lows[n_slots], w.counts[n_slots] = codes[begin], 0
            n_slots += 1
        w.highs[n_slots - 1] = codes[row - 1]
        w.counts[n_slots - 1] += row - begin
        begin = row
    return _fill_from_highs(segment, column, n_slots, w)


@kernel
def allowable_cuts(
    segment: Int32s, n_slots: int, d: int, k: int, l: int, w: Work
) -> tuple[int, int]:
    """Return the first and the last slot after which the column may be cut; none if first > last.

    Allowable cuts are contiguous, because counts grow from slot to slot. O(rows * sensitive
    columns).
    """
    n_rows = segment.shape[0]
    first, last, left = n_slots, -1, 0
    for slot in range(n_slots):
        left += w.counts[slot]
        if left >= k and first == n_slots:
            first = slot
        if n_rows - left >= k:
            last = slot
    if l <= 1:
        return first, last
    for column in range(d, segment.shape[1] - 1):
        _spread(segment, column, n_slots, w)
        met, slot = 0, -1
        while met < l and slot < n_slots - 1:
            slot += 1
            met += w.arrivals[slot]
        first = max(first, slot if met >= l else n_slots)
        met, slot = 0, n_slots
        while met < l and slot > 0:
            slot -= 1
            met += w.departures[slot]
        last = min(last, slot - 1 if met >= l else -1)
    return first, last


@kernel
def _spread(segment: Int32s, column: int, n_slots: int, w: Work) -> None:
    """Count, by slot, the sensitive values with their first and last occurrence in it."""
    for slot in range(n_slots):
        w.arrivals[slot] = w.departures[slot] = 0
    n_seen = 0
    for row in range(segment.shape[0]):
        value, slot = segment[row, column], w.slot[row]
        if w.first[value] < 0:
            w.first[value], w.last[value] = slot, slot
            w.seen[n_seen] = value
            n_seen += 1
        w.first[value] = min(w.first[value], slot)
        w.last[value] = max(w.last[value], slot)
    for i in range(n_seen):
        value = w.seen[i]
        w.arrivals[w.first[value]] += 1
        w.departures[w.last[value]] += 1
        w.first[value] = -1


TIE = 1e-9
NONE = -1


@kernel
def _allocate(n_rows: int, flat: Floats, layout: Int64s, cardinality: int) -> Work:
    d = layout.shape[0]
    return Work(
        flat,
        layout,
        np.empty(d, np.int32),
        np.empty(d, np.int32),
        np.empty(d, np.int32),
        np.empty(d, np.int32),
        np.empty(d, np.float64),
        np.empty(n_rows, np.int32),
        np.empty(max(n_rows, SLOTS), np.int32),
        np.empty(SLOTS, np.int64),
        np.empty(SLOTS, np.int32),
        np.empty(SLOTS, np.int32),
        np.empty(SLOTS, np.int32),
        np.empty((SLOTS, d), np.int32),
        np.empty((SLOTS, d), np.int32),
        np.empty(SLOTS, np.float64),
        np.empty(SLOTS, np.float64),
        np.empty(SLOTS, np.int32),
        np.empty(SLOTS, np.int32),
        np.full(cardinality, -1, np.int32),
        np.empty(cardinality, np.int32),
        np.empty(cardinality, np.int32),
    )


@kernel
def _measure(segment: Int32s, w: Work) -> int:
    """Fill the bounds and costs of the box; return the number of columns with several values."""
    n_columns = w.layout.shape[0]
    for column in range(n_columns):
        w.lo[column] = w.hi[column] = segment[0, column]
        w.top[column] = NONE
    for row in range(segment.shape[0]):
        for column in range(n_columns):
            code = segment[row, column]
            w.lo[column] = min(w.lo[column], code)
            w.hi[column] = max(w.hi[column], code)
            if code != w.layout[column, SIZE]:
                w.top[column] = max(w.top[column], code)
    n_open = 0
    for column in range(n_columns):
        w.cost[column] = box_cost(w.flat, w.layout, column, w.lo[column], w.hi[column])
        if w.lo[column] != w.hi[column]:
            w.open[n_open] = column
            n_open += 1
    return n_open


@kernel
def _find_slots(segment: Int32s, column: int, k: int, l: int, w: Work) -> tuple[int, int, int]:
    """Sort the rows into slots of the column; return their number and the first and last cut."""
    d = w.layout.shape[0]
    n_rows = segment.shape[0]
    base, top = w.lo[column], w.top[column]
    many = top - base >= SLOTS - 1
    if many and n_rows < SLOTS:
        n_slots = value_slots(segment, column, w)
    elif many and w.layout[column, STRIDE] != 0:
        n_slots = child_slots(segment, column, w)
    else:
        n_slots = grid_slots(segment, column, base, top, w)
    first, last = allowable_cuts(segment, n_slots, d, k, l, w)
    coarse = many and n_rows >= SLOTS and w.layout[column, STRIDE] == 0
    while coarse and first > last and first < n_slots and w.lows[first] <= top:
        base, top = max(base, w.lows[first]), min(top, w.highs[first])
        coarse = top - base >= SLOTS - 1
        n_slots = grid_slots(segment, column, base, top, w)
        first, last = allowable_cuts(segment, n_slots, d, k, l, w)
    return n_slots, first, last


@step
def _slot_boxes(segment: Int32s, n_slots: int, w: Work) -> None:
    """Fill the box of each slot; O(rows * columns), in all columns at once."""
    for slot in range(n_slots):
        for column in range(w.layout.shape[0]):
            w.box_lo[slot, column], w.box_hi[slot, column] = np.iinfo(np.int32).max, NONE
    for row in range(segment.shape[0]):
        codes, lo, hi = segment[row], w.box_lo[w.slot[row]], w.box_hi[w.slot[row]]
        for column in range(lo.shape[0]):
            lo[column] = min(lo[column], codes[column])
            hi[column] = max(hi[column], codes[column])


@step
def _accumulate(costs: Floats, start: int, by: int, column: int, w: Work) -> None:
    """Add the cost of a column's box from slot ``start`` to each slot."""
    cost = 0.0
    lo, hi = w.box_lo[start, column], w.box_hi[start, column]
    known = False
    slot = start
    for _ in range(costs.shape[0]):
        if not known or w.box_lo[slot, column] < lo or w.box_hi[slot, column] > hi:
            lo, hi = min(lo, w.box_lo[slot, column]), max(hi, w.box_hi[slot, column])
            cost = box_cost(w.flat, w.layout, column, lo, hi)
            known = True
        costs[slot] += cost
        slot += by


@step
def _side_costs(segment: Int32s, n_open: int, n_slots: int, w: Work) -> float:
    """Fill the costs of both sides of the cut after each slot; return the cost of the box."""
    _slot_boxes(segment, n_slots, w)
    for slot in range(n_slots):
        w.below[slot] = w.above[slot] = 0.0
    whole = 0.0
    for column in w.open[:n_open]:
        whole += w.cost[column]
        _accumulate(w.below[:n_slots], 0, 1, column, w)
        _accumulate(w.above[:n_slots], n_slots - 1, -1, column, w)
    return whole


@kernel
def _best_in_column(
    segment: Int32s, column: int, n_open: int, k: int, l: int, w: Work
) -> tuple[float, int]:
    """Return the score of the column's best cut (NULL first) and the greatest code left of it."""
    n_slots, first, last = _find_slots(segment, column, k, l, w)
    if first > last:
        return -1.0, NONE
    null = w.highs[n_slots - 1] == w.layout[column, SIZE]
    if null and first <= n_slots - 2 and last == n_slots - 2:
        first = n_slots - 2
    tree = w.layout[column, STRIDE] != 0
    whole = box_cost(w.flat, w.layout, column, w.lo[column], w.top[column])
    before = _side_costs(segment, n_open, n_slots, w)
    best, code, left = -1.0, NONE, 0
    for slot in range(last + 1):
        left += w.counts[slot]
        if slot < first:
            continue
        if tree and w.highs[slot + 1] <= w.top[column]:
            between = box_cost(w.flat, w.layout, column, w.highs[slot], w.lows[slot + 1])
            if between < whole:
                continue
        right = segment.shape[0] - left
        drop = left * (before - w.below[slot]) + right * (before - w.above[slot + 1])
        score = drop / np.sqrt(left * right)
        if score > best + TIE * abs(best):
            best, code = score, w.highs[slot]
    return best, code


@kernel
def _best_cut(segment: Int32s, n_open: int, k: int, l: int, w: Work) -> tuple[int, int]:
    """Return the column of the best cut and the greatest code left of it; ties: lowest column."""
    best, best_column, best_code = -1.0, NONE, NONE
    for i in range(n_open):
        score, code = _best_in_column(segment, w.open[i], n_open, k, l, w)
        if code != NONE and score > best + TIE * abs(best):
            best, best_column, best_code = score, w.open[i], code
    return best_column, best_code


@kernel
def _split(segment: Int32s, column: int, code: int, ties: int) -> int:
    """Move rows below the code, and ``ties`` rows at it, to the front; return their number."""
    left, right = 0, segment.shape[0]
    while left < right:
        value = segment[left, column]
        if value < code or (value == code and ties > 0):
            ties -= value == code
            left += 1
            continue
        right -= 1
        for i in range(segment.shape[1]):
            segment[left, i], segment[right, i] = segment[right, i], segment[left, i]
    return left


@kernel
def _halve(segment: Int32s, n_open: int, l: int, w: Work) -> int:
    """Halve the rows at the median of the costliest possible column; return the left size, or 0."""
    d = w.layout.shape[0]
    half = segment.shape[0] // 2
    for _ in range(n_open):
        column = w.open[np.argmax(w.cost[w.open[:n_open]])]
        if w.cost[column] <= 0.0:
            break
        w.cost[column] = 0.0
        ordered = sorted_codes(segment, column, w)
        code = ordered[half - 1]
        _split(segment, column, code, half - np.searchsorted(ordered, code))
        w.slot[:half], w.slot[half : segment.shape[0]] = 0, 1
        w.counts[0], w.counts[1] = half, segment.shape[0] - half
        first, last = allowable_cuts(segment, 2, d, half, l, w)
        if first <= last:
            return half
    return 0


@kernel
def mondrian(
    rows: Int32s, flat: Floats, layout: Int64s, k: int, l: int, cardinality: int, relaxed: bool
) -> tuple[Int32s, int]:
    """Cut the rows into groups of at least k rows with l values of every sensitive column.

    rows: (n, d + s + 1), overwritten: codes of the d columns, codes (below ``cardinality``) of the
    s sensitive columns, row number. Returns the group of each row number, (n,), and the number of
    groups, numbered from the lowest cut to the highest. O(n d^2) for each level of cuts.
    """
    group = np.empty(rows.shape[0], np.int32)
    w = _allocate(rows.shape[0], flat, layout, cardinality)
    waiting = np.empty((rows.shape[0] // k + 2, 2), np.int64)
    waiting[0, 0], waiting[0, 1] = 0, rows.shape[0]
    n_waiting, n_groups = 1, 0
    while n_waiting > 0:
        n_waiting -= 1
        start, stop = waiting[n_waiting]
        segment = rows[start:stop]
        left = 0
        if stop - start >= 2 * k:
            n_open = _measure(segment, w)
            column, code = _best_cut(segment, n_open, k, l, w)
            if column != NONE:
                left = _split(segment, column, code, stop - start)
            elif relaxed:
                left = _halve(segment, n_open, l, w)
        if left > 0:
            waiting[n_waiting, 0], waiting[n_waiting, 1] = start + left, stop
            waiting[n_waiting + 1, 0], waiting[n_waiting + 1, 1] = start, start + left
            n_waiting += 2
        else:
            for row in range(start, stop):
                group[rows[row, rows.shape[1] - 1]] = n_groups
            n_groups += 1
    return group, n_groups
