"""What an attacker believes of persons, by the classes that they may be in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from dbanon.anonymization.released.covering import Coverage
    from dbanon.models.tally import Tally

_CELLS = 4_000_000  # numbers that are held at once


def beliefs(
    coverage: Coverage, tally: Tally, weight: NDArray[np.float64], *, n_codes: int
) -> Iterator[tuple[slice, NDArray[np.float64]]]:
    """Yield some persons after the other, and how likely each has each value, (p, n_codes).

    A row of a class is that of the person with a chance as great as the weight of the class,
    (n_classes,), so that each of its values counts as often as the class has it.
    """
    lengths = tally.distinct()
    of_person = np.diff(coverage.start)
    entries = np.append(0, np.cumsum(lengths[coverage.classes]))[coverage.start]
    first = 0
    while first < len(of_person):
        most = min(first + max(_CELLS // max(n_codes, 1), 1), len(of_person))
        last = int(np.searchsorted(entries, entries[first] + _CELLS, side="right")) - 1
        last = min(max(last, first + 1), most)
        some = slice(first, last)
        classes = coverage.classes[coverage.start[first] : coverage.start[last]]
        person = np.repeat(np.arange(last - first), of_person[some])
        held = lengths[classes]
        place = np.repeat(tally.start[classes] - (np.cumsum(held) - held), held)
        place += np.arange(len(place))
        key = np.repeat(person, held) * n_codes + tally.values[place]
        mass = np.repeat(weight[classes], held) * tally.counts[place]
        found = np.bincount(key, mass, minlength=(last - first) * n_codes)
        found = found.reshape(last - first, n_codes)
        yield some, found / found.sum(axis=1, keepdims=True)
        first = last


def guesses(belief: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the likeliest value of each person, of equally likely ones that of the least code."""
    top = belief.max(axis=1, keepdims=True)
    return np.asarray((belief >= top * (1 - 1e-12)).argmax(axis=1), np.int64)
