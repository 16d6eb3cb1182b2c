"""Moving whole units between classes, where that costs less and every class still does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.adjusting.merging import Merging, numbered
from dbanon.models.demands import meets, wholes

if TYPE_CHECKING:
    from collections.abc import Collection

    from numpy.typing import NDArray

    from dbanon.anonymization.interfaces import Requirement
    from dbanon.domain.assignment import Assignment, EncodedTable
    from dbanon.domain.progress import Stages

_PASSES = 8
_PAIRS = 300_000_000  # of units and classes, beyond which a pass would take minutes
_LEAST = 1e-9  # a gain below it is none


def moved(
    table: EncodedTable,
    units: Assignment,
    classes: Assignment,
    requirement: Requirement,
    *,
    stages: Stages,
) -> Assignment:
    """Return classes of the same units that cost no more in total (rows * certainty penalty).

    units: what is not divided; classes: unions of them that meet the requirement. Unit by unit, the
    one goes to the class whose cost it raises least, or becomes a class by itself, if what it
    leaves and what it joins meet every demand still. O(passes * units * classes d).
    """
    if units.n_groups * classes.n_groups > _PAIRS or units.n_groups == classes.n_groups:
        return classes
    moving = _Moving(table, units, classes, requirement)
    for _ in range(_PASSES):
        if stages.stopped or not moving.run():
            break
    return moving.assignment()


class _Moving:
    """Units in their classes, of which some are empty: a unit may become a class by itself."""

    def __init__(
        self, table: EncodedTable, units: Assignment, classes: Assignment, requirement: Requirement
    ) -> None:
        from dbanon.kernels.boxes.merges import Boxes

        self._table, self._k, self._group = table, requirement.k, units.group
        self._demands = [demand for demand in requirement.demands if demand.model.is_monotone]
        self._wholes = wholes(table, self._demands, np.arange(table.n_rows))
        self._unit = Merging(table, units).boxes
        order = np.argsort(units.group, kind="stable")
        self._rows = np.split(order, np.cumsum(self._unit.size)[:-1])
        self._own = classes.group[[rows[0] for rows in self._rows]].astype(np.int64)
        self._members: list[set[int]] = [set() for _ in range(units.n_groups)]
        for unit, own in enumerate(self._own.tolist()):
            self._members[own].add(unit)
        self._free = [own for own, units in enumerate(self._members) if not units]
        u = self._unit
        parts = (u.lo.copy(), u.hi.copy(), u.size.copy(), u.cost.copy())
        self._class = Boxes(*parts, u.flat, u.layout)
        for own in range(units.n_groups):
            self._bound(own)

    def run(self) -> bool:
        """Let each unit go where it costs least; return whether some did."""
        together = [unit for unit, own in enumerate(self._own) if len(self._members[own]) > 1]
        return sum(self._move(unit) for unit in together) > 0

    def assignment(self) -> Assignment:
        """Return the classes that are left, numbered in their order."""
        return numbered(self._own[self._group])

    def _move(self, unit: int) -> bool:
        from dbanon.kernels.boxes.merges import union_rises

        own = int(self._own[unit])
        rest = self._members[own] - {unit}
        if not rest:
            return False
        gain = self._total(own) - self._cost_of(rest)
        u = self._unit
        size, alone = int(u.size[unit]), float(u.size[unit] * u.cost[unit])
        costs = union_rises(u.lo[unit], u.hi[unit], size, self._class) + alone
        costs[own] = np.inf
        to = int(costs.argmin())
        choices = [(float(costs[to]), to), (alone, self._free[-1])]
        for cost, target in sorted(choices):
            joined = self._members[target] | {unit}
            if cost < gain - _LEAST and self._is_met(rest) and self._is_met(joined):
                self._members[own], self._members[target] = rest, joined
                self._own[unit] = target
                if target == self._free[-1]:
                    self._free.pop()
                self._bound(own)
                self._bound(target)
                return True
        return False

    def _is_met(self, units: Collection[int]) -> bool:
        rows = np.concatenate([self._rows[unit] for unit in units])
        one = np.zeros(len(rows), np.int32)
        return len(rows) >= self._k and all(
            meets(self._table, demand, rows, one, whole=whole).all()
            for demand, whole in zip(self._demands, self._wholes, strict=True)
        )

    def _total(self, own: int) -> float:
        return float(self._class.size[own] * self._class.cost[own])

    def _cost_of(self, units: Collection[int]) -> float:
        from dbanon.kernels.boxes.costs import box_costs

        lo, hi, size = self._box(units)
        return size * float(box_costs(self._unit.flat, self._unit.layout, lo[None], hi[None]).sum())

    def _box(self, units: Collection[int]) -> tuple[NDArray[np.int32], NDArray[np.int32], int]:
        u, some = self._unit, list(units)
        return u.lo[some].min(axis=0), u.hi[some].max(axis=0), int(u.size[some].sum())

    def _bound(self, own: int) -> None:
        """Note the box of a class, after units came or went."""
        c, units = self._class, self._members[own]
        c.size[own] = 0
        if units:
            c.lo[own], c.hi[own], c.size[own] = self._box(units)
            c.cost[own] = self._cost_of(units) / c.size[own]
