"""Peel classes off a generalization lattice, cheapest node first."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dbanon.kernels.auto.clusters import NONE
from dbanon.kernels.auto.diversity import hold
from dbanon.kernels.compile import ZERO, kernel, step

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.kernels.auto.diversity import Rules

SMALLEST = 1024


class Table(NamedTuple):
    """A hash table of the generalized tuples of one node.

    keys: (room,) uint64; rows: (room,) int64, rows of each class; head: (room,) int32, its last
    tuple; chain: (u,) int32, the previous tuple of the class; used: (u,) int64, slots in use.
    """

    keys: NDArray[np.uint64]
    rows: NDArray[np.int64]
    head: NDArray[np.int32]
    chain: NDArray[np.int32]
    used: NDArray[np.int64]


@kernel
def _make_table(u: int) -> Table:
    room = SMALLEST
    while room < 2 * u:
        room *= 2
    keys, rows = np.zeros(room, np.uint64), np.zeros(room, np.int64)
    head, chain = np.full(room, NONE, np.int32), np.empty(u, np.int32)
    return Table(keys, rows, head, chain, np.empty(u, np.int64))


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
) -> NDArray[np.int32]:
    """Assign a number to every class of k rows that meets the rules, node after node.

    marks: a random number for each (column, level, generalized code), indexed by ``begin`` (d,
    levels) + code; nodes: (m, d) level of each column; codes: (u, d) distinct tuples; bounds: (u +
    1,) start of each tuple's rows; budget: most tuples to look up. Returns the class of each tuple,
    (u,), -1 for the rest. The sum of marks identifies a generalized tuple; a collision merges two
    classes, which costs but is safe.
    """
    u = codes.shape[0]
    label = np.full(u, NONE, np.int32)
    live = np.arange(u).astype(np.int32)
    t = _make_table(u)
    n_live, found = u, 0
    for node in nodes:
        budget -= n_live
        if n_live == 0 or budget < 0:
            break
        n_used = _fill(t, begin, marks, node, codes, bounds, live[:n_live])
        before = found
        for i in range(n_used):
            at = t.used[i]
            if t.rows[at] >= k and _holds(r, t.head[at], t.chain, bounds):
                _name(label, t.head[at], t.chain, found)
                found += 1
            t.head[at] = NONE
            t.rows[at] = 0
        if found > before:
            n_live = _compact(live, n_live, label)
    return label


@step
def _fill(
    t: Table,
    begin: NDArray[np.int64],
    marks: NDArray[np.uint64],
    node: NDArray[np.int16],
    codes: NDArray[np.int32],
    bounds: NDArray[np.int64],
    live: NDArray[np.int32],
) -> int:
    """Insert the live tuples by their generalized codes; return the number of used slots."""
    keys, rows, head, chain = t.keys, t.rows, t.head, t.chain
    room = keys.shape[0]
    while room > SMALLEST and room > 8 * live.shape[0]:
        room //= 2
    mask = np.uint64(room - 1)
    n_used = 0
    for i in live:
        key = np.uint64(0)
        for j in range(codes.shape[1]):
            key += marks[begin[j, node[j]] + codes[i, j]]
        at = np.int64(key & mask)
        while head[at] != NONE and keys[at] != key:
            at = (at + 1) & (room - 1)
        if head[at] == NONE:
            keys[at] = key
            t.used[n_used] = at
            n_used += 1
        chain[i] = head[at]
        head[at] = i
        rows[at] += bounds[i + 1] - bounds[i]
    return n_used


@step
def _holds(r: Rules, t: int, chain: NDArray[np.int32], bounds: NDArray[np.int64]) -> bool:
    if r.kinds.shape[0] == 0:
        return True
    n = ZERO
    while t != NONE:
        for row in range(bounds[t], bounds[t + 1]):
            r.members[n] = row
            n += 1
        t = chain[t]
    return hold(r, r.members, n)


@step
def _name(label: NDArray[np.int32], t: int, chain: NDArray[np.int32], name: int) -> None:
    while t != NONE:
        label[t] = name
        t = chain[t]


@step
def _compact(live: NDArray[np.int32], n_live: int, label: NDArray[np.int32]) -> int:
    kept = 0
    for i in range(n_live):
        if label[live[i]] == NONE:
            live[kept] = live[i]
            kept += 1
    return kept
