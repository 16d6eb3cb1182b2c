"""Group the rows of a region, improve groups near borders, and join all regions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.adjusting.repair import failing
from dbanon.anonymization.auto.rounds import LIGHT, coordinates, improve
from dbanon.anonymization.auto.space import Loss, make_space, total_cost
from dbanon.anonymization.interfaces import listens
from dbanon.anonymization.loss.costs import box_losses, column_costs
from dbanon.anonymization.loss.metrics import Publication
from dbanon.anonymization.outcome import Outcome, certify, joined, outcome, publish, requirement_of
from dbanon.anonymization.problem import Problem, solve
from dbanon.anonymization.recodings.groups import of_labels
from dbanon.anonymization.registry import METRICS, algorithm_named
from dbanon.domain.assignment import Assignment, EncodedTable, GroupValues, ValueColumn
from dbanon.domain.errors import DbanonError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from dbanon.anonymization.regions.cutting import Domains
    from dbanon.domain.outcomes import Stages
    from dbanon.domain.policy import Policy


_HELD = 0.05  # of the rows of a region are looked at again
_ROUNDS = 6


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Groups:
    """Groups of some rows that meet every model.

    group: (n,) int32, -1 if suppressed; lo, hi: (g, d) int32, codes; values: published values.
    """

    group: NDArray[np.int32]
    lo: NDArray[np.int32]
    hi: NDArray[np.int32]
    values: tuple[ValueColumn, ...]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Return the number of rows of each group."""
        return np.bincount(self.group[self.group >= 0], minlength=len(self.lo))

    @property
    def ncp(self) -> float:
        """Return the mean normalized certainty penalty; a suppressed row loses everything."""
        sizes, n_suppressed = self.sizes, int((self.group < 0).sum())
        lost = sum(float(one.loss[one.index] @ sizes) + n_suppressed for one in self.values)
        return lost / (len(self.values) * len(self.group))


def group_rows(table: EncodedTable, policy: Policy, *, seed: int, stages: Stages) -> Groups:
    """Group the rows of a region; raises Unsatisfiable if they do not meet the policy."""
    found = solve(Problem(table, policy), seed=seed, stages=stages)
    return _groups(table, found.assignment, found.values.columns)


def _groups(table: EncodedTable, assignment: Assignment, values: tuple[ValueColumn, ...]) -> Groups:
    from dbanon.kernels.boxes.costs import group_boxes

    lo, hi, _ = group_boxes(table.codes, assignment.group, assignment.n_groups)
    return Groups(assignment.group, lo, hi, values)


def border_of(table: EncodedTable, groups: Groups, policy: Policy) -> NDArray[np.int64]:
    """Return the rows of the costliest groups, which gain most from rows outside the region.

    No rows if the algorithm is not ``auto``: other algorithms determine the shape of their groups.
    """
    columns = [column_costs(column) for column in table.quasi]
    weights = np.array([column.rule.weight for column in table.quasi])
    cost = box_losses(columns, groups.lo, groups.hi) @ weights
    order = np.argsort(-cost, kind="stable")
    rows = np.cumsum(groups.sizes[order])
    most = _HELD * table.n_rows if listens(algorithm_named(policy.algorithm)) else 0.0
    is_held = np.zeros(len(cost) + 1, np.bool_)
    is_held[order[(rows <= most) & (cost[order] > 0.0)]] = True
    return np.flatnonzero(is_held[groups.group])


def improve_border(
    table: EncodedTable, before: NDArray[np.int32], policy: Policy, *, seed: int
) -> Groups | None:
    """Improve groups of several regions together; None without improvement; before: (n,)."""
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


# These compare each row with its published values, which takes arrays of all rows.
_OF_ROWS = frozenset(
    {"sse-ratio", "max-radius", "size-times-radius"}
    | {"il1", "il2", "il3", "il4", "il5", "il-overall", "il1s"}
)


