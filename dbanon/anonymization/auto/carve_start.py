"""The start where k is large: the cheapest boxes of k rows, carved out one after the other."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.auto.block_start import segments, start_quickly
from dbanon.anonymization.auto.peel import complete
from dbanon.anonymization.auto.rounds import coordinates, without_gaps
from dbanon.anonymization.auto.space import ladders
from dbanon.anonymization.threads import in_threads

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from dbanon.anonymization.auto.space import Space

# Rows of a segment, in k: fewer cost much, more gain little.
_FEWEST, _MOST = 100, 600
# Times k rows near a seed, and how often a box is widened and shrunk again.
_NEAR, _TRIES = 16, 2
# Each cell is looked at so often for each seed, which is chosen anew as its rows are taken.
_LOOKS = 4
_A_SECOND = 2.0e8


def segment_for(space: Space, *, seeds: int, work: float, seconds: float = inf) -> int:
    """Return how many rows to carve at once with so much work, 0 when it is too little.

    work: cells that may be looked at; seconds: that there are for it, at most.
    """
    cells = min(work, seconds * _A_SECOND)
    of_a_row = space.n_rows / space.k * seeds * _LOOKS * space.codes.shape[1]
    rows = int(min(cells / of_a_row, _MOST * space.k))
    return rows if rows >= min(_FEWEST * space.k, space.n_rows) else 0


def start_by_carving(
    space: Space,
    *,
    seeds: int,
    segment: int,
    seed: int,
    over: Callable[[], bool] = lambda: False,
) -> NDArray[np.int32]:
    """Return the cluster of each row; the space as a whole must keep the rules.

    seeds: for each cluster, from which the cheapest box is taken; segment: the rows that are carved
    at once; over: whether time is, and segments that have not begun are cut as quickly as can be.
    """
    from dbanon.kernels.auto.carving import carve

    levels = ladders(space)
    order, ends = segments(space, coordinates(space), most=segment)
    label = np.empty(space.n_rows, np.int32)
    numbers = np.array((space.k, seeds, _NEAR, _TRIES, seed), np.int64)

    def work(i: int) -> None:
        mine = np.sort(order[ends[i] : ends[i + 1]])
        part = space.take(mine)
        if over():
            label[mine] = start_quickly(part) + ends[i]
            return
        carved = carve(
            part.codes,
            part.sensitive,
            space.costs.flat.copy(),
            space.costs.layout.copy(),
            space.rules,
            levels,
            numbers,
        )
        label[mine] = complete(part, carved, seed=seed, over=over) + ends[i]

    in_threads(work, range(len(ends) - 1))
    return without_gaps(label)
