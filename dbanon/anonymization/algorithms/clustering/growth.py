"""Greedy k-member clustering and its baseline (Byun, Kamra, Bertino, Li, DASFAA 2007)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from dbanon.anonymization.interfaces import Requirement, require_at_most
from dbanon.anonymization.loss.costs import BoxCosts, height_costs, pack, weighted_costs
from dbanon.domain.assignment import Assignment, EncodedTable


@dataclass(frozen=True, slots=True)
class KMember:
    """Greedy k-member clustering (section 4): groups grown by the row that costs least.

    A group begins with the record farthest from the previous group: from its last record, as in the
    paper's listing, or from its ``first``. ``cost`` is the paper's information loss, ``il``, by the
    height of the common ancestor, or the normalized certainty penalty, ``ncp``, by its leaves; both
    weighted. Groups have k to 2k - 1 rows for l = 1. Unlike the paper, it supports l > 1: once a
    group has only as many places as missing sensitive values, only rows with a new value may join.
    Rows that cannot form a diverse group join like leftovers, at least loss. Ties: lower row,
    earlier group.
    """

    seed_from: Literal["last-added", "first"] = "last-added"
    cost: Literal["il", "ncp"] = "il"

    MAX_ROWS: ClassVar[int] = 100_000

    def assign(self, table: EncodedTable, requirement: Requirement, *, seed: int) -> Assignment:
        """Group the rows; O(n^2 d)."""
        from dbanon.kernels.boxes.growth import FAR_FROM_FIRST, FAR_FROM_LAST, growth

        require_at_most(self.MAX_ROWS, table, algorithm="k-member")
        costs = weighted_heights(table) if self.cost == "il" else weighted_costs(table)
        rule = FAR_FROM_LAST if self.seed_from == "last-added" else FAR_FROM_FIRST
        order = np.random.default_rng(seed).permutation(table.n_rows)
        group, n_groups = growth(table.all_codes, order, *costs, requirement.k, requirement.l, rule)
        return Assignment(group, int(n_groups))


@dataclass(frozen=True, slots=True)
class NearestNeighbour:
    """The baseline of k-member clustering (section 5): a random record and its k - 1 nearest.

    The distance of two records is the weighted sum over columns of the difference over the range,
    or the height of the common ancestor over that of the tree; NULL and a value are 1 apart.
    Leftovers join at least information loss. Groups have k to 2k - 1 rows for l = 1. For l > 1,
    only rows with a new sensitive value may join once a group has only as many places as missing
    values. Ties: lower row, earlier group.
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


def weighted_heights(table: EncodedTable) -> BoxCosts:
    """Return the weighted information loss of code sets, for all columns."""
    return pack([height_costs(column).times(column.rule.weight) for column in table.quasi])
