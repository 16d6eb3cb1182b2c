"""Which of the two starts to take."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dbanon.anonymization.auto.block_start import segments, start_in_blocks
from dbanon.anonymization.auto.clock import Clock
from dbanon.anonymization.auto.cut_start import can_be_cut, start_in_cuts
from dbanon.anonymization.auto.peel import (
    affordable_lookups,
    complete,
    lattice,
    peel_off,
    start_by_peeling,
    tuples,
)
from dbanon.anonymization.auto.rounds import LIGHT, coordinates, improve
from dbanon.anonymization.auto.space import total_cost
from dbanon.kernels.layout import DISTINCT

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from dbanon.anonymization.auto.peel import Level
    from dbanon.anonymization.auto.space import Space

BLOCKS, CUTS, PEELING = "blocks", "cuts", "peeling"
# The starts are compared on so many rows of neighbours, in so many places, after two rounds.
_SAMPLE = 4_000
_PLACES = 3
_ROUNDS = 2
# Peeling pays if it is through with most rows after so many lookups of each tuple: with dense
# columns, most nodes take in next to nothing, and blocks lose less in the time that this costs.
_LOOKUPS, _MOST_LEFT = 4_000, 0.1
# Classes that must be so many times k rows on average do not come from peeling.
_LARGE = 4


class Start(NamedTuple):
    """The clusters to begin with, (n,) int32, and the name of the way they were made."""

    label: NDArray[np.int32]
    name: str


def start(
    space: Space,
    *,
    seed: int,
    before_rounds: Callable[[], None] = lambda: None,
    clock: Clock | None = None,
) -> Start:
    """Make the clusters to begin with, in the way that loses less on a sample.

    space: rows in the order of their tuples; before_rounds: called before a round is run; clock:
    when its time is over, the rest is made as quickly as can be. That rows are all distinct is not
    enough to tell: peeling may win by 18 % then, or get nowhere.
    """
    clock = clock or Clock()
    n_tuples = tuples(space)
    lookups = min(_LOOKUPS, affordable_lookups(n_tuples, clock) // n_tuples)
    levels = lattice(space) if lookups > 0 and not _is_scarce(space) else None
    samples = [] if clock.over() else _samples(space)
    if levels is not None:
        peeled = _peeled(samples, levels, lookups=lookups, seed=seed)
        if peeled is not None:
            before_rounds()
            blocks = [start_in_blocks(part, seed=seed) for part in samples]
            if _loses_less(samples, peeled, blocks, seed=seed):
                return Start(start_by_peeling(space, levels, seed=seed, clock=clock), PEELING)
            return Start(start_in_blocks(space, seed=seed, over=clock.over), BLOCKS)
    if can_be_cut(space):
        blocks = [start_in_blocks(part, seed=seed) for part in samples]
        before_rounds()
        if _loses_less(samples, [start_in_cuts(part) for part in samples], blocks, seed=seed):
            return Start(start_in_cuts(space, over=clock.over), CUTS)
    return Start(start_in_blocks(space, seed=seed, over=clock.over), BLOCKS)


def _peeled(
    samples: list[Space], levels: list[list[Level]], *, lookups: int, seed: int
) -> list[NDArray[np.int32]] | None:
    """Return samples as they are peeled, None if peeling does not get through one of them.

    lookups: how many it has for each tuple.
    """
    labels = []
    for part in samples:
        peeled = peel_off(part, levels, lookups=lookups * tuples(part))
        if (peeled < 0).mean() > _MOST_LEFT:
            return None
        labels.append(complete(part, peeled, seed=seed))
    return labels


def _loses_less(
    samples: list[Space],
    labels: list[NDArray[np.int32]],
    others: list[NDArray[np.int32]],
    *,
    seed: int,
) -> bool:
    """Whether samples lose less with these clusters than with others, after some rounds of each."""

    def lost(starts: list[NDArray[np.int32]]) -> float:
        pairs = zip(samples, starts, strict=True)
        return sum(_loss_after(part, label, seed=seed) for part, label in pairs)

    return lost(labels) < lost(others)


def _is_scarce(space: Space) -> bool:
    """Whether rare sensitive values make classes large.

    Peeling takes the first k rows that are diverse, and so uses such values up early; what is left
    would be one class. m disjoint classes can have l values each only if the rows of each value,
    m at most, add up to l m.
    """
    n_classes = space.n_rows // (_LARGE * space.k)
    for kind, column, limits in zip(*space.rules, strict=True):
        counts = np.bincount(space.sensitive[:, column])
        if kind == DISTINCT and np.minimum(counts, n_classes).sum() < limits[0] * n_classes:
            return True
    return False


def _samples(space: Space) -> list[Space]:
    order, ends = segments(space, coordinates(space), most=max(_SAMPLE, 4 * space.k))
    n_segments = len(ends) - 1
    places = _PLACES if n_segments > 10 * _PLACES else 1
    picked = np.linspace(0, n_segments - 1, places + 2).astype(int)[1:-1]
    return [space.take(np.sort(order[ends[i] : ends[i + 1]])) for i in picked]


def _loss_after(space: Space, label: NDArray[np.int32], *, seed: int) -> float:
    points = coordinates(space)
    for number in range(_ROUNDS):
        label = improve(space, label, points, effort=LIGHT, seed=seed, number=number)
    return total_cost(space, label)
