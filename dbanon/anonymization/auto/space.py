"""A table in the form that the search takes: sorted equal rows, of which a surplus is frozen."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from dbanon.anonymization.loss.costs import (
    BoxCosts,
    ColumnCosts,
    column_costs,
    end_costs,
    height_costs,
    pack,
    set_costs,
)
from dbanon.kernels.layout import DISTINCT, NONE, NOTHING, SET, STRIDE
from dbanon.models.demands import wholes

if TYPE_CHECKING:
    from dbanon.anonymization.interfaces import Requirement
    from dbanon.domain.assignment import EncodedColumn, EncodedTable
    from dbanon.kernels.layout import Floats, Int32s, Int64s
    from dbanon.models.base import Demand, Rule

    Ladders = tuple[Int64s, Int64s, Int32s, Int32s, Floats]


Loss = Literal["ncp", "il"]
# Kinds, columns and limits of what sensitive values must keep (``dbanon.kernels.auto.diversity``).
Rules = tuple["Int64s", "Int64s", "Floats"]
# Small clusters are as good when they are grown, in a fraction of the time.
LEAST_CARVED = 20
# How far a level of an ordered column reaches to one side, in shares of all; the last, everywhere.
_STEPS = np.append(np.geomspace(0.004, 0.7, 13), 2.0)


class Space(NamedTuple):
    """Rows, costs and demands in plain arrays, as kernels take them.

    columns: the quasi-identifiers in code order, weights relative to the greatest; codes: (n, d)
    int32; sensitive: (n, s) int32; costs: of boxes; rules: of diversity; k: least size of a group,
    at least l.
    """

    columns: tuple[EncodedColumn, ...]
    codes: Int32s
    sensitive: Int32s
    costs: BoxCosts
    rules: Rules
    k: int

    @property
    def counts_distinct(self) -> bool:
        """Return True if the rules ask for nothing but numbers of distinct values."""
        return bool((self.rules[0] == DISTINCT).all())

    @property
    def has_rules(self) -> bool:
        """True if sensitive values matter."""
        return len(self.rules[0]) > 0

    def take(self, rows: Int64s) -> Space:
        """Return the space of some rows, in the order given."""
        codes, sensitive = (np.take(part, rows, axis=0) for part in (self.codes, self.sensitive))
        return self._replace(codes=codes, sensitive=sensitive)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.codes)

    @property
    def surplus(self) -> float:
        """Cost of every row beyond that of its box, because ends of intervals are separate."""
        total = 0.0
        for start, _, stride, lo, hi in self.costs.layout:
            if stride == 0 and hi != NONE:
                total += self.costs.flat[start + 1 + hi]
            elif stride == 0 and lo != NOTHING:
                total -= self.costs.flat[start + 1 + lo]
        return total


def make_space(table: EncodedTable, requirement: Requirement, *, loss: Loss) -> Space:
    """Return the space of a table; columns of many values come first, to end scans early."""
    order = np.argsort([-column.size for column in table.quasi], kind="stable")
    heaviest = max(column.rule.weight for column in table.quasi)
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


def make_rules(table: EncodedTable, requirement: Requirement) -> Rules:
    """Return the rules that a search can keep; merging enforces the rest."""
    found: list[tuple[int, int, list[float]]] = []
    if requirement.l > 1:
        columns = range(table.sensitive.shape[1])
        found += [(DISTINCT, column, [requirement.l, 0.0]) for column in columns]
    for demand in requirement.demands:
        if (rule := _rule(table, demand)) is not None:
            kind, numbers = rule
            found.append((kind, demand.column or 0, numbers))
    width = max([2, *(len(numbers) for _, _, numbers in found)])
    limits = np.zeros((len(found), width))
    for i, (_, _, numbers) in enumerate(found):
        limits[i, : len(numbers)] = numbers
    return (
        np.array([kind for kind, _, _ in found], np.int64),
        np.array([column for _, column, _ in found], np.int64),
        limits,
    )


def _rule(table: EncodedTable, demand: Demand) -> Rule | None:
    """Return the rule of a demand, None if the search has none."""
    if demand.column is None or demand.among or demand.jointly:
        return None
    (whole,) = wholes(table, [demand], np.arange(table.n_rows))
    return demand.model.search_rule(whole)


def _relative(column: EncodedColumn, heaviest: float) -> EncodedColumn:
    """Divide the weight by the heaviest, because negligible gains are absolute; all 0 become 1."""
    weight = column.rule.weight / heaviest if heaviest > 0.0 else 1.0
    return replace(column, rule=replace(column.rule, weight=weight))


def _costs(column: EncodedColumn, loss: Loss) -> ColumnCosts:
    if column.rule.recoding == "set" and loss == "ncp":
        costs = set_costs(column)
        if costs is not None:
            return costs
    if (costs := end_costs(column)) is not None:
        return costs
    return column_costs(column) if loss == "ncp" else height_costs(column)


def total_cost(space: Space, label: Int32s) -> float:
    """Return the sum over clusters of rows * cost of the box."""
    from dbanon.kernels.auto.clusters import total_cost as sum_up

    total: float = sum_up(space.codes, *space.costs, label, int(label.max()) + 1)
    return total - space.n_rows * space.surplus


def can_be_carved(space: Space) -> bool:
    """Return True if boxes are published, and k is large enough to carve them."""
    is_set = space.costs.layout[:, STRIDE] == SET
    return space.k >= LEAST_CARVED and not bool(is_set.any())


def ladders(space: Space) -> Ladders:
    """Return the levels of all columns."""
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


class Frozen(NamedTuple):
    """Rows that a search moves, and rows that stay with their equals.

    space: the active rows, sorted by tuple; rows: (m,) their indices in the table; bounds: (u + 1,)
    the start of each tuple; frozen: (n - m,) the other rows; tuple_of_frozen: (n - m,) their
    tuples.
    """

    space: Space
    rows: Int64s
    bounds: Int64s
    frozen: Int64s
    tuple_of_frozen: Int64s


def freeze(space: Space) -> Frozen:
    """Sort rows by their codes, and set surplus rows of frequent tuples aside; O(n)."""
    from dbanon.kernels.auto.diversity import make_rules
    from dbanon.kernels.auto.duplicates import distinct_rows, freeze_rows, sort_by

    number, first = distinct_rows(space.codes)
    by_codes = np.arange(len(first))
    for codes in np.ascontiguousarray(space.codes[first].T[::-1]):
        by_codes = sort_by(by_codes, codes, int(codes.max()) + 1)
    rank = np.empty(len(first), np.int32)
    rank[by_codes] = np.arange(len(first), dtype=np.int32)
    tuple_of = rank[number]
    order = np.arange(space.n_rows)
    for keys in (*space.sensitive.T[::-1], tuple_of):
        order = sort_by(order, np.ascontiguousarray(keys), int(keys.max()) + 1)
    tuple_of = tuple_of[order]
    bounds = _bounds(tuple_of, len(first))
    rules = make_rules(*space.rules, np.take(space.sensitive, order, axis=0))
    frozen = freeze_rows(bounds, rules, space.k)
    active = ~frozen
    rows = order[active]
    return Frozen(
        space=space.take(rows),
        rows=rows,
        bounds=_bounds(tuple_of[active], len(first)),
        frozen=order[frozen],
        tuple_of_frozen=tuple_of[frozen].astype(np.int64),
    )


def _bounds(tuple_of: Int32s, n_tuples: int) -> Int64s:
    return np.concatenate([[0], np.cumsum(np.bincount(tuple_of, minlength=n_tuples))])
