"""Start for dense columns (greedy k-member clustering in blocks), and the quickest start."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.auto.rounds import coordinates, without_gaps
from dbanon.anonymization.threads import in_threads
from dbanon.kernels.layout import WIDE

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from dbanon.anonymization.auto.space import Space
    from dbanon.kernels.auto.diversity import Rules

SEGMENT = 4_000
# Of many columns more rows are near in some, and a greedy group is worth looking for among more.
_ROWS_OF_WIDE = 2_000


def start_in_blocks(
    space: Space, *, seed: int, over: Callable[[], bool] = lambda: False
) -> NDArray[np.int32]:
    """Return the cluster of each row; after ``over``, segments are cut as quickly as possible."""
    from dbanon.kernels.auto.pools import start_segment

    order, ends = segments(space, coordinates(space), most=max(SEGMENT, 40 * space.k))
    label = np.empty(space.n_rows, np.int32)

    def work(i: int) -> None:
        mine = order[ends[i] : ends[i + 1]]
        if over():
            label[mine] = start_quickly(space.take(mine)) + ends[i]
            return
        part = start_segment(
            space.codes[mine],
            space.sensitive[mine],
            space.costs.flat.copy(),
            space.costs.layout.copy(),
            space.rules,
            space.k,
            max(_ROWS_OF_WIDE if space.codes.shape[1] >= WIDE else 500, 10 * space.k),
            seed,
        )
        label[mine] = part + ends[i]

    in_threads(work, range(len(ends) - 1))
    return without_gaps(label)


def segments(
    space: Space, points: NDArray[np.float32], *, most: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows in order of segments, and the end of each; every segment meets the rules."""
    from dbanon.kernels.auto.blocks import halve
    from dbanon.kernels.auto.diversity import make_rules, rows_hold

    order, ends = halve(points, most)
    if not space.has_rules:
        return order, ends
    rules = make_rules(*space.rules, space.sensitive)
    kept = [0]
    for end in ends[1:].tolist():
        if rows_hold(rules, order[kept[-1] : end]):
            kept.append(end)
    if kept[-1] != len(order):
        kept[-1:] = [len(order)] if len(kept) > 1 else [0, len(order)]
    return order, np.array(kept)


def start_quickly(space: Space) -> NDArray[np.int32]:
    """Return the cluster of each row, by halving or dealing; O(n log n) for each rule.

    Halves rows at the median of the widest column while both halves meet the rules. If the first
    halves do not, deals the rows of each value to clusters.
    """
    from dbanon.kernels.auto.blocks import halve
    from dbanon.kernels.auto.diversity import make_rules, rows_hold

    most = 2 * space.k - 1
    order, _ = halve(coordinates(space), most)
    rules = make_rules(*space.rules, space.sensitive)

    def parts(start: int, stop: int) -> list[int] | None:
        """Return the ends of the clusters of some rows, None if they cannot meet the rules."""
        if stop - start > most:
            middle = (start + stop) // 2
            left, right = parts(start, middle), parts(middle, stop)
            if left is not None and right is not None:
                return [*left, *right]
        holds = not space.has_rules or rows_hold(rules, order[start:stop])
        return [stop] if holds else None

    ends = parts(0, space.n_rows) or [space.n_rows]
    label = np.empty(space.n_rows, np.int32)
    label[order] = np.repeat(np.arange(len(ends)), np.diff([0, *ends]))
    return label if len(ends) > 1 else _dealt(space, order, rules)


def _dealt(space: Space, order: NDArray[np.int64], rules: Rules) -> NDArray[np.int32]:
    """Return clusters with the same share of the rows of each value, dealt in order."""
    from dbanon.kernels.auto.diversity import labels_hold

    columns = np.unique(space.rules[1])
    key = np.unique(space.sensitive[order][:, columns], axis=0, return_inverse=True)[1].ravel()
    by_key = np.argsort(key, kind="stable")
    counts = np.bincount(key)
    rank = np.arange(space.n_rows) - np.repeat(np.cumsum(counts) - counts, counts)
    label = np.zeros(space.n_rows, np.int32)
    n_clusters = space.n_rows // space.k
    while n_clusters > 1:
        label[order[by_key]] = rank * n_clusters // np.repeat(counts, counts)
        sizes = np.bincount(label, minlength=n_clusters)
        if sizes.min() >= space.k and labels_hold(rules, label, n_clusters):
            return label
        n_clusters //= 2
    return np.zeros(space.n_rows, np.int32)
