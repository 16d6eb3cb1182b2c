"""Values of one column of a box in at most SLOTS adjacent slots, the candidates of cuts.

Each function fills ``w.slot`` (slot of each row), ``w.counts``, ``w.lows`` and ``w.highs`` (rows,
least and greatest code of each slot), and returns the number of slots. NULL has its own slot, the
last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dbanon.kernels.boxes.costs import box_cost
from dbanon.kernels.compile import kernel
from dbanon.kernels.layout import SIZE

if TYPE_CHECKING:
    from dbanon.kernels.arrays import Floats, Int32s, Int64s

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
    for step in range(steps + 1):
        w.counts[step] = 0
    for row in range(segment.shape[0]):
        code = segment[row, column]
        step = steps
        if code != w.layout[column, SIZE]:
            step = (min(max(code, base), top) - base) >> shift
        if w.counts[step] == 0:
            w.lows[step], w.highs[step] = code, code
        w.counts[step] += 1
        w.lows[step] = min(w.lows[step], code)
        w.highs[step] = max(w.highs[step], code)
        w.slot[row] = step
    n_slots = 0
    for step in range(steps + 1):
        w.keys[step] = n_slots
        if w.counts[step] > 0:
            w.counts[n_slots] = w.counts[step]
            w.lows[n_slots], w.highs[n_slots] = w.lows[step], w.highs[step]
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
