"""Models that count a population.

With local recoding, the regions of two classes may share population rows, and rows taken by one
class are missing from the other. Example: population 1, 2, 3; class 1 to 2 has two rows, class 2 to
3 has one. The latter must be 3, although its region holds two rows. So models must not simply count
the rows in a region.
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
    """Population rows covered by the classes, (g,) each.

    rows: published rows; covered: population rows in the region; alone: those in no other region;
    taken: published rows of all classes that share some of it; near: the classes that share some;
    uncovered: number of population rows in no region.
    """

    rows: NDArray[np.int64]
    covered: NDArray[np.int64]
    alone: NDArray[np.int64]
    taken: NDArray[np.int64]
    near: tuple[frozenset[int], ...]
    uncovered: int


@dataclass(frozen=True, slots=True)
class PopulationModel(Model):
    """A model of the population rows that each class covers."""

    scope = Scope.POPULATION
    of_whole = True
    one_row = "a population of one row a person"

    is_part: ClassVar[bool] = False
    """True if every row needs its own population row, and classes share none."""

    @abstractmethod
    def achieved(self, presence: Presence) -> NDArray[np.float64]:
        """Return the achievement of each class, in the unit of the SQL check."""

    def failing(self, presence: Presence) -> NDArray[np.bool_]:
        """Return a mask of failing classes."""
        return ~self.meets(self.achieved(presence))
