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
    """Mend prices of the tuples of a table by their pairs; O(T^2 columns)."""
    tables = list(map(_joint_costs, tuples.nodes, tuples.costs))
    position = tuples.position[tuples.codes[:, 0]]
    excess, classes = np.full(len(prices), NEGLIGIBLE), []
    for some, others in _meetings(tuples, prices):
        cost = np.abs(position[some, None] - position[others])
        for j, table in enumerate(tables, start=1):
            cost += table[tuples.codes[some, j]][:, tuples.codes[others, j]]
        gain = prices[some, None] + prices[others] - 2 * cost
        alone = np.flatnonzero(tuples.count[some] == 1)
        gain[alone, np.searchsorted(others, some[alone])] = -np.inf
        excess[some] = np.maximum(excess[some], gain.max(axis=1) / 2)
        excess[others] = np.maximum(excess[others], gain.max(axis=0) / 2)
        most = min(PAIRS_OF_A_TUPLE, len(others))
        best = np.argpartition(-gain, most - 1, axis=1)[:, :most]
        for i, j in zip(*np.nonzero(np.take_along_axis(gain, best, 1) > NEGLIGIBLE), strict=True):
            place = best[i, j]
            classes.append(_pair(int(some[i]), int(others[place]), float(cost[i, place])))
    return Mended(prices - excess, classes)


def _meetings(tuples, prices):
    """Yield some tuples and others, in rising order, until all pairs that are too dear have met.

    One of such a pair has a price above 0. Where a taxonomy is a root and its leaves, a pair that
    differs costs 1, so that one of it has a price above 1: those alone meet all others.
    """
    flat = [j for j, tree in enumerate(tuples.trees, start=1) if tree.height == 1]
    _, block = np.unique(tuples.codes[:, flat], axis=0, return_inverse=True)
    everyone = np.arange(len(prices))
    meetings = [(np.flatnonzero(prices > 1), everyone)]
    for number in range(int(block.max()) + 1):
        own = np.flatnonzero(block == number)
        meetings.append((own[(prices[own] > 0) & (prices[own] <= 1)], own))
    for some, others in meetings:
        for start in range(0, len(some), ROWS_AT_ONCE):
            yield some[start : start + ROWS_AT_ONCE], others


def _joint_costs(nodes, costs):
    """Return what each two leaves lose together, (L, L)."""
    level = np.argmax(nodes[:, :, None] == nodes[:, None, :], axis=0)
    return costs[level, np.arange(len(level))[:, None]]


def _pair(one, other, cost) -> Class:
    if one == other:
        return Class(np.array([one]), np.array([2]), 0.0)
    return Class(np.array([one, other]), np.array([1, 1]), 2 * cost)
