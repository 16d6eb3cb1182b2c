"""Which of the two starts to take."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dbanon.anonymization.auto.block_start import segments, start_in_blocks
from dbanon.anonymization.auto.peel import lattice, start_by_peeling
from dbanon.anonymization.auto.rounds import LIGHT, coordinates, improve
from dbanon.anonymization.auto.space import total_cost
from dbanon.kernels.layout import DISTINCT

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from dbanon.anonymization.auto.space import Space

BLOCKS, PEELING = "blocks", "peeling"
# The starts are compared on so many rows of neighbours, in so many places, after two rounds.
_SAMPLE = 4_000
_PLACES = 3
_ROUNDS = 2
# Classes that must be so many times k rows on average do not come from peeling.
_LARGE = 4


class Start(NamedTuple):
    """The clusters to begin with, (n,) int32, and the name of the way they were made."""

    label: NDArray[np.int32]
    name: str


def start(space: Space, *, seed: int, before_rounds: Callable[[], None] = lambda: None) -> Start:
    """Make the clusters to begin with, in the way that loses less on a sample.

    space: rows in the order of their tuples; before_rounds: called before a round is run. A rule
    of thumb is not enough: on rows that are all distinct, peeling may win by 18 % or need a lattice
    that is too large.
    """
    ways: dict[str, Callable[[Space], NDArray[np.int32]]] = {
        BLOCKS: lambda part: start_in_blocks(part, seed=seed)
    }
    levels = None if _is_scarce(space) else lattice(space)
    if levels is not None:
        ways[PEELING] = lambda part: start_by_peeling(part, levels, seed=seed)
    loss = dict.fromkeys(ways, 0.0)
    if len(ways) > 1:
        for part in _samples(space):
            labels = {name: way(part) for name, way in ways.items()}
            before_rounds()
            for name, label in labels.items():
                loss[name] += _loss_after(part, label, seed=seed)
    name = min(loss, key=lambda name: loss[name])
    return Start(ways[name](space), name)


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
