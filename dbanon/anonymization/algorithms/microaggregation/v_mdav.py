"""V-MDAV (Solanas, Martinez-Balleste, COMPSTAT 2006)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dbanon.anonymization.adjusting.repair import repair
from dbanon.anonymization.algorithms.microaggregation.points import mdav_points
from dbanon.domain.assignment import Assignment

if TYPE_CHECKING:
    from dbanon.anonymization.interfaces import Requirement
    from dbanon.domain.assignment import EncodedTable


@dataclass(frozen=True, slots=True)
class VMdav:
    """MDAV of variable size: a group of k grows while its next row is nearer to it than to others.

    The seed is the row farthest from the average of the table. The row nearest to any member
    joins, up to 2k - 1 rows, when that distance is less than ``gamma`` times its distance to the
    nearest row without a group; 0 makes all groups k, about 1 suits clustered data, and 0.2
    scattered data. The fewer than k rows left over join the groups of the nearest means, so that
    a group can have up to 3k - 2 rows. Rows are points as ``mdav_points`` says. Ties go to the
    lower row. Groups that lack distinct sensitive values are merged afterwards.
    """

    gamma: float = 0.2

    def assign(self, table: EncodedTable, requirement: Requirement, *, seed: int) -> Assignment:
        """Group the rows; O(n^2 d) at worst, less on a tree of few columns."""
        from dbanon.kernels.points.mdav_tree import LEAF
        from dbanon.kernels.points.v_mdav import v_mdav

        group, n_groups = v_mdav(mdav_points(table), requirement.k, float(self.gamma), LEAF)
        return repair(table, Assignment(group, int(n_groups)), requirement)
