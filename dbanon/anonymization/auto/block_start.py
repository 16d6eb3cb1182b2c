"""The start for dense columns: greedy k-member clustering in blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.auto.fallback import start_quickly
from dbanon.anonymization.auto.rounds import coordinates, without_gaps
from dbanon.anonymization.threads import in_threads
from dbanon.kernels.layout import WIDE

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from dbanon.anonymization.auto.space import Space

SEGMENT = 4_000
# Of many columns more rows are near in some, and a greedy group is worth looking for among more.
_ROWS_OF_WIDE = 2_000


def start_in_blocks(
    space: Space, *, seed: int, over: Callable[[], bool] = lambda: False
) -> NDArray[np.int32]:
    """Return the cluster of each row; the space as a whole must keep the rules.

    over: whether time is, and segments that have not begun are cut as quickly as can be.
    """
    from dbanon.kernels.auto.start import start_segment

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
    """Return the rows in order of segments, and where each begins; each keeps the rules."""
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