@dataclass(frozen=True, eq=False)
class _Joined(Publication):
    """A publication with known bounds of the groups, without the codes of the rows."""

    lo: NDArray[np.int32]
    hi: NDArray[np.int32]

    @cached_property
    def boxes(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Least and greatest code of each class, (n_classes, d) each."""
        from dbanon.kernels.boxes.costs import group_boxes

        shown = self.assignment.group >= 0
        class_of = np.zeros(len(self.lo), np.int32)
        class_of[self.assignment.group[shown]] = self.classes[shown]
        least, most = (group_boxes(one, class_of, len(self.size)) for one in (self.lo, self.hi))
        return least[0], most[1]


def join(
    parts: Sequence[Groups],
    moved: Sequence[tuple[NDArray[np.int64], Groups]],
    domains: Domains,
    sensitive: NDArray[np.int32],
    *,
    policy: Policy,
) -> Outcome:
    """Return the outcome of all regions, their rows one region after the other.

    moved: rows that were regrouped, and their groups; sensitive: (n, s) the codes of all rows.
    Empty groups are dropped. Metrics that need each row's values are omitted.
    """
    tables = [*parts, *(groups for _, groups in moved)]
    group, kept = _numbered(parts, moved, tables)
    assignment = Assignment(group, sum(map(len, kept)))
    size = np.bincount(group[group >= 0], minlength=assignment.n_groups)
    values = GroupValues(_columns(tables, kept, size), assignment.n_groups)
    table = domains.table(domains.quasi, sensitive, class_label=policy.class_label)
    plain = publish(table, policy, assignment, values=values)
    whole = _Joined(
        plain.table,
        plain.assignment,
        plain.values,
        plain.k,
        plain.classes,
        plain.size,
        lo=np.concatenate([one.lo[of] for one, of in zip(tables, kept, strict=True)]),
        hi=np.concatenate([one.hi[of] for one, of in zip(tables, kept, strict=True)]),
    )
    metrics = {name: metric for name, metric in METRICS.items() if name not in _OF_ROWS}
    return outcome(whole, policy, metrics=metrics)


def _numbered(
    parts: Sequence[Groups],
    moved: Sequence[tuple[NDArray[np.int64], Groups]],
    tables: Sequence[Groups],
) -> tuple[NDArray[np.int32], list[NDArray[np.int32]]]:
    """Return the group of each row without gaps, and the remaining groups of each table."""
    ends = np.cumsum([len(one.lo) for one in tables])
    first = (ends - [len(one.lo) for one in tables]).astype(np.int32)
    group = np.concatenate(
        [np.where(one.group < 0, -1, one.group + at) for one, at in zip(parts, first, strict=False)]
    )
    for (rows, groups), at in zip(moved, first[len(parts) :], strict=True):
        group[rows] = groups.group + at
    is_used = np.zeros(int(ends[-1]), np.bool_)
    is_used[group[group >= 0]] = True
    number = np.append(np.cumsum(is_used) - 1, -1).astype(np.int32)
    kept = [np.flatnonzero(is_used[i:j]).astype(np.int32) for i, j in zip(first, ends, strict=True)]
    return number[group], kept


def _columns(
    tables: Sequence[Groups], kept: Sequence[NDArray[np.int32]], size: NDArray[np.int64]
) -> tuple[ValueColumn, ...]:
    return tuple(
        _column([one.values[i].of_groups(of) for one, of in zip(tables, kept, strict=True)], size)
        for i in range(len(tables[0].values))
    )


def _column(parts: Sequence[ValueColumn], size: NDArray[np.int64]) -> ValueColumn:
    """Join a column of all parts; the loss of a label is the mean over its rows."""
    nodes = dict.fromkeys(node for part in parts for node in part.nodes)
    both = joined(parts)
    index, labels, loss = of_labels(
        both.labels, both.index.astype(np.int64), loss=both.loss[both.index], size=size
    )
    return replace(both, index=index, labels=labels, loss=loss, nodes=tuple(nodes))
