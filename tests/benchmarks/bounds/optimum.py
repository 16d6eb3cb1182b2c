"""The least loss of any publication of a small table, by mixed integer programming.

Choose boxes, z_B in {0, 1}, and which rows go where, x_tB of the rows of tuple t to box B that
holds it: minimize sum cost(B) x_tB, where sum_B x_tB is the number of rows of t, x_tB at most that
number times z_B, and the rows of a chosen box are k or more. A partition into classes is a
solution with its classes' boxes, and no dearer; two classes of one box may be one. A solution is a
partition, whose classes have boxes that cost no more than those chosen. With z fixed, x is a flow,
so whole rows are among the best. Hence the optimum is that of the publications which leave nobody
out.

Few boxes need be looked at: with prices that no class exceeds, a partition that has class C loses
at least all prices and what C loses beyond its own, because every other class loses its prices. So
no box of which all classes lose more beyond their prices than the known publication loses beyond
all prices is in a better one. (This counts classes of at most 2k - 1 rows, which are enough.)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import LinearConstraint, milp
from scipy.sparse import coo_matrix, csc_matrix, vstack

from .boxes import promising

SLACK = 1e-9


class Optimum(NamedTuple):
    """What the best publication loses is between the two; they are equal once it is proved."""

    at_least: float
    at_most: float


def best_of_classes(count, classes, *, seconds: float) -> float:
    """Return what the best publication found of these classes alone loses."""
    rows = csc_matrix(
        (
            np.concatenate([one.rows for one in classes]),
            np.concatenate([one.tuples for one in classes]),
            np.append(0, np.cumsum([len(one.tuples) for one in classes])),
        ),
        shape=(len(count), len(classes)),
    )
    found = milp(
        [one.cost for one in classes],
        integrality=np.ones(len(classes)),
        constraints=LinearConstraint(rows, count, count),
        options={"time_limit": seconds},
    )
    return np.inf if found.x is None else float(found.fun)


def best_publication(boxes, prices, known: float, *, seconds: float) -> Optimum:
    """Return the loss of the best publication.

    known: what one loses, for example ``best_of_classes``; prices: see prices.py.
    """
    count = boxes.tuples.count
    bound = float(count @ prices)
    kept, cost = _needed(boxes, prices, allowed=known - bound + SLACK)
    if not kept:
        return Optimum(known, known)
    size = np.array([len(own) for own in kept])
    tuples, box = np.concatenate(kept), np.repeat(np.arange(len(kept)), size)
    n, m, each = len(tuples), len(kept), np.arange(len(tuples))
    ones = np.ones(n)
    all_rows = coo_matrix((ones, (tuples, each)), shape=(len(count), n + m))
    chosen = coo_matrix(
        (np.append(ones, -count[tuples]), (np.tile(each, 2), np.append(each, n + box))), (n, n + m)
    )
    enough = coo_matrix(
        (np.append(ones, np.full(m, -boxes.k)), (np.append(box, range(m)), range(n + m))),
        (m, n + m),
    )
    found = milp(
        np.append(cost[box], np.zeros(m)),
        integrality=np.append(np.zeros(n), np.ones(m)),
        bounds=(0, np.append(count[tuples], np.ones(m))),
        constraints=LinearConstraint(
            vstack([all_rows, chosen, enough]).tocsr(),
            np.concatenate([count, np.full(n, -np.inf), np.zeros(m)]),
            np.concatenate([count, np.zeros(n), np.full(m, np.inf)]),
        ),
        options={"time_limit": seconds, "mip_rel_gap": 0.0},
    )
    at_most = known if found.x is None else min(known, found.fun)
    at_least = bound if found.mip_dual_bound is None else max(bound, found.mip_dual_bound)
    return Optimum(min(at_least, at_most), at_most)


def _needed(boxes, prices, *, allowed):
    """Return the tuples in each box that a better publication can have, and its cost."""
    found: dict[bytes, float] = {}
    for windows in promising(boxes, prices, above=-allowed):
        for window in np.flatnonzero(windows.best(prices).ravel() >= -allowed).tolist():
            own, cost = windows.inside(window)
            name = np.sort(own).tobytes()
            found[name] = min(cost, found.get(name, np.inf))
    return [np.frombuffer(name, np.int64) for name in found], np.array(list(found.values()))
