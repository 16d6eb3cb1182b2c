"""Cellular clustering by a primal-dual scheme (Aggarwal et al., PODS 2006)."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from dbanon.anonymization.adjusting.repair import repair
from dbanon.anonymization.algorithms.approximation.gather import Clusters
from dbanon.anonymization.distances.rows import pairwise, require_metric
from dbanon.anonymization.limits import require_at_most
from dbanon.domain.assignment import Assignment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dbanon.anonymization.interfaces import Requirement
    from dbanon.domain.assignment import EncodedTable
    from dbanon.kernels.arrays import Floats, Int32s, Int64s


@dataclass(frozen=True, slots=True)
class Cellular:
    """Groups of at least k rows with a low sum of rows times radius.

    Section 4 of the paper: a constant times the least sum. The radius of a group is the distance
    of its farthest row from its center, any row of the table; ``distance`` names a metric. Ties go
    to the lower row, then to the smaller radius. A group has no greatest size. Groups that lack
    distinct sensitive values are merged afterwards, so that the bound holds for l = 1 only.
    """

    distance: str = "manhattan"

    MAX_ROWS: ClassVar[int] = 2_000

    def __post_init__(self) -> None:
        """Refuse what is no metric before any row is read."""
        require_metric(self.distance, algorithm="cellular")

    def assign(self, table: EncodedTable, requirement: Requirement, *, seed: int) -> Assignment:
        """Group the rows; O(n^3 log n) at worst, a few seconds for the limit."""
        require_at_most(self.MAX_ROWS, table, algorithm="cellular")
        clusters = cellular(pairwise(table, self.distance), requirement.k)
        return repair(table, Assignment(clusters.group, len(clusters.center)), requirement)


class Ball(NamedTuple):
    """A cluster on the way: the rows that follow it and, once opened, rows that it borrows."""

    center: int
    radius: float
    rows: list[int]


def cellular(distances: Floats, k: int) -> Clusters:
    """Return a partition into clusters of at least k rows; distances: (n, n), a metric, n >= k."""
    paid, tight = raise_prices(distances, k)
    opened = [_share(distances, ball, k) for ball in _open(distances, paid, tight)]
    group = np.empty(len(distances), np.int32)
    n_groups = 0
    for kept, attached in _separate(opened, k):
        for rows in regroup(distances, kept, attached, k=k):
            group[rows] = n_groups
            n_groups += 1
    return Clusters(group, best_centers(distances, group, n_groups))


def best_centers(distances: Floats, group: Int32s, n_groups: int) -> Int64s:
    """Return for each group the row whose farthest member is nearest, the lowest of equals.

    distances: (n, n); any row of the table can be a center. O(n^2).
    """
    farthest = (distances[:, group == g].max(axis=1) for g in range(n_groups))
    return np.array([apart.argmin() for apart in farthest], np.int64)


def raise_prices(distances: Floats, k: int) -> tuple[Floats, list[Ball]]:
    """Raise what all rows pay until each is in a ball that is paid for (step 1 and 2).

    A ball around a row costs k times its radius and gets from each of its rows what that pays
    beyond the radius. It is paid for at one moment, when all its waiting rows stop and follow it,
    so that nobody waits in a paid ball. Return what each row pays, (n,), and the balls.
    """
    n_rows = len(distances)
    order = np.argsort(distances, axis=1, kind="stable")
    radius = np.take_along_axis(distances, order, axis=1)
    paid, now, tight = np.full(n_rows, np.inf), 0.0, list[Ball]()
    # Rows that stop only put balls off, so that an old moment is never too late.
    moments = [(0.0, row) for row in range(n_rows)]
    while np.isinf(paid).any():
        _, center = heapq.heappop(moments)
        moment, last = _next_ball(radius[center], paid[order[center]], k)
        if moments and moments[0] < (moment, center):
            heapq.heappush(moments, (moment, center))
            continue
        now = max(now, moment)
        inside = order[center, : last + 1]
        stops = inside[np.isinf(paid[inside])]
        paid[stops] = now
        tight.append(Ball(center, float(radius[center, last]), stops.tolist()))
        heapq.heappush(moments, (now, center))
    return paid, tight


def _next_ball(radius: Floats, paid: Floats, k: int) -> tuple[float, int]:
    """Return when the next ball around a row is paid for, and its last row.

    radius: (n,) the distances of all rows from the center, sorted; paid: (n,) what these rows pay,
    infinite while they wait. The moment is infinite when none waits. O(n log n).
    """
    n_rows = len(radius)
    waits = np.isinf(paid)
    waiting = np.cumsum(waits)
    legal = np.append(radius[:-1] < radius[1:], True) & (waiting > 0)  # the last of equals
    legal[: k - 1] = False
    # A row that stopped gives to the balls from itself on up to the radius that it pays.
    first = np.flatnonzero(~waits & (paid > radius))
    end = np.searchsorted(radius, paid[first])
    givers = np.bincount(first, minlength=n_rows + 1) - np.bincount(end, minlength=n_rows + 1)
    sums = np.bincount(first, paid[first], minlength=n_rows + 1)
    sums -= np.bincount(end, paid[first], minlength=n_rows + 1)
    given = np.cumsum(sums)[:-1] - np.cumsum(givers)[:-1] * radius
    moment = np.full(n_rows, np.inf)
    np.divide(k * radius - given, waiting, out=moment, where=legal)
    moment += radius
    last = int(moment.argmin())
    return float(moment[last]), last


def _open(distances: Floats, paid: Floats, tight: list[Ball]) -> list[Ball]:
    """Keep balls that nobody pays twice, large ones first; the others join them (step 3)."""
    opened: list[Ball] = []
    payers = np.empty((0, len(distances)), np.bool_)
    for ball in sorted(tight, key=lambda ball: -ball.radius):
        pays = (distances[ball.center] <= ball.radius) & (paid > ball.radius)
        shared = np.flatnonzero((payers & pays).any(axis=1))
        if len(shared):
            opened[shared[0]].rows.extend(ball.rows)
        else:
            opened.append(ball)
            payers = np.vstack([payers, pays])
    return opened


def _share(distances: Floats, ball: Ball, k: int) -> Ball:
    """Borrow the nearest rows of the ball until it has k; its radius is now that of its rows."""
    near = np.argsort(distances[ball.center], kind="stable").tolist()
    own = set(ball.rows)
    rows = ball.rows + [row for row in near if row not in own][: max(0, k - len(own))]
    return Ball(ball.center, float(distances[ball.center, rows].max()), rows)


def _separate(opened: list[Ball], k: int) -> list[tuple[list[int], list[list[int]]]]:
    """Keep balls with k rows of their own, small ones first, each row in one of them (step 5).

    The rows left of every other ball are attached to the first kept ball that took one of its
    rows. Return the rows of each kept ball and what is attached to it, small radii first.
    """
    owner: dict[int, int] = {}
    kept: list[tuple[list[int], list[list[int]]]] = []
    others = []
    for ball in sorted(opened, key=lambda ball: ball.radius):
        free = [row for row in ball.rows if row not in owner]
        if len(free) >= k:
            owner.update(dict.fromkeys(free, len(kept)))
            kept.append((free, []))
        else:
            others.append((ball, min(owner[row] for row in ball.rows if row in owner)))
    attached: set[int] = set()
    for ball, first in others:
        rest = [row for row in ball.rows if row not in owner and row not in attached]
        attached.update(rest)
        if rest:
            kept[first][1].append(rest)
    return kept


def regroup(
    distances: Floats, kept: Sequence[int], attached: Sequence[Sequence[int]], *, k: int
) -> list[list[int]]:
    """Join attached groups to clusters of k rows, in their order (step 6).

    What falls short of k takes the kept rows nearest to it, or joins the kept rows when these
    would fall short. Return the kept rows that stay, and the new clusters.
    """
    stay, made, short = list(kept), [], list[int]()
    for rows in attached:
        short += rows
        if len(short) >= k:
            made.append(short)
            short = []
    missing = k - len(short)
    if short and len(stay) - missing >= k:
        near = sorted(stay, key=lambda row: (float(distances[row, short].max()), row))
        made.append(short + near[:missing])
        stay = [row for row in stay if row not in near[:missing]]
    else:
        stay += short
    return [stay, *made]
