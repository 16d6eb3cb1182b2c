"""One-pass k-means (Lin and Wei, PAIS 2008)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from dbanon.anonymization.adjusting.repair import repair
from dbanon.anonymization.algorithms.clustering.growth import weighted_heights
from dbanon.anonymization.limits import require_at_most
from dbanon.domain.assignment import Assignment

if TYPE_CHECKING:
    from dbanon.anonymization.interfaces import Requirement
    from dbanon.domain.assignment import EncodedTable


@dataclass(frozen=True, slots=True)
class OnePassKMeans:
    """The one-pass k-means algorithm (section 3): n // k clusters around random records.

    The records, sorted by the quasi-identifiers, join the nearest center, which follows them;
    clusters of more than k then give up the records farthest from their center, which in random
    order go to the nearest cluster of fewer than k, and when there is none to the nearest. Groups
    have k to 2k - 1 rows for l = 1; those that lack distinct sensitive values are merged
    afterwards. A center has the mean of an ordered column without its NULLs, and the most frequent
    value of any other, also where there is a taxonomy. Distances are those of k-member clustering:
    the difference over the range, or the height of the common ancestor over the height of the
    tree, weighted and added; NULL and a value are 1 apart. Ties go to the lower row, the lower
    value and the earlier cluster.
    """

    MAX_ROWS: ClassVar[int] = 100_000

    def assign(self, table: EncodedTable, requirement: Requirement, *, seed: int) -> Assignment:
        """Group the rows; O(n^2 d / k)."""
        from dbanon.kernels.boxes.one_pass import one_pass

        require_at_most(self.MAX_ROWS, table, algorithm="one-pass-k-means")
        n_clusters = max(table.n_rows // requirement.k, 1)
        rng = np.random.default_rng(seed)
        seeds = np.sort(rng.choice(table.n_rows, n_clusters, replace=False))
        order = rng.permutation(table.n_rows)
        codes = table.codes
        visit = np.lexsort(codes.T[::-1])
        ordered = np.array([column.taxonomy is None for column in table.quasi])
        costs = weighted_heights(table)
        group = one_pass(codes, ordered, seeds, visit, order, *costs, requirement.k)
        return repair(table, Assignment(group, n_clusters), requirement)
