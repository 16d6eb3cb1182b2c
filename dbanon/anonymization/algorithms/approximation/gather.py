"""Gather rows around centers, and cellular clustering (Aggarwal et al., PODS 2006)."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from dbanon.anonymization.adjusting.repair import repair
from dbanon.anonymization.distances.rows import pairwise, require_metric
from dbanon.anonymization.interfaces import Requirement, require_at_most
from dbanon.domain.assignment import Assignment, EncodedTable
from dbanon.domain.errors import PolicyError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dbanon.kernels.layout import Bools, Floats, Int32s, Int64s


class Clusters(NamedTuple):
    """Clusters around centers: group (n,) int32, -1 if suppressed; center (g,) int64, any row."""

    group: Int32s
    center: Int64s


@dataclass(frozen=True, slots=True)
class Gather:
    """Groups of at least k rows whose greatest radius is at most twice the optimum.

    Section 2. The radius of a group is the distance of its farthest row from its center, a row;
    ``distance`` names a metric. Centers are taken in row order, and a flow checks that each can
    have k rows; the paper leaves open which rows, here those of least total distance. Groups have
    no maximum size. Groups are merged afterwards for l > 1, so the bound holds for l = 1 only.
    """

    distance: str = "manhattan"

    MAX_ROWS: ClassVar[int] = 5_000

    def __post_init__(self) -> None:
        """Refuse a distance that is no metric before reading rows."""
        require_metric(self.distance, algorithm="gather")

    def assign(self, table: EncodedTable, requirement: Requirement, *, seed: int) -> Assignment:
        """Group the rows; O(n^2 log n), and a flow for each of O(log n) thresholds."""
        require_at_most(self.MAX_ROWS, table, algorithm="gather")
        clusters = gather(pairwise(table, self.distance), requirement.k)
        return repair(table, Assignment(clusters.group, len(clusters.center)), requirement)


@dataclass(frozen=True, slots=True)
class GatherOutliers:
    """As gather, without the most distant rows: a radius of at most four times the optimum.

    Section 3. ``eps`` is the fraction of rows that may be suppressed, by default the policy's. No
    row is suppressed if the others would lack distinct sensitive values.
    """

    eps: float | None = None
    distance: str = "manhattan"

    MAX_ROWS: ClassVar[int] = 5_000

    def __post_init__(self) -> None:
        """Refuse a distance that is no metric before reading rows."""
        require_metric(self.distance, algorithm="gather-outliers")

    def assign(self, table: EncodedTable, requirement: Requirement, *, seed: int) -> Assignment:
        """Group the rows; O(n^2)."""
        require_at_most(self.MAX_ROWS, table, algorithm="gather-outliers")
        n_rows, distances = table.n_rows, pairwise(table, self.distance)
        n_kept = n_rows - min(self._outliers(n_rows), requirement.budget(n_rows))
        clusters = gather_most(distances, requirement.k, n_kept=n_kept)
        kept = table.sensitive[clusters.group >= 0]
        if any(len(np.unique(values)) < requirement.l for values in kept.T):
            clusters = gather_most(distances, requirement.k, n_kept=n_rows)
        return repair(table, Assignment(clusters.group, len(clusters.center)), requirement)

    def _outliers(self, n_rows: int) -> int:
        if self.eps is None:
            return n_rows
        if not 0 <= self.eps < 1:
            msg = f"eps = {self.eps} is not a fraction in [0, 1)"
            raise PolicyError(msg, hint="0.02 leaves out two rows of a hundred")
        return Requirement(1, max_suppressed=self.eps).budget(n_rows)


def gather(distances: Floats, k: int) -> Clusters:
    """Return a partition into clusters of at least k rows, a 2-approximation of the radius.

    distances: (n, n), a metric, n >= k. Searches for the least feasible distance of centers.
    """
    reach = float(_kth_distances(distances, k).max())
    candidates = np.unique(distances[distances >= reach])
    fails, works = -1, len(candidates) - 1
    while works - fails > 1:
        middle = (fails + works) // 2
        threshold = candidates[middle]
        if _can_fill(distances[spread_centers(distances, threshold)] <= threshold, k):
            works = middle
        else:
            fails = middle
    centers = spread_centers(distances, candidates[works])
    apart = np.where(distances[centers] <= candidates[works], distances[centers], np.inf)
    return Clusters(_fill(apart, k), centers)


def gather_most(distances: Floats, k: int, *, n_kept: int) -> Clusters:
    """Return clusters of at least k rows with at least ``n_kept`` rows, a 4-approximation; O(n^2).

    distances: (n, n), a metric, n >= k, 1 <= n_kept <= n.
    """
    threshold = np.sort(_kth_distances(distances, k))[n_kept - 1]
    group = np.full(len(distances), -1, np.int32)
    centers: list[int] = []
    for row, near in enumerate(distances <= threshold):
        core = np.flatnonzero(near & (group < 0))
        if group[row] < 0 and len(core) >= k:
            group[core] = len(centers)
            centers.append(row)
    rest = np.flatnonzero(group < 0)
    apart = distances[centers][:, rest]
    near = apart.min(axis=0) <= 2 * threshold
    group[rest[near]] = apart.argmin(axis=0)[near]
    return Clusters(group, np.array(centers, np.int64))


def spread_centers(distances: Floats, threshold: float) -> Int64s:
    """Return rows farther than the threshold from each other that reach all rows, lowest first."""
    covered = np.zeros(len(distances), np.bool_)
    centers = []
    for row in range(len(distances)):
        if not covered[row]:
            centers.append(row)
            covered |= distances[row] <= threshold
    return np.array(centers, np.int64)


def _kth_distances(distances: Floats, k: int) -> Floats:
    """Return the distance of each row to its k-th nearest, counting itself."""
    kth: Floats = np.partition(distances, k - 1, axis=1)[:, k - 1]
    return kth


def _can_fill(near: Bools, k: int) -> bool:
    """Return True if each center can have k rows of its own; near: (centers, n)."""
    from scipy import sparse
    from scipy.sparse import csgraph

    n_centers, n_rows = near.shape
    if n_centers * k > n_rows:
        return False
    center, row = np.nonzero(near)
    source, sink = n_centers + n_rows, n_centers + n_rows + 1
    tails = np.concatenate([np.full(n_centers, source), center, n_centers + np.arange(n_rows)])
    heads = np.concatenate([np.arange(n_centers), n_centers + row, np.full(n_rows, sink)])
    capacity = np.ones(len(tails), np.int32)
    capacity[:n_centers] = k
    network = sparse.csr_array((capacity, (tails, heads)), shape=(sink + 1, sink + 1))
    return bool(csgraph.maximum_flow(network, source, sink).flow_value == n_centers * k)


def _fill(apart: Floats, k: int) -> Int32s:
    """Give each center k rows, and the others to the nearest, at the least total distance."""
    from scipy import optimize

    group: Int32s = apart.argmin(axis=0).astype(np.int32)
    if np.bincount(group, minlength=len(apart)).min() < k:
        extra = np.repeat(apart - apart.min(axis=0), k, axis=0)
        places, rows = optimize.linear_sum_assignment(extra)
        group[rows] = places // k
    return group


@dataclass(frozen=True, slots=True)
class Cellular:
    """Groups of at least k rows with a low sum of rows times radius.

    Section 4: a constant times the optimum. The radius of a group is the distance of its farthest
    row from its center, any row of the table; ``distance`` names a metric. Ties go to the lower
    row, then to the smaller radius. Groups have no maximum size. Groups are merged afterwards for l
    > 1, so the bound holds for l = 1 only.
    """

    distance: str = "manhattan"

    MAX_ROWS: ClassVar[int] = 2_000

    def __post_init__(self) -> None:
        """Refuse a distance that is no metric before reading rows."""
        require_metric(self.distance, algorithm="cellular")

    def assign(self, table: EncodedTable, requirement: Requirement, *, seed: int) -> Assignment:
        """Group the rows; O(n^3 log n) at worst, a few seconds at the row limit."""
        require_at_most(self.MAX_ROWS, table, algorithm="cellular")
        clusters = cellular(pairwise(table, self.distance), requirement.k)
        return repair(table, Assignment(clusters.group, len(clusters.center)), requirement)


class _Ball(NamedTuple):
    """A preliminary cluster: the rows that follow it and, once opened, borrowed rows."""

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
    """Return for each group the row (of any group) with the nearest farthest member; O(n^2)."""
    farthest = (distances[:, group == g].max(axis=1) for g in range(n_groups))
    return np.array([apart.argmin() for apart in farthest], np.int64)


def raise_prices(distances: Floats, k: int) -> tuple[Floats, list[_Ball]]:
    """Raise the payment of all rows until each is in a paid ball (steps 1 and 2).

    A ball costs k times its radius; each of its rows pays the excess over the radius. When it is
    paid, all its waiting rows stop and follow it. Returns the payment of each row, (n,), and the
    balls.
    """
    n_rows = len(distances)
    order = np.argsort(distances, axis=1, kind="stable")
    radius = np.take_along_axis(distances, order, axis=1)
    paid, now, tight = np.full(n_rows, np.inf), 0.0, list[_Ball]()
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
        tight.append(_Ball(center, float(radius[center, last]), stops.tolist()))
        heapq.heappush(moments, (now, center))
    return paid, tight


def _next_ball(radius: Floats, paid: Floats, k: int) -> tuple[float, int]:
    """Return when the next ball around a row is paid (inf if no row waits), and its last row."""
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


def _open(distances: Floats, paid: Floats, tight: list[_Ball]) -> list[_Ball]:
    """Keep balls that no row pays twice, large ones first; the others join them (step 3)."""
    opened: list[_Ball] = []
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


def _share(distances: Floats, ball: _Ball, k: int) -> _Ball:
    """Borrow the nearest rows of the ball until it has k; update its radius."""
    near = np.argsort(distances[ball.center], kind="stable").tolist()
    own = set(ball.rows)
    rows = ball.rows + [row for row in near if row not in own][: max(0, k - len(own))]
    return _Ball(ball.center, float(distances[ball.center, rows].max()), rows)


def _separate(opened: list[_Ball], k: int) -> list[tuple[list[int], list[list[int]]]]:
    """Keep balls with k rows of their own, small ones first; attach other rows (step 5)."""
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
    """Join attached groups to clusters of k rows, in order (step 6).

    Fewer than k rows take the nearest kept rows, or join the kept rows if these would be too few.
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
