"""The bound of prices.py for k = 2 on a large table: fractional matching.

Classes of four rows or more can be divided, so pairs and triples are all there is, and triples
need no look: for every column, no two of three rows differ by more than all three, so three times
the cost of the three together is at least the sum of the costs of their three pairs. Prices that
no pair exceeds, u_a + u_b <= 2 d(a, b), hence are exceeded by no triple: u_a + u_b + u_c is half
of what three pairs pay, at most d(a, b) + d(b, c) + d(a, c). The dual of such prices is the least
fractional perfect matching, where a triple is a triangle of half pairs.

A pair that is g > 0 too dear is mended by g / 2 from either row.
"""

from __future__ import annotations

import numpy as np

from .boxes import Class
from .prices import NEGLIGIBLE, Mended

ROWS_AT_ONCE = 128
PAIRS_OF_A_TUPLE = 8


def mend_by_pairs(tuples, prices) -> Mended:
    """Mend prices of the tuples of a table by all their pairs; O(T^2 columns).

    One of a pair that is too dear has a price above 0, so those alone meet all others.
    """
    tables = list(map(_joint_costs, tuples.nodes, tuples.costs))
    position = tuples.position[tuples.codes[:, 0]]
    excess, classes = np.full(len(prices), NEGLIGIBLE), []
    dear = np.flatnonzero(prices > 0)
    for start in range(0, len(dear), ROWS_AT_ONCE):
        some = dear[start : start + ROWS_AT_ONCE]
        cost = np.abs(position[some, None] - position)
        for j, table in enumerate(tables, start=1):
            cost += table[tuples.codes[some, j]][:, tuples.codes[:, j]]
        gain = prices[some, None] + prices - 2 * cost
        alone = np.flatnonzero(tuples.count[some] == 1)
        gain[alone, some[alone]] = -np.inf
        excess[some] = np.maximum(excess[some], gain.max(axis=1) / 2)
        excess = np.maximum(excess, gain.max(axis=0) / 2)
        most = min(PAIRS_OF_A_TUPLE, len(prices))
        best = np.argpartition(-gain, most - 1, axis=1)[:, :most]
        for i, j in zip(*np.nonzero(np.take_along_axis(gain, best, 1) > NEGLIGIBLE), strict=True):
            classes.append(_pair(int(some[i]), int(best[i, j]), float(cost[i, best[i, j]])))
    return Mended(prices - excess, classes)


def _joint_costs(nodes, costs):
    """Return what each two leaves lose together, (L, L)."""
    level = np.argmax(nodes[:, :, None] == nodes[:, None, :], axis=0)
    return costs[level, np.arange(len(level))[:, None]]


def _pair(one, other, cost) -> Class:
    if one == other:
        return Class(np.array([one]), np.array([2]), 0.0)
    return Class(np.array([one, other]), np.array([1, 1]), 2 * cost)
