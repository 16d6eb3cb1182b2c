"""Clustering by k nearest neighbours (the baseline of Byun et al., DASFAA 2007)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from dbanon.anonymization.algorithms.clustering.k_member import weighted_heights
from dbanon.anonymization.limits import require_at_most
from dbanon.domain.assignment import Assignment

if TYPE_CHECKING:
    from dbanon.anonymization.interfaces import Requirement
    from dbanon.domain.assignment import EncodedTable


@dataclass(frozen=True, slots=True)
class NearestNeighbour:
    """The baseline of k-member clustering (section 5): a random record and its k - 1 nearest.

    The distance of two records is the sum over columns of the difference over the range or the
    height of the common ancestor over the height of the tree, weighted; NULL and a value are 1
    apart. Fewer than k leftovers join where the information loss rises least. Groups have k to
    2k - 1 rows for l = 1. For l > 1 only rows with a new sensitive value may join once the places
    left are as few as the values lacking. Ties go to the lower row and to the earlier group.
    """

    MAX_ROWS: ClassVar[int] = 100_000

    def assign(self, table: EncodedTable, requirement: Requirement, *, seed: int) -> Assignment:
        """Group the rows; O(n^2 d / k), for an l near k O(n^2 d)."""
        from dbanon.kernels.boxes.growth import NEIGHBOURS, growth

        require_at_most(self.MAX_ROWS, table, algorithm="nearest-neighbour")
        order = np.random.default_rng(seed).permutation(table.n_rows)
        group, n_groups = growth(
            table.all_codes,
            order,
            *weighted_heights(table),
            requirement.k,
            requirement.l,
            NEIGHBOURS,
        )
        return Assignment(group, int(n_groups))
