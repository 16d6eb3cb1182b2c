"""Models that count a population.

A reader who holds the population looks for the row that a published one may be. Where the regions
of two classes share rows of the population, as local recoding lets them, what one class takes of it
is missing from the other: of a population 1, 2, 3 let one class be 1 to 2 with two rows, and
another 2 to 3 with one row. The second row is that of 3, though its region holds two. No model may
therefore take the rows in a region for granted.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from dbanon.models.base import Model, Scope

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Presence(NamedTuple):
    """What the classes cover of a population.

    rows: (g,) the published rows of each class; covered: (g,) the rows of the population in its
    region; alone: (g,) those that are in no other class' region; taken: (g,) the published rows of
    all classes that share some of it; near: with which classes each shares some; uncovered: how
    many rows of the population are in no region.
    """

    rows: NDArray[np.int64]
    covered: NDArray[np.int64]
    alone: NDArray[np.int64]
    taken: NDArray[np.int64]
    near: tuple[frozenset[int], ...]
    uncovered: int


@dataclass(frozen=True, slots=True)
class PopulationModel(Model):
    """A model that a class meets, or not, by what it covers of a population."""

    scope = Scope.POPULATION
    of_whole = True
    one_row = "a population of one row a person"

    is_part: ClassVar[bool] = False
    """Whether every row must have one of its own in the population, and classes share none."""

    @abstractmethod
    def achieved(self, presence: Presence) -> NDArray[np.float64]:
        """Return what each class achieves, in the numbers of the SQL check."""

    def failing(self, presence: Presence) -> NDArray[np.bool_]:
        """Return which classes do not meet it."""
        return ~self.meets(self.achieved(presence))
