"""A table as the search sees it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from dbanon.anonymization.auto.rules import make_rules
from dbanon.anonymization.loss.costs import column_costs, height_costs, pack, set_costs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.anonymization.auto.rules import Rules
    from dbanon.anonymization.interfaces import Requirement
    from dbanon.anonymization.loss.costs import BoxCosts, ColumnCosts
    from dbanon.domain.assignment import EncodedColumn, EncodedTable

Loss = Literal["ncp", "il"]


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
