"""Peeling classes off a generalization lattice, cheapest node first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dbanon.kernels.compile import kernel
from dbanon.kernels.diversity import Rules, rows_hold

if TYPE_CHECKING:
    from numpy.typing import NDArray

NONE = -1


@kernel
def peel(
    marks: NDArray[np.uint64],
    begin: NDArray[np.int64],
    nodes: NDArray[np.int16],
    codes: NDArray[np.int32],
    bounds: NDArray[np.int64],
    r: Rules,
    k: int,
    budget: int,
) -> tuple[NDArray[np.int32], int]:
    """Give every class of k rows that keeps the rules a number, node after node.

    marks: one random number for each (column, level, generalized code), looked up at ``begin``
    (d, levels) + code; nodes: (m, d) the level of each column; codes: (u, d) distinct tuples;
    bounds: (u + 1,) where the rows of each tuple begin, rows being in the order of the tuples.
    budget: how many tuples may be looked up before it ends. Return the class of each tuple, (u,),
    -1 for those left at the end, and how many there are.
    The sum of the marks stands for the generalized tuple: two that share a sum by accident share
    a class, which costs but harms nothing.
    """
    u = codes.shape[0]
    label = np.full(u, NONE, np.int32)
    live = np.arange(u).astype(np.int32)
    room = 1
    while room < 2 * u:
        room *= 2
    keys, rows_in = np.zeros(room, np.uint64), np.zeros(room, np.int64)
    head, chain = np.full(room, NONE, np.int32), np.empty(u, np.int32)
    touched = np.empty(u, np.int64)
    n_live, found = u, 0
    for node in nodes:
        budget -= n_live
        if n_live == 0 or budget < 0:
            break
        while room > 1024 and room > 8 * n_live:
            room //= 2
        mask = np.uint64(room - 1)
        n_touched = 0
        for i in range(n_live):
            t = live[i]
            key = np.uint64(0)
            for j in range(codes.shape[1]):
                key += marks[begin[j, node[j]] + codes[t, j]]
            at = np.int64(key & mask)
            while head[at] != NONE and keys[at] != key:
                at = (at + 1) & np.int64(mask)
            if head[at] == NONE:
                keys[at] = key
                touched[n_touched] = at
                n_touched += 1
            chain[t] = head[at]
            head[at] = t
            rows_in[at] += bounds[t + 1] - bounds[t]
        before = found
        for i in range(n_touched):
            at = touched[i]
            if rows_in[at] >= k and _holds(r, head[at], chain, bounds):
                _name(label, head[at], chain, found)
                found += 1
            head[at] = NONE
            rows_in[at] = 0
        if found > before:
            n_live = _compact(live, n_live, label)
    return label, found


@kernel
def _holds(r: Rules, t: int, chain: NDArray[np.int32], bounds: NDArray[np.int64]) -> bool:
    if r.kinds.shape[0] == 0:
        return True
    n = 0
    while t != NONE:
        for row in range(bounds[t], bounds[t + 1]):
            r.members[n] = row
            n += 1
        t = chain[t]
    return rows_hold(r, r.members, n)


@kernel
def _name(label: NDArray[np.int32], t: int, chain: NDArray[np.int32], name: int) -> None:
    while t != NONE:
        label[t] = name
        t = chain[t]


@kernel
def _compact(live: NDArray[np.int32], n_live: int, label: NDArray[np.int32]) -> int:
    kept = 0
    for i in range(n_live):
        if label[live[i]] == NONE:
            live[kept] = live[i]
            kept += 1
    return kept
