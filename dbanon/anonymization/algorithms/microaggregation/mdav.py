"""MDAV-generic (Domingo-Ferrer, Torra, DMKD 2005) and MDAV of variable size.

The latter is V-MDAV (Solanas, Martinez-Balleste, COMPSTAT 2006).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from dbanon.anonymization.adjusting.repair import repair
from dbanon.anonymization.algorithms.microaggregation.points import mdav_points
from dbanon.anonymization.interfaces import require_at_most
from dbanon.anonymization.loss.costs import BoxCosts, ColumnCosts, Shape, height_costs, pack
from dbanon.anonymization.loss.scores import ordinal_places, standardized
from dbanon.domain.assignment import Assignment
from dbanon.domain.table import Structure

if TYPE_CHECKING:
    from dbanon.anonymization.interfaces import Requirement
    from dbanon.domain.assignment import EncodedColumn, EncodedTable
    from dbanon.kernels.arrays import Floats, Int32s


@dataclass(frozen=True, slots=True)
class Mdav:
    """Maximum distance to average vector: groups of k around the most distant records.

    Numbers and dates are standardized and averaged. Ordinal columns have the lower median as
    average, and steps over the number of values as distance. Others have the most frequent value as
    average, and the height of the lowest common ancestor over that of the tree as distance (0 or 1
    without a taxonomy). Squared distances are weighted and added; NULL and a value are 1 apart.
    Ties go to the lower row. Groups are merged afterwards for l > 1, so at most 2k - 1 rows for l =
    1 only.

    Numbers and dates without NULL are searched on a kd-tree with the same result and no row limit.
    """

    MAX_ROWS: ClassVar[int] = 50_000

    def assign(self, table: EncodedTable, requirement: Requirement, *, seed: int) -> Assignment:
        """Group the rows; O(n^2 d / k), less on a tree of few columns."""
        numbers = [column for column in table.quasi if column.structure is Structure.LINE]
        points = _points(numbers, table.n_rows)
        if len(numbers) == len(table.quasi) and points.size and not np.isnan(points).any():
            from dbanon.kernels.points.mdav_tree import LEAF, mdav_tree

            group, n_groups = mdav_tree(points, requirement.k, LEAF)
        else:
            require_at_most(self.MAX_ROWS, table, algorithm="mdav")
            group, n_groups = _brute(table, points, requirement.k)
        return repair(table, Assignment(group, int(n_groups)), requirement)


@dataclass(frozen=True, slots=True)
class VMdav:
    """MDAV of variable size: a group of k grows while its next row is nearer to it than to others.

    The seed is the row farthest from the table's average. The row nearest to any member joins, up
    to 2k - 1 rows, if that distance is less than ``gamma`` times its distance to the nearest
    ungrouped row; 0 makes all groups k, about 1 suits clustered data, 0.2 scattered data. Fewer
    than k leftovers join the groups of the nearest means, so a group has at most 3k - 2 rows. Rows
    are ``mdav_points``. Ties go to the lower row. Groups are merged afterwards for l > 1.
    """

    gamma: float = 0.2

    def assign(self, table: EncodedTable, requirement: Requirement, *, seed: int) -> Assignment:
        """Group the rows; O(n^2 d) at worst, less on a tree of few columns."""
        from dbanon.kernels.points.mdav_tree import LEAF, v_mdav

        group, n_groups = v_mdav(mdav_points(table), requirement.k, float(self.gamma), LEAF)
        return repair(table, Assignment(group, int(n_groups)), requirement)


def _brute(table: EncodedTable, points: Floats, k: int) -> tuple[Int32s, int]:
    """Compare all pairs of rows."""
    from dbanon.kernels.points.mdav import mdav

    others = [column for column in table.quasi if column.structure is not Structure.LINE]
    costs = BoxCosts(np.empty(0), np.empty((0, 3), np.int64))
    if others:
        costs = pack([_steps(column) for column in others])
    return mdav(points, replace(table, quasi=tuple(others)).codes, *costs, k)


def _steps(column: EncodedColumn) -> ColumnCosts:
    """Return the weighted distances of codes of a column that is no number."""
    root = column.rule.weight**0.5
    if column.structure is Structure.TREE:
        return height_costs(column).times(root)
    return ColumnCosts(column.size, ordinal_places(column), Shape.ORDER, everything=root)


def _points(columns: list[EncodedColumn], n_rows: int) -> Floats:
    """Return the standardized columns that vary, (n, varying)."""
    varying = [column for column in columns if (column.codes != column.codes[0]).any()]
    points = np.empty((n_rows, len(varying)))
    for i, column in enumerate(varying):
        points[:, i] = standardized(column)
    return points
