"""One-pass k-means: assign every record once, then balance the sizes (Lin, Wei, 2008)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dbanon.kernels.boxes.costs import box_cost
from dbanon.kernels.compilation import kernel
from dbanon.kernels.layout import SIZE, START, Bools, Floats, Int32s, Int64s

NONE = -1


class Centers(NamedTuple):
    """The clusters and their centers, by column.

    code: (d, c) most frequent code of a tree; mean: (d, c) mean position of an ordered column, NaN
    if all are NULL; sum, present: (d, c) its sum and count; often: (d, c) frequency of the most
    frequent code; size: (c,); head: (c,) last row added, following: (n,) the one before; distance:
    (c,) from the current record; table: by code.
    """

    codes: Int32s
    ordered: Bools
    flat: Floats
    layout: Int64s
    code: Int32s
    mean: Floats
    sum: Floats
    present: Int64s
    often: Int64s
    size: Int64s
    head: Int64s
    following: Int64s
    distance: Floats
    table: Floats


@kernel
def _allocate(
    codes: Int32s, ordered: Bools, n_clusters: int, flat: Floats, layout: Int64s
) -> Centers:
    n, d = codes.shape
    return Centers(
        codes,
        ordered,
        flat,
        layout,
        np.zeros((d, n_clusters), np.int32),
        np.full((d, n_clusters), np.nan),
        np.zeros((d, n_clusters)),
        np.zeros((d, n_clusters), np.int64),
        np.zeros((d, n_clusters), np.int64),
        np.zeros(n_clusters, np.int64),
        np.full(n_clusters, NONE),
        np.full(n, NONE),
        np.empty(n_clusters),
        np.empty(layout[:, SIZE].max() + 1),
    )


@kernel
def _measure(row: int, w: Centers) -> None:
    """Fill the distance of a record from each center; NULL and a value are the weight apart."""
    w.distance[:] = 0.0
    for j in range(w.codes.shape[1]):
        code, size, start = w.codes[row, j], w.layout[j, SIZE], w.layout[j, START]
        if w.ordered[j]:
            x = np.nan if code == size else w.flat[start + 1 + code]
            for a in range(w.size.shape[0]):
                step = abs(x - w.mean[j, a])
                if not np.isnan(step):
                    w.distance[a] += step
                elif np.isnan(x) != np.isnan(w.mean[j, a]):
                    w.distance[a] += w.flat[start]
        else:
            for other in range(size + 1):
                w.table[other] = box_cost(w.flat, w.layout, j, min(code, other), max(code, other))
            for a in range(w.size.shape[0]):
                w.distance[a] += w.table[w.code[j, a]]


@kernel
def _nearest(row: int, fewer_than: int, w: Centers) -> int:
    """Return the cluster of the nearest center among the smaller ones; ties: lowest; -1: none."""
    _measure(row, w)
    best = NONE
    for a in range(w.size.shape[0]):
        better = best == NONE or w.distance[a] < w.distance[best]
        if w.size[a] < fewer_than and better:
            best = a
    return best


@kernel
def _add(row: int, a: int, w: Centers) -> None:
    """Add a record to a cluster and update its center; ties of codes: lowest."""
    w.following[row] = w.head[a]
    w.head[a] = row
    w.size[a] += 1
    for j in range(w.codes.shape[1]):
        code = w.codes[row, j]
        if w.ordered[j]:
            if code < w.layout[j, SIZE]:
                w.sum[j, a] += w.flat[w.layout[j, START] + 1 + code]
                w.present[j, a] += 1
                w.mean[j, a] = w.sum[j, a] / w.present[j, a]
            continue
        occurs, member = 0, row
        while member != NONE:
            occurs += w.codes[member, j] == code
            member = w.following[member]
        lower = occurs == w.often[j, a] and code < w.code[j, a]
        if occurs > w.often[j, a] or lower:
            w.code[j, a], w.often[j, a] = code, occurs


@kernel
def _reduce(a: int, k: int, group: Int32s, w: Centers) -> None:
    """Reduce a cluster to the k records nearest to its center; ties: lowest row."""
    members, distance = np.empty(w.size[a], np.int64), np.empty(w.size[a])
    row = w.head[a]
    for i in range(w.size[a] - 1, -1, -1):
        members[i] = row
        row = w.following[row]
    members.sort()
    for i in range(w.size[a]):
        _measure(members[i], w)
        distance[i] = w.distance[a]
    for i in np.argsort(distance, kind="mergesort")[k:]:
        group[members[i]] = NONE
    w.size[a] = min(w.size[a], k)


@kernel
def one_pass(
    codes: Int32s,
    ordered: Bools,
    seeds: Int64s,
    visit: Int64s,
    order: Int64s,
    flat: Floats,
    layout: Int64s,
    k: int,
) -> Int32s:
    """Assign each record to the nearest center, then balance the sizes; return the clusters, (n,).

    codes: (n, d); ordered: (d,) columns with positions, the others are trees; seeds: (c,) distinct
    initial rows, c <= n // k; visit: (n,) order of assignment, which moves centers; order: (n,)
    order of balancing. Clusters of more than k release the records farthest from their fixed
    center, which join the nearest cluster of fewer than k, otherwise the nearest. O(n c d), and for
    trees the squared cluster sizes.
    """
    w = _allocate(codes, ordered, seeds.shape[0], flat, layout)
    group = np.full(codes.shape[0], NONE, np.int32)
    for a in range(seeds.shape[0]):
        group[seeds[a]] = a
        _add(seeds[a], a, w)
    for row in visit:
        if group[row] == NONE:
            group[row] = _nearest(row, codes.shape[0], w)
            _add(row, group[row], w)
    for a in range(seeds.shape[0]):
        if w.size[a] > k:
            _reduce(a, k, group, w)
    for row in order:
        if group[row] == NONE:
            a = _nearest(row, k, w)
            group[row] = a if a != NONE else _nearest(row, codes.shape[0], w)
            w.size[group[row]] += 1
    return group
