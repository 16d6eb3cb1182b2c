"""A table as the search sees it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from dbanon.anonymization.auto.rules import make_rules
from dbanon.anonymization.loss.costs import column_costs, height_costs, pack, set_costs
from dbanon.kernels.layout import SET, STRIDE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.anonymization.auto.rules import Rules
    from dbanon.anonymization.interfaces import Requirement
    from dbanon.anonymization.loss.costs import BoxCosts, ColumnCosts
    from dbanon.domain.assignment import EncodedColumn, EncodedTable

    Ladders = tuple[
        NDArray[np.int64],
        NDArray[np.int64],
        NDArray[np.int32],
        NDArray[np.int32],
        NDArray[np.float64],
    ]

Loss = Literal["ncp", "il"]
# Small clusters are as good when they are grown, in a fraction of the time.
_LEAST_CARVED = 20
# How far a level of an ordered column reaches to one side, in shares of all; the last, everywhere.
_STEPS = np.append(np.geomspace(0.004, 0.7, 13), 2.0)


class Space(NamedTuple):
    """Rows, costs and demands in plain arrays; nothing else goes to a kernel.

    columns: the quasi-identifiers, in the order of the codes, their weights relative to the
    greatest; codes: (n, d) int32; sensitive: (n, s) int32; costs: of boxes; rules: of diversity;
    k: the least size of a group, l at least.
    """

    columns: tuple[EncodedColumn, ...]
    codes: NDArray[np.int32]
    sensitive: NDArray[np.int32]
    costs: BoxCosts
    rules: Rules
    k: int

    @property
    def has_rules(self) -> bool:
        """Whether sensitive values matter."""
        return len(self.rules[0]) > 0

    def take(self, rows: NDArray[np.int64]) -> Space:
        """Return the space of some rows, in the order given."""
        return self._replace(codes=self.codes[rows], sensitive=self.sensitive[rows])

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return len(self.codes)


def make_space(table: EncodedTable, requirement: Requirement, *, loss: Loss) -> Space:
    """Return the space of a table; columns of many values come first, to end scans early."""
    order = np.argsort([-column.size for column in table.quasi], kind="stable")
    heaviest = max(column.rule.weight for column in table.quasi) or 1.0
    columns = tuple(_relative(table.quasi[i], heaviest) for i in order)
    rules = make_rules(table, requirement)
    return Space(
        columns=columns,
        codes=replace(table, quasi=columns).codes,
        sensitive=np.ascontiguousarray(
            table.sensitive if len(rules[0]) else table.sensitive[:, :0]
        ),
        costs=pack([_costs(column, loss).times(column.rule.weight) for column in columns]),
        rules=rules,
        k=max(requirement.k, requirement.l),
    )


def _relative(column: EncodedColumn, heaviest: float) -> EncodedColumn:
    """Divide the weight by the heaviest: what is too little a gain to look at is fixed."""
    return replace(column, rule=replace(column.rule, weight=column.rule.weight / heaviest))


def _costs(column: EncodedColumn, loss: Loss) -> ColumnCosts:
    if column.rule.recoding == "set" and loss == "ncp":
        costs = set_costs(column)
        if costs is not None:
            return costs
    return column_costs(column) if loss == "ncp" else height_costs(column)


def total_cost(space: Space, label: NDArray[np.int32]) -> float:
    """Return the sum over clusters of rows * cost of the box."""
    from dbanon.kernels.auto.clusters import total_cost as sum_up

    return float(sum_up(space.codes, *space.costs, label, int(label.max()) + 1))


def can_be_carved(space: Space) -> bool:
    """Whether boxes are what is published, and k is large enough for them to be carved."""
    is_set = space.costs.layout[:, STRIDE] == SET
    return space.k >= _LEAST_CARVED and not bool(is_set.any())


def ladders(space: Space) -> Ladders:
    """Return the levels of all columns (see ``dbanon.kernels.boxes.shrinking.Ladders``)."""
    heights, begin = np.zeros((2, len(space.columns)), np.int64)
    first, last = [np.empty(0, np.int32)], [np.empty(0, np.int32)]
    at = 0
    for j, column in enumerate(space.columns):
        if column.taxonomy is None:
            continue
        node = column.taxonomy.leaves
        nodes = [node]
        for _ in range(column.taxonomy.height - 1):
            node = np.maximum(column.taxonomy.parent[node], 0)
            nodes.append(node)
        of_leaf = np.stack(nodes, axis=1).ravel()
        heights[j], begin[j] = len(nodes), at
        first.append(column.taxonomy.leaf_lo[of_leaf].astype(np.int32))
        last.append(column.taxonomy.leaf_hi[of_leaf].astype(np.int32))
        at += len(of_leaf)
    return heights, begin, np.concatenate(first), np.concatenate(last), _STEPS
