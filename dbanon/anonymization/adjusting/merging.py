"""Groups that grow, merge and exchange whole units, and the cost of that."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.encoding.population import (
    Population,
    missing_rows,
    presence_of,
    require_regions,
)
from dbanon.anonymization.loss.costs import weighted_costs
from dbanon.anonymization.loss.metrics import Publication, publication, report
from dbanon.domain.assignment import Assignment, EncodedTable, GroupValues
from dbanon.domain.errors import PolicyError, Unsatisfiable
from dbanon.kernels.layout import START
from dbanon.models.anonymity.presence import PopulationModel, Presence
from dbanon.models.base import Scope
from dbanon.models.demands import meets, wholes
from dbanon.models.registry import model_of, of_scope

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.anonymization.interfaces import Requirement
    from dbanon.domain.outcomes import Stages
    from dbanon.domain.policy import Policy
    from dbanon.kernels.layout import Bools, Floats, Int32s


class Merging:
    """Groups with their boxes; joining them costs the rise of the total (rows * penalty).

    group: (n,) the group of each row before any merge, -1 for none. Absorbed boxes have 0 rows. O(n
    d).
    """

    def __init__(self, table: EncodedTable, assignment: Assignment) -> None:
        from dbanon.kernels.boxes.costs import box_costs, group_boxes
        from dbanon.kernels.boxes.merges import Boxes

        self._codes, self.group = table.codes, assignment.group.copy()
        self._into = np.arange(assignment.n_groups)
        flat, layout = weighted_costs(table)
        lo, hi, size = group_boxes(self._codes, assignment.group, assignment.n_groups)
        self.boxes = Boxes(lo, hi, size, np.zeros(len(size)), flat, layout)
        self.boxes.cost[:] = box_costs(flat, layout, lo, hi).sum(axis=1)

    def rises(self, a: int) -> Floats:
        """Return the cost of merging a group with each other group, infinite for itself."""
        from dbanon.kernels.boxes.merges import union_rises

        b = self.boxes
        rises: Floats = union_rises(b.lo[a], b.hi[a], int(b.size[a]), b)
        rises[a] = np.inf
        return rises

    def rises_of_row(self, row: int) -> Floats:
        """Return the cost of adding a row to each group."""
        from dbanon.kernels.boxes.merges import union_rises

        rises: Floats = union_rises(self._codes[row], self._codes[row], 1, self.boxes)
        return rises

    def loss(self) -> float:
        """Return the total (rows * penalty) as a share of that of boxes of everything."""
        b = self.boxes
        everything = float(b.flat[b.layout[:, START]].sum() * b.size.sum())
        return float((b.size * b.cost).sum()) / max(everything, 1e-300)

    def absorb(self, a: int, b: int) -> None:
        """Merge group b into group a."""
        self._grow(a, self.boxes.lo[b], self.boxes.hi[b], size=int(self.boxes.size[b]))
        self.boxes.size[b] = 0
        self._into[self._into == b] = a

    def add(self, a: int, row: int) -> None:
        """Add a row to group a."""
        self._grow(a, self._codes[row], self._codes[row], size=1)
        self.group[row] = a

    def assignment(self) -> Assignment:
        """Return the remaining groups, numbered in order."""
        return numbered(np.append(self._into, -1)[self.group])

    def _grow(self, a: int, lo: Int32s, hi: Int32s, *, size: int) -> None:
        from dbanon.kernels.boxes.costs import box_costs

        b = self.boxes
        np.minimum(b.lo[a], lo, out=b.lo[a])
        np.maximum(b.hi[a], hi, out=b.hi[a])
        b.size[a] += size
        b.cost[a] = box_costs(b.flat, b.layout, b.lo[a : a + 1], b.hi[a : a + 1]).sum()


def merge_with_nearest(
    table: EncodedTable, assignment: Assignment, bad: Bools, *, near: Sequence[frozenset[int]] = ()
) -> Assignment:
    """Merge each bad group (g,) with the one of least cost, preferably in ``near``; O(bad g d)."""
    merging = Merging(table, assignment)
    done = np.zeros(assignment.n_groups, np.bool_)
    for a in np.flatnonzero(bad).tolist():
        if done[a]:
            continue
        rises = merging.rises(a)
        close = [b for b in sorted(near[a]) if np.isfinite(rises[b])] if near else []
        b = close[int(rises[close].argmin())] if close else int(rises.argmin())
        merging.absorb(a, b)
        done[[a, b]] = True
    return merging.assignment()


def merged(
    table: EncodedTable,
    assignment: Assignment,
    failing: Callable[[Assignment], Bools],
    *,
    then: Callable[[Assignment], Assignment] = lambda found: found,
    impossible: Callable[[Assignment], Exception],
) -> Assignment:
    """Merge every failing group with its nearest, round by round, until none fails.

    failing: returns (g,) which groups fail; then: what is done with the groups after each round;
    impossible: returns the error to raise when a single group is left and fails.
    """
    while (bad := failing(assignment)).any():
        if assignment.n_groups == 1:
            raise impossible(assignment)
        assignment = then(merge_with_nearest(table, assignment, bad))
    return assignment


def numbered(group: NDArray[np.integer]) -> Assignment:
    """Return groups numbered without gaps, in order; below 0 is suppressed."""
    numbers, dense = np.unique(group, return_inverse=True)
    n_suppressed = int(np.searchsorted(numbers, 0))
    return Assignment((dense - n_suppressed).astype(np.int32), len(numbers) - n_suppressed)


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

    units: indivisible groups; classes: unions of them that meet the requirement. Each unit moves to
    the class of least cost, or becomes its own class, if both classes still meet every demand.
    O(passes * units * classes d).
    """
    if units.n_groups * classes.n_groups > _PAIRS or units.n_groups == classes.n_groups:
        return classes
    moving = _Moving(table, units, classes, requirement)
    for _ in range(_PASSES):
        if stages.stopped or not moving.run():
            break
    return moving.assignment()


