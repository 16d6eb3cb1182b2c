"""A bound of every publication: what rows can be charged if no class pays more than it loses.

A publication that leaves nobody out is a partition of the rows into classes of at least k rows
(more than 2k - 1 are never needed: the parts of a class that is divided lose no more than it).
Choose which classes C to publish, y_C: minimize sum cost(C) y_C so that each row is in exactly
one. Let every row have a price, any number, such that the rows of no class pay more together than
the class loses. Then the prices of all rows together are at most what any partition loses: add up
over its classes. (They are a solution of the dual of the linear program, whose optimum is the best
bound of this kind.) Rows that are equal may be priced alike: the mean of permuted solutions is one.

Prices that break the condition are mended. If the best class in box B, of all with k to 2k - 1
rows, is g_B > 0 dearer than what it loses, lower every row in B by g_B / k: a class C in B then
pays at least |C| g_B / k >= g_B less, and was at most g_B too dear. A row pays the largest such
amount of all boxes that hold it. So every bound here holds, whatever prices a search came up with,
however early it stopped, up to the rounding of float64. (Boxes: see boxes.py; all are looked at.)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_matrix

from .boxes import promising

NEGLIGIBLE = 1e-12
CLASSES_OF_A_SET = 2
WIDTH, WIDER, NARROWER = 0.3, 1.5, 0.5


class Mended(NamedTuple):
    """Prices that no class exceeds, (T,), and classes that exceeded those before."""

    prices: np.ndarray
    classes: list


def mend_by_boxes(boxes, prices) -> Mended:
    """Mend prices of the tuples of a table, as above."""
    excess, classes = np.full(len(prices), NEGLIGIBLE / boxes.k), []
    for windows in promising(boxes, prices, above=NEGLIGIBLE):
        gain = windows.best(prices)
        over = np.maximum.accumulate(np.maximum.accumulate(gain, axis=0)[:, ::-1], axis=1)[:, ::-1]
        np.maximum.at(excess, windows.own, np.diag(over)[windows.place] / boxes.k)
        most = np.argsort(-gain, axis=None, kind="stable")[:CLASSES_OF_A_SET]
        most = most[gain.flat[most] > NEGLIGIBLE]
        classes += [windows.best_class(window, prices) for window in most.tolist()]
    return Mended(prices - excess, classes)


def raise_prices(count, mend, classes, *, gap: float = 0.002, rounds: int = 60) -> Mended:
    """Return prices that no class exceeds, near the dearest of this kind, and all classes met.

    count: (T,) rows of each tuple; mend: see ``Mended``; classes: those of a publication, whose
    loss is first spread over their rows. Rounds solve the dual for the classes known so far, within
    a distance from the best prices yet (Marsten, Hogan, Blankenship 1975), until these fall short
    of the program by less than the share ``gap``.
    """
    prices = np.zeros(len(count))
    for one in classes:
        prices[one.tuples] += one.rows / count[one.tuples] * one.cost / one.rows.sum()
    width, best = WIDTH * prices.mean(), None
    for _ in range(rounds):
        mended = mend(prices)
        classes = classes + mended.classes
        if best is None or count @ mended.prices > count @ best:
            best, width = mended.prices, width * WIDER
        else:
            width *= NARROWER
        prices = _dearest(count, classes, best, width)
        if count @ prices - count @ best <= gap * (count @ prices):
            break
    return Mended(best, classes)


def _dearest(count, classes, center, width):
    first = np.append(0, np.cumsum([len(one.tuples) for one in classes]))
    tuples = np.concatenate([one.tuples for one in classes])
    rows = np.concatenate([one.rows for one in classes])
    found = linprog(
        -count,
        A_ub=csr_matrix((rows, tuples, first), shape=(len(classes), len(count))),
        b_ub=[one.cost for one in classes],
        bounds=np.column_stack([center - width, center + width]),
    )
    return found.x
