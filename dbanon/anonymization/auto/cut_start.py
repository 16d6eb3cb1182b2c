"""The start for dense columns where k is large: Mondrian's cuts, in segments."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.auto.block_start import segments, start_quickly
from dbanon.anonymization.auto.rounds import coordinates, without_gaps
from dbanon.anonymization.loss.costs import pack
from dbanon.anonymization.loss.frequency import by_frequency
from dbanon.anonymization.threads import in_threads
from dbanon.kernels.layout import DISTINCT, SET, STRIDE

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from dbanon.anonymization.auto.space import Space

# Cuts of more rows are a little better; these leave every processor something to do.
_SEGMENT = 16_000


def can_be_cut(space: Space) -> bool:
    """Whether cuts can keep the rules, and no column is published as sets."""
    is_set = space.costs.layout[:, STRIDE] == SET
    return bool((space.rules[0] == DISTINCT).all() and not is_set.any())


def start_in_cuts(space: Space, *, over: Callable[[], bool] = lambda: False) -> NDArray[np.int32]:
    """Return the cluster of each row; the space as a whole must keep the rules.

    Leaves of a taxonomy are numbered so that a cut can take off a frequent value alone, which the
    cuts of blocks cannot. over: whether time is, and segments that have not begun are cut as
    quickly as can be. O(n d^2 log(n / k)).
    """
    from dbanon.kernels.boxes.mondrian import mondrian

    codes, costs = space.codes.copy(), []
    for j, column in enumerate(space.columns):
        cost, rank = by_frequency(column)
        costs.append(cost.times(column.rule.weight))
        if rank is not None:
            codes[:, j] = rank[codes[:, j]]
    packed = pack(costs)
    least = max(1, int(space.rules[2][:, 0].max(initial=1)))
    cardinality = int(space.sensitive.max(initial=0)) + 1
    order, ends = segments(space, coordinates(space), most=max(_SEGMENT, 40 * space.k))
    label, relaxed = np.empty(space.n_rows, np.int32), False

    def work(i: int) -> None:
        mine = order[ends[i] : ends[i + 1]]
        if over():
            label[mine] = start_quickly(space.take(mine)) + ends[i]
            return
        numbers = np.arange(len(mine), dtype=np.int32)
        rows = np.column_stack([codes[mine], space.sensitive[mine], numbers])
        label[mine] = mondrian(rows, *packed, space.k, least, cardinality, relaxed)[0] + ends[i]

    in_threads(work, range(len(ends) - 1))
    return without_gaps(label)
