"""Grouping the rows of one region, and improving groups near the borders of several."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.adjusting.repair import failing
from dbanon.anonymization.auto.rounds import LIGHT, coordinates, improve
from dbanon.anonymization.auto.space import make_space, total_cost
from dbanon.anonymization.interfaces import listens
from dbanon.anonymization.loss.costs import box_losses, column_costs
from dbanon.anonymization.outcome import certify, publish, requirement_of
from dbanon.anonymization.problem import Problem, solve
from dbanon.anonymization.registry import algorithm_named
from dbanon.domain.assignment import Assignment
from dbanon.domain.errors import DbanonError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.anonymization.auto.space import Loss
    from dbanon.domain.assignment import EncodedTable, ValueColumn
    from dbanon.domain.policy import Policy
    from dbanon.domain.progress import Stages

_HELD = 0.05  # of the rows of a region are looked at again
_ROUNDS = 6


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Groups:
    """Groups of some rows that meet every model.

    group: (n,) int32, of each row, -1 for a suppressed one; lo, hi: (g, d) int32, the least and
    the greatest code of each; values: what is published of each.
    """

    group: NDArray[np.int32]
    lo: NDArray[np.int32]
    hi: NDArray[np.int32]
    values: tuple[ValueColumn, ...]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Return how many rows each group has."""
        return np.bincount(self.group[self.group >= 0], minlength=len(self.lo))

    @property
    def ncp(self) -> float:
        """Return the mean normalized certainty penalty, a suppressed row losing everything."""
        sizes, n_suppressed = self.sizes, int((self.group < 0).sum())
        lost = sum(float(one.loss[one.index] @ sizes) + n_suppressed for one in self.values)
        return lost / (len(self.values) * len(self.group))


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Border:
    """Rows that may do better in groups with those of other regions, and their groups so far.

    rows: which rows of the region; codes: (n, d) int32; sensitive: (n, s) int32; group: of each.
    """

    rows: NDArray[np.int64]
    codes: NDArray[np.int32]
    sensitive: NDArray[np.int32]
    group: NDArray[np.int32]


def group_rows(table: EncodedTable, policy: Policy, *, seed: int, stages: Stages) -> Groups:
    """Group the rows of a region; raises Unsatisfiable when they do not meet the policy."""
    found = solve(Problem(table, policy), seed=seed, stages=stages)
    return _groups(table, found.assignment, found.values.columns)


def _groups(table: EncodedTable, assignment: Assignment, values: tuple[ValueColumn, ...]) -> Groups:
    from dbanon.kernels.boxes.costs import group_boxes

    lo, hi, _ = group_boxes(table.codes, assignment.group, assignment.n_groups)
    return Groups(assignment.group, lo, hi, values)


def border_of(table: EncodedTable, groups: Groups, policy: Policy) -> Border:
    """Return the rows of the costliest groups: those for which most is missing within the region.

    Of groups whose rows cost the same, the first. None where the algorithm makes no groups that
    could be improved: whoever has chosen another one than ``auto`` wants the shape of its groups.
    """
    columns = [column_costs(column) for column in table.quasi]
    weights = np.array([column.rule.weight for column in table.quasi])
    cost = box_losses(columns, groups.lo, groups.hi) @ weights
    order = np.argsort(-cost, kind="stable")
    rows = np.cumsum(groups.sizes[order])
    most = _HELD * table.n_rows if listens(algorithm_named(policy.algorithm)) else 0.0
    is_held = np.zeros(len(cost) + 1, np.bool_)
    is_held[order[(rows <= most) & (cost[order] > 0.0)]] = True
    held = np.flatnonzero(is_held[groups.group])
    return Border(held, table.codes[held], table.sensitive[held], groups.group[held])


def improve_border(
    table: EncodedTable, before: NDArray[np.int32], policy: Policy, *, seed: int
) -> Groups | None:
    """Improve groups of several regions together; None where nothing comes of it.

    before: (n,) the group of each row, numbered apart by region. None of the rows is left out.
    """
    policy = replace(policy, max_suppressed=0.0)
    loss: Loss = "il" if policy.params.get("loss") == "il" else "ncp"
    try:
        requirement = requirement_of(table, policy)
        space = make_space(table, requirement, loss=loss)
        label = np.unique(before, return_inverse=True)[1].astype(np.int32)
        former, points = total_cost(space, label), coordinates(space)
        for number in range(_ROUNDS):
            label = improve(space, label, points, effort=LIGHT, seed=seed, number=number)
        assignment = Assignment(label, int(label.max()) + 1)
        if total_cost(space, label) >= former or failing(table, assignment, requirement).any():
            return None
        published = publish(table, policy, assignment)
        certify(published, policy, None, budget=0)
    except DbanonError:  # then they stay as they are, which is proved
        return None
    return _groups(table, assignment, published.values.columns)
