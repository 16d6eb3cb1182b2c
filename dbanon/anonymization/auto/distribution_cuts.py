"""Clusters with the distribution of sensitive values that a model requires.

If neighbours have the same sensitive values, clusters of neighbours meet few models, and many must
be merged. Here one cluster of all rows, which meets every model, is cut as long as the parts meet
them (in the spirit of SABRE, Cao, Karras, Kalnis, Tan, VLDB Journal 2011, which halves buckets as
values are halved here).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dbanon.anonymization.auto.rounds import coordinates
from dbanon.anonymization.threads import in_threads

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from dbanon.anonymization.auto.space import Space
    from dbanon.kernels.layout import Floats, Int32s, Int64s

# A cut tries every combination of sensitive values.
_MOST_KEYS = 2_000
_LARGE = 16_000  # rows, of the parts that are cut side by side
_SEVERAL = 4  # times k rows of neighbours should keep the rules
_CROWD = 4  # times k rows make a cluster large
_BLOCK = 48  # clusters among which pairs are cut again
_NEAR = 4
_GAIN = 1e-6


class Shares(NamedTuple):
    """key: (n,) the combination of sensitive values of each row; share: (m,) of each overall."""

    key: Int32s
    share: Floats


def is_pressed(space: Space) -> bool:
    """Return True if most rows and a few times k of their neighbours together violate a rule."""
    from dbanon.kernels.auto.blocks import halve
    from dbanon.kernels.auto.diversity import make_rules, rows_hold

    if space.counts_distinct:
        return False
    order, ends = halve(coordinates(space), max(2 * _SEVERAL * space.k - 1, 2))
    rules = make_rules(*space.rules, space.sensitive)
    kept = 0
    for start, end in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        kept += (end - start) * rows_hold(rules, order[start:end])
    return bool(2 * kept < space.n_rows)


def shares_of(space: Space) -> Shares | None:
    """Return the share of each combination of sensitive values, None if there are too many."""
    columns = np.unique(space.rules[1])
    held = space.sensitive[:, columns if len(columns) > 1 else columns[0]]  # which is far faster
    values, key = np.unique(held, axis=0, return_inverse=True)
    if len(values) > _MOST_KEYS:
        return None
    return Shares(key.ravel().astype(np.int32), np.bincount(key.ravel()) / len(key))


def start_by_shares(
    space: Space, shares: Shares, *, over: Callable[[], bool] = lambda: False
) -> Int32s:
    """Return the cluster of each row; parts uncut at ``over`` stay whole."""
    parts = [np.arange(space.n_rows)]
    small: list[Int64s] = []
    while parts and not over():
        rows = parts.pop()
        label, _ = _cut(space, shares, rows, most=max(len(rows) - 1, _LARGE))
        found = [rows[label == i] for i in range(int(label.max()) + 1)]
        (parts if len(rows) > _LARGE and len(found) > 1 else small).extend(found)
    small.extend(parts)
    new = np.empty(space.n_rows, np.int64)
    most = space.n_rows + 1

    def work(i: int) -> None:
        uncut = np.zeros(len(small[i]), np.int32)
        label = uncut if over() else _cut(space, shares, small[i], most=0)[0]
        new[small[i]] = i * most + label

    in_threads(work, range(len(small)))
    return np.unique(new, return_inverse=True)[1].astype(np.int32)


def cut_large(space: Space, label: Int32s, *, over: Callable[[], bool] = lambda: False) -> Int32s:
    """Cut clusters of many times k rows; label: (n,) 0..g-1 without gaps, as the result.

    A block whose greedy groups violate the rules is one cluster, which local search hardly divides.
    Greedy groups have the distinct values that they need.
    """
    if space.counts_distinct:
        return label
    large = [rows for rows in _members(label) if len(rows) >= _CROWD * space.k]
    shares = shares_of(space) if large else None
    if shares is None:
        return label
    new = label.astype(np.int64) * (space.n_rows + 1)

    def work(i: int) -> None:
        if not over():
            new[large[i]] += _cut(space, shares, large[i], most=0)[0]

    in_threads(work, range(len(large)))
    return np.unique(new, return_inverse=True)[1].astype(np.int32)


def _cut(space: Space, shares: Shares, rows: Int64s, *, most: int) -> tuple[Int32s, float]:
    """Cut rows until a part has at most ``most`` or cannot be cut; return labels and cost."""
    from dbanon.kernels.auto.distribution_cuts import cut_by_shares

    return cut_by_shares(
        space.codes[rows],
        space.sensitive[rows],
        *space.costs,
        space.rules,
        shares.key[rows],
        shares.share,
        (space.k, most),
    )


def recut(space: Space, label: Int32s, shares: Shares, *, seed: int, number: int) -> Int32s:
    """Join clusters with near ones and cut them again, if that lowers the total.

    label: (n,) without gaps. Blocks shift with seed and number. O(clusters * rows of a cluster *
    d^2).
    """
    from dbanon.kernels.auto.blocks import halve

    random = np.random.default_rng((seed, number))
    members = _members(label)
    points = coordinates(space)
    stretch = np.exp(0.7 * random.standard_normal(points.shape[1])).astype(np.float32)
    middles = np.stack([points[rows].mean(axis=0) for rows in members])
    clusters, ends = halve((middles * stretch).astype(np.float32), _BLOCK)

    def work(i: int) -> list[Int64s]:
        block = [members[a] for a in clusters[ends[i] : ends[i + 1]].tolist()]
        return _recut_block(space, shares, points, block)

    found = in_threads(work, range(len(ends) - 1))
    new = np.empty_like(label)
    for i, rows in enumerate(rows for block in found for rows in block):
        new[rows] = i
    return new


def _members(label: Int32s) -> list[Int64s]:
    """Return the rows of each label, 0..g-1 without gaps."""
    return np.split(np.argsort(label, kind="stable"), np.cumsum(np.bincount(label))[:-1])


def _recut_block(
    space: Space, shares: Shares, points: NDArray[np.float32], members: list[Int64s]
) -> list[Int64s]:
    """Cut pairs of near clusters again if that costs less, costliest first; return clusters."""
    size = np.array([len(rows) for rows in members])
    lo = np.stack([points[rows].min(axis=0) for rows in members])
    hi = np.stack([points[rows].max(axis=0) for rows in members])
    spread = size * (hi - lo).sum(axis=1)
    cost = [_cut(space, shares, rows, most=len(rows))[1] for rows in members]
    there = np.ones(len(members), np.bool_)
    made: list[Int64s] = []
    for a in np.argsort(-np.array(cost), kind="stable").tolist():
        if not there[a]:
            continue
        there[a] = False
        width = (np.maximum(hi, hi[a]) - np.minimum(lo, lo[a])).sum(axis=1)
        rise = np.where(there, (size + size[a]) * width - spread - spread[a], np.inf)
        best, chosen, parts = -_GAIN, -1, [members[a]]
        for b in np.argsort(rise, kind="stable")[:_NEAR].tolist():
            if not there[b]:
                break
            rows = np.concatenate([members[a], members[b]])
            cut, total = _cut(space, shares, rows, most=0)
            if total - cost[a] - cost[b] < best:
                best, chosen = total - cost[a] - cost[b], b
                parts = [rows[part] for part in _members(cut)]
        made += parts
        if chosen >= 0:
            there[chosen] = False
    return made
