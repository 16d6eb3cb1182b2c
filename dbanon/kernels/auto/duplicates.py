"""Distinct rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dbanon.kernels.auto.diversity import Rules, hold
from dbanon.kernels.compilation import ZERO, kernel, step

if TYPE_CHECKING:
    from dbanon.kernels.layout import Bools, Int32s, Int64s


_EMPTY = -1


@step
def _hash(codes: Int32s, row: int) -> np.uint64:
    h = np.uint64(0)
    for j in range(codes.shape[1]):
        h = (h ^ np.uint64(codes[row, j])) * np.uint64(0x9E3779B97F4A7C15)
        h ^= h >> np.uint64(29)
    return h


@step
def _equal(codes: Int32s, a: int, b: int) -> bool:
    for j in range(codes.shape[1]):
        if codes[a, j] != codes[b, j]:
            return False
    return True


@kernel
def distinct_rows(codes: Int32s) -> tuple[Int32s, Int32s]:
    """Assign numbers to distinct rows (n, d) in order of appearance; O(n d).

    Returns the number of each row, (n,), and the first row of each number, (u,).
    """
    n = codes.shape[0]
    room = 1024
    table = np.full(room, _EMPTY, np.int32)
    number, first = np.empty(n, np.int32), np.empty(n, np.int32)
    found = 0
    for row in range(n):
        if 2 * found >= room:
            room *= 4
            table = np.full(room, _EMPTY, np.int32)
            for u in range(found):
                at = _hash(codes, first[u]) & np.uint64(room - 1)
                while table[at] != _EMPTY:
                    at = (at + np.uint64(1)) & np.uint64(room - 1)
                table[at] = u
        at = _hash(codes, row) & np.uint64(room - 1)
        while table[at] != _EMPTY and not _equal(codes, first[table[at]], row):
            at = (at + np.uint64(1)) & np.uint64(room - 1)
        if table[at] == _EMPTY:
            table[at] = found
            first[found] = row
            found += 1
        number[row] = table[at]
    return number, first[:found].copy()


@kernel
def sort_by(order: Int64s, keys: Int32s, n_keys: int) -> Int64s:
    """Return the rows of ``order`` by their keys 0..n_keys - 1, stably; O(n)."""
    starts = np.zeros(n_keys + 1, np.int64)
    for row in order:
        starts[keys[row] + 1] += 1
    for key in range(n_keys):
        starts[key + 1] += starts[key]
    result = np.empty_like(order)
    for row in order:
        result[starts[keys[row]]] = row
        starts[keys[row]] += 1
    return result


@kernel
def freeze_rows(bounds: Int64s, r: Rules, k: int) -> Bools:
    """Return a mask of the rows of frequent tuples that need no search.

    bounds: (u + 1,) start of each tuple. A tuple of at least 3k rows freezes all but 2k to 3k - 1
    of them, a multiple of k, evenly spread, if both parts meet the rules.
    """
    frozen = np.zeros(bounds[-1], np.bool_)
    for t in range(bounds.shape[0] - 1):
        start, n = bounds[t], bounds[t + 1] - bounds[t]
        out = (n - 2 * k) // k * k
        if n < 3 * k:
            continue
        for i in range(n):
            frozen[start + i] = i * out // n != (i + 1) * out // n
        for part in (False, True):
            if r.kinds.shape[0] > 0 and not _part_holds(frozen, part, start, n, r):
                frozen[start : start + n] = False
                break
    return frozen


@step
def _part_holds(frozen: Bools, part: bool, start: int, n: int, r: Rules) -> bool:
    m = ZERO
    for row in range(start, start + n):
        if frozen[row] == part:
            r.members[m] = row
            m += 1
    return hold(r, r.members, m)