class _Moving:
    """Units in their classes; some classes are empty, because a unit may become its own class."""

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
        """Move each unit to the class of least cost; return True if some moved."""
        together = [unit for unit, own in enumerate(self._own) if len(self._members[own]) > 1]
        return sum(self._move(unit) for unit in together) > 0

    def assignment(self) -> Assignment:
        """Return the remaining classes, numbered in order."""
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

    def _box(self, units: Collection[int]) -> tuple[Int32s, Int32s, int]:
        u, some = self._unit, list(units)
        return u.lo[some].min(axis=0), u.hi[some].max(axis=0), int(u.size[some].sum())

    def _bound(self, own: int) -> None:
        """Update the box of a class after units joined or left."""
        c, units = self._class, self._members[own]
        c.size[own] = 0
        if units:
            c.lo[own], c.hi[own], c.size[own] = self._box(units)
            c.cost[own] = self._cost_of(units) / c.size[own]


Publish = Callable[[Assignment], GroupValues]


def population_models(policy: Policy) -> tuple[PopulationModel, ...]:
    """Return the models of a policy that count a population."""
    models = map(model_of, of_scope(policy.models, Scope.POPULATION))
    return tuple(model for model in models if isinstance(model, PopulationModel))


def failing(
    published: Publication, models: Sequence[PopulationModel], population: Population
) -> tuple[Bools, Presence]:
    """Return the classes that fail a model, and the presence of all classes."""
    presence = presence_of(published, population)
    bad = np.zeros(len(published.size), np.bool_)
    for model in models:
        bad |= model.failing(presence)
    return bad, presence


def require_possible(
    table: EncodedTable, policy: Policy, population: Population | None, *, publish: Publish
) -> None:
    """Raise PolicyError or Unsatisfiable if all rows as one class fail; no classes cover more."""
    models = population_models(policy)
    if not models:
        return
    if population is None:
        msg = f"{models[0]} counts the rows of a population, and the policy names none"
        raise PolicyError(msg, hint='population = "schema.table", or --population schema.table')
    everyone = Assignment(np.zeros(table.n_rows, np.int32), 1)
    values = publish(everyone)
    recodings = {column.name: column.recoding for column in values.columns}
    require_regions(recodings, model=str(models[0]))
    published = publication(table, everyone, values, k=policy.k)
    for model in models:
        missing = missing_rows(table, population) if model.is_part else 0
        if missing:
            msg = f"{missing:,} rows of the table have no row of their own in the population"
            raise Unsatisfiable(
                f"{msg}: {model} is about a part of it", hint="bring both up to date"
            )
        bad, presence = failing(published, [model], population)
        if bad.any():
            raise _unsatisfiable(model, presence)


def _unsatisfiable(model: PopulationModel, presence: Presence) -> Unsatisfiable:
    msg = (
        f"all rows as one class cover {int(presence.covered[0]):,} rows of the population with"
        f" {int(presence.rows[0]):,} and leave {presence.uncovered:,} uncovered:"
        f" {model} is impossible"
    )
    return Unsatisfiable(msg, hint="ask for less, or for a larger dmax and dmin = 0")


def cover(
    table: EncodedTable,
    assignment: Assignment,
    policy: Policy,
    population: Population,
    *,
    publish: Publish,
) -> Assignment:
    """Merge the classes that fail a model of the population, round by round.

    publish: returns the published values of an assignment. In each round a failing class joins the
    neighbour of least cost, preferably one that shares rows of the population. All rows as one
    class meet the models (``require_possible``); raises Unsatisfiable if suppressed rows prevent
    that. O(rounds * classes * population) at worst.
    """
    models = population_models(policy)
    while True:
        published = publication(table, assignment, publish(assignment), k=policy.k)
        bad, presence = failing(published, models, population)
        if not bad.any():
            return assignment
        if len(bad) == 1:
            raise _unsatisfiable(models[0], presence)
        classes = Assignment(published.classes, len(bad))
        assignment = merge_with_nearest(table, classes, bad, near=presence.near)


def cover_or_coarsen(
    table: EncodedTable,
    assignment: Assignment,
    policy: Policy,
    population: Population,
    *,
    publish: Publish,
    regroup: Callable[[int], Assignment],
) -> Assignment:
    """Return the cheaper of merged classes and of groups for a larger k that need no merging.

    Merged classes may overlap with all others, and delta-presence then leaves one class; levels do
    not.
    """
    merged = cover(table, assignment, policy, population, publish=publish)
    models = population_models(policy)
    if merged is assignment or not any(model.is_part for model in models):
        return merged
    k = policy.k
    while 2 * k <= table.n_rows:
        k *= 2
        try:
            coarser = regroup(k)
        except Unsatisfiable:
            return merged
        published = publication(table, coarser, publish(coarser), k=policy.k)
        if not failing(published, models, population)[0].any():
            rival = publication(table, merged, publish(merged), k=policy.k)
            cheaper = report(published, {}).asked < report(rival, {}).asked
            return coarser if cheaper else merged
    return merged
