"""t-closeness (Li, Li, Venkatasubramanian, ICDE 2007) and (n,t)-closeness (the same, TKDE 2010).

Distances are earth mover's distances in [0, 1], computed on the values that a class has: what it
lacks follows from sums over the whole relation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from dbanon.anonymize.models.bounds import Bound
from dbanon.anonymize.models.tally import Tally, steps_of
from dbanon.domain.models import HIERARCHICAL, ORDERED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from dbanon.anonymize.models.tally import Whole


@dataclass(frozen=True, slots=True)
class TCloseness:
    """The values of every class are distributed within t of the whole relation.

    distance: any two values are 1 apart (``equal``), or as far as their ranks (``ordered``), or as
    their common ancestor is high (``hierarchical``).
    """

    t: float
    distance: str
    bound: ClassVar[Bound] = Bound.AT_MOST

    @property
    def required(self) -> float:
        """The largest distance."""
        return self.t

    def achieved(self, tally: Tally, whole: Whole) -> NDArray[np.float64]:
        """Return the distance of each class from the whole relation."""
        return distance_from(tally, whole, whole.share, distance=self.distance)


@dataclass(frozen=True, slots=True)
class NTCloseness:
    """Every class is within t of one of the larger sets around it that have n rows.

    The sets are the rows with the same published values in the first quasi-identifiers of the
    policy, for any number of them, none being the whole relation.
    """

    n: int
    t: float
    distance: str
    bound: ClassVar[Bound] = Bound.AT_MOST

    @property
    def required(self) -> float:
        """The largest distance."""
        return self.t

    def achieved(self, tally: Tally, whole: Whole) -> NDArray[np.float64]:
        """Return the distance of each class from the nearest set of n rows, infinite without."""
        best = np.full(tally.n_classes, np.inf)
        if whole.n_rows >= self.n:
            best = distance_from(tally, whole, whole.share, distance=self.distance)
        for joint in whole.coarser:
            for some, share in self._sets(tally, whole, joint):
                part = classes_of(tally, some)
                near = distance_from(part, whole, share, distance=self.distance)
                best[some] = np.minimum(best[some], near)
        return best

    def _sets(
        self, tally: Tally, whole: Whole, joint: NDArray[np.int64]
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float64]]]:
        """Yield the classes of each set of n rows, and how its values are distributed."""
        rows = np.bincount(joint, weights=tally.size)
        order = np.argsort(joint, kind="stable")
        ends = np.cumsum(np.bincount(joint))
        for number in np.flatnonzero(rows >= self.n):
            some = order[ends[number - 1] if number else 0 : ends[number]]
            part = classes_of(tally, some)
            counts = np.bincount(part.values, weights=part.counts, minlength=len(whole.share))
            yield some, counts / rows[number]


def classes_of(whole: Tally, some: NDArray[np.int64]) -> Tally:
    """Return the tally of some classes, numbered in the order given."""
    lengths = whole.distinct()[some]
    start = np.cumsum(lengths) - lengths
    places = np.repeat(whole.start[some] - start, lengths) + np.arange(lengths.sum())
    classes = np.repeat(np.arange(len(some)), lengths)
    return Tally(classes, whole.values[places], whole.counts[places], start, whole.size[some])


def distance_from(
    classes: Tally, whole: Whole, share: NDArray[np.float64], *, distance: str
) -> NDArray[np.float64]:
    """Return how far each class is from a distribution over the values, (m,)."""
    if distance == ORDERED:
        return _ordered(classes, share, present=whole.share > 0)
    if distance == HIERARCHICAL:
        return _hierarchical(classes, whole, share)
    above = classes.shares() - share[classes.values]
    return classes.total(np.maximum(above, 0.0))


def _ordered(
    classes: Tally, share: NDArray[np.float64], *, present: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Add up, rank by rank of the values present, how much has to be carried to the next.

    Between two values of a class what it has stays the same while the other distribution grows, so
    that the sum there falls into two parts that prefix sums give; O(c log m) for c entries.
    """
    rank = np.cumsum(present) - 1
    steps = np.cumsum(share[present])
    sums = np.append(0.0, np.cumsum(steps))
    begin = rank[classes.values]
    end = np.append(begin[1:], 0)
    last = np.append(classes.start[1:], len(begin)) - 1
    end[last] = len(steps)
    total = np.cumsum(classes.shares())
    before = np.append(0.0, total)[classes.start]
    level = total - before[classes.classes]
    split = np.clip(np.searchsorted(steps, level, side="right"), begin, end)
    short = level * (split - begin) - (sums[split] - sums[begin])
    long = (sums[end] - sums[split]) - level * (end - split)
    moved = classes.total(short + long) + sums[begin[classes.start]]
    emd: NDArray[np.float64] = moved / max(len(steps) - 1, 1)
    return emd


def _hierarchical(classes: Tally, whole: Whole, share: NDArray[np.float64]) -> NDArray[np.float64]:
    """Add up over the edges of the tree what has to cross them."""
    steps = steps_of(whole.domain)
    mass = np.bincount(steps.node, weights=share[steps.leaf], minlength=len(steps.weight))
    order = np.argsort(steps.leaf, kind="stable")
    ends = np.cumsum(np.bincount(steps.leaf, minlength=len(share)))
    begin = np.append(0, ends)[classes.values]
    lengths = ends[classes.values] - begin
    total = float((steps.weight * mass).sum())
    if not lengths.sum():
        return np.zeros(classes.n_classes)
    entry = np.repeat(np.arange(len(lengths)), lengths)
    place = np.repeat(begin - (np.cumsum(lengths) - lengths), lengths) + np.arange(lengths.sum())
    node = steps.node[order[place]]
    keys = classes.classes[entry] * len(mass) + node
    found, where = np.unique(keys, return_inverse=True)
    there = np.bincount(where, weights=classes.shares()[entry])
    node, of_class = found % len(mass), found // len(mass)
    extra = steps.weight[node] * (np.abs(there - mass[node]) - mass[node])
    sums = np.bincount(of_class, weights=extra, minlength=classes.n_classes)
    emd: NDArray[np.float64] = np.maximum(total + sums, 0.0)
    return emd
