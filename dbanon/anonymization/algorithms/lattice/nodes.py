"""The lattice of a table: levels of columns, the rows that a node joins, and its cost."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dbanon.anonymization.encoding.bands import ancestors_by_height
from dbanon.anonymization.loss.costs import BoxCosts, weighted_costs
from dbanon.domain.assignment import Assignment, EncodedColumn, EncodedTable
from dbanon.domain.errors import PolicyError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dbanon.anonymization.interfaces import Requirement
    from dbanon.kernels.layout import Bools, Floats, Int32s, Int64s


_SPARSE = 8  # counting is faster than sorting up to this many possible keys per key


class Counts(NamedTuple):
    """A frequency set: for each class one of its distinct rows and its number of rows."""

    first: Int64s
    size: Int64s

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.size)

    def or_finer(self, finer: Counts) -> Counts:
        """Return the finer set if rolling up from it takes less than twice as long (memory)."""
        return self if 2 * self.n_classes <= finer.n_classes else finer


class Pairs(NamedTuple):
    """The number of rows of each class and value of one sensitive column, (p,) each."""

    of: Int64s
    value: Int64s
    size: Int64s


def numbered(keys: Int64s, span: int) -> tuple[Int64s, Int64s]:
    """Return the distinct keys (0..span-1) in order, and the index of each; at most O(m log m)."""
    if span > _SPARSE * len(keys):
        distinct, place = np.unique(keys, return_inverse=True)
        return distinct, place
    there = np.zeros(span, np.bool_)
    there[keys] = True
    return np.flatnonzero(there), (np.cumsum(there) - 1)[keys]


def join(pairs: Pairs, of: Int64s) -> Pairs:
    """Add up pairs of joined classes; of: the new class of each class."""
    n_values = int(pairs.value.max()) + 1
    keys = of[pairs.of] * n_values + pairs.value
    distinct, place = numbered(keys, (int(of.max()) + 1) * n_values)
    size = np.bincount(place, weights=pairs.size).astype(np.int64)
    return Pairs(distinct // n_values, distinct % n_values, size)


def distances(pairs: Pairs, size: Int64s, kept: Bools) -> Floats:
    """Return the distance of each class from all kept ones: half the sum of differences.

    Earth mover's distance with equal ground distances (Li et al., ICDE 2007). size, kept: (c,).
    """
    whole = np.bincount(pairs.value, weights=pairs.size * kept[pairs.of])
    share = (whole / max(whole.sum(), 1.0))[pairs.value]
    apart = np.abs(pairs.size / size[pairs.of] - share)
    # a value that a class lacks adds its share of the whole
    there = np.bincount(pairs.of, weights=share, minlength=len(size))
    differences = np.bincount(pairs.of, weights=apart, minlength=len(size))
    return np.asarray((differences + 1.0 - there) / 2.0, np.float64)


_FINEST = 6  # at most 2**6 intervals
_NULL = np.iinfo(np.int64).max

Node = tuple[int, ...]

_CLOSE = 1e-9  # distances that differ by less are equal
_DIGITS = 9
_MOST_KEYS = 1 << 62


@dataclass(frozen=True, slots=True)
class Condition:
    """Minimum size k, diversity l, closeness t of classes; at most ``budget`` rows suppressed."""

    k: int
    l: int
    t: float
    budget: int

    @property
    def monotone(self) -> Condition:
        """The part that a node meets if a node below does, for any subset of the columns.

        t-closeness is not monotone with suppression: fewer suppressed rows change the overall
        distribution.
        """
        return self if self.budget == 0 else replace(self, t=1.0)

    @property
    def counts_only(self) -> bool:
        """True if class sizes decide."""
        return self.l <= 1 and self.t >= 1.0


ANYTHING = Condition(k=1, l=1, t=1.0, budget=0)


def condition(table: EncodedTable, requirement: Requirement, *, t: float) -> Condition:
    """Return the condition of a table; raise PolicyError for an invalid t."""
    if not 0 <= t <= 1:
        msg = f"t = {t} is not a distance in [0, 1]"
        raise PolicyError(msg, hint="1 asks for nothing; 0.2 is a usual choice")
    if t < 1 and not table.sensitive_names:
        msg = f"the policy asks for t = {t} but names no sensitive column"
        raise PolicyError(msg, hint="give a column the role sensitive")
    budget = requirement.budget(table.n_rows)
    return Condition(requirement.k, requirement.l, t, budget)


class Classes(NamedTuple):
    """Classes of a node. of: (m,) the class of each distinct row; size, kept: (c,)."""

    of: Int64s
    size: Int64s
    kept: Bools

    @property
    def n_lost(self) -> int:
        """Number of suppressed rows."""
        return int(self.size[~self.kept].sum())


@dataclass(frozen=True, eq=False, slots=True)
class Lattice:
    """The m distinct rows of a table and the levels of its columns.

    A node is a tuple of levels, one for each of some columns. levels: by column and level, the
    class of each value; values: by column, the value of each distinct row, (m,); distinct: (n,) the
    distinct row of each row; base: frequency set of the distinct rows; pairs: by sensitive column,
    distinct rows and values; codes: (m, d) int32; everything: the cost of a suppressed row.
    """

    levels: tuple[tuple[Int32s, ...], ...]
    values: tuple[Int32s, ...]
    distinct: Int64s
    base: Counts
    pairs: tuple[Pairs, ...]
    codes: Int32s
    costs: BoxCosts
    everything: float

    @property
    def columns(self) -> tuple[int, ...]:
        """Index of each column."""
        return tuple(range(len(self.levels)))

    @property
    def top(self) -> Node:
        """The node that joins all rows."""
        return tuple(len(levels) - 1 for levels in self.levels)

    @property
    def n_nodes(self) -> int:
        """Number of nodes of all columns."""
        return math.prod(len(levels) for levels in self.levels)

    def roll_up(self, counts: Counts, node: Node, *, columns: tuple[int, ...]) -> Counts:
        """Return the frequency set of a node from that of any node below it; O(c log c)."""
        keys, span = self._keys(node, columns, counts.first)
        classes, of = numbered(keys, span)
        first = np.empty(len(classes), np.int64)
        first[of] = counts.first
        size = np.bincount(of, weights=counts.size).astype(np.int64)
        return Counts(first, size)

    def holds(
        self, counts: Counts, node: Node, *, columns: tuple[int, ...], condition: Condition
    ) -> bool:
        """Return True if the node with this frequency set meets the condition."""
        n_lost = int(counts.size[counts.size < condition.k].sum())
        if n_lost > condition.budget or condition.counts_only:
            return n_lost <= condition.budget
        return self.classes(node, columns=columns, condition=condition).n_lost <= condition.budget

    def classes(self, node: Node, *, columns: tuple[int, ...], condition: Condition) -> Classes:
        """Return the classes of a node; those that fail are not kept.

        Small or undiverse classes go first, then repeatedly all that are too far from the remaining
        rows.
        """
        keys, span = self._keys(node, columns, self.base.first)
        of = numbered(keys, span)[1]
        size = np.bincount(of, weights=self.base.size).astype(np.int64)
        kept = size >= condition.k
        joined = [] if condition.counts_only else [join(pairs, of) for pairs in self.pairs]
        for pairs in joined:
            kept &= np.bincount(pairs.of, minlength=len(size)) >= condition.l
        while condition.t < 1 and size[~kept].sum() <= condition.budget:
            far = np.zeros(len(size), np.bool_)
            for pairs in joined:
                far |= distances(pairs, size, kept) > condition.t + _CLOSE
            if not (far & kept).any():
                break
            kept &= ~far
        return Classes(of, size, kept)

    def cost(self, classes: Classes) -> float:
        """Return the sum of class sizes times tight box penalties; suppressed rows in full."""
        from dbanon.kernels.boxes.costs import box_costs, group_boxes

        lo, hi, _ = group_boxes(self.codes, classes.of.astype(np.int32), len(classes.size))
        by_class = box_costs(*self.costs, lo, hi).sum(axis=1) * classes.size
        total = float(by_class[classes.kept].sum()) + classes.n_lost * self.everything
        return round(total, _DIGITS)  # equal costs stay equal in whatever order they were added

    def assignment(self, classes: Classes, *, final: bool) -> Assignment:
        """Return the kept classes as groups."""
        number = np.where(classes.kept, np.cumsum(classes.kept) - 1, -1).astype(np.int32)
        group = number[classes.of][self.distinct]
        return Assignment(group, int(classes.kept.sum()), final=final)

    def _keys(self, node: Node, columns: tuple[int, ...], rows: Int64s) -> tuple[Int64s, int]:
        """Return the class of each row in mixed radix, and the number of possible keys."""
        keys, span = np.zeros(len(rows), np.int64), 1
        for column, level in zip(columns, node, strict=True):
            classes = self.levels[column][level]
            n_classes = int(classes.max()) + 1
            if span > _MOST_KEYS // n_classes:
                keys, span = np.unique(keys, return_inverse=True)[1], len(rows)
            if n_classes > 1:
                keys = keys * n_classes + classes[self.values[column][rows]]
                span *= n_classes
        return keys, span


def lattice(table: EncodedTable) -> Lattice:
    """Find the distinct rows of a table and the levels of its columns; O(n d log n)."""
    columns = [column_levels(column) for column in table.quasi]
    distinct = np.zeros(table.n_rows, np.int64)
    for values, levels in columns:
        distinct = np.unique(distinct * len(levels[0]) + values, return_inverse=True)[1]
    row, size = np.unique(distinct, return_index=True, return_counts=True)[1:]
    one = np.ones(table.n_rows, np.int64)
    each = np.arange(table.n_rows)
    return Lattice(
        levels=tuple(levels for _, levels in columns),
        values=tuple(values[row] for values, _ in columns),
        distinct=distinct,
        base=Counts(np.arange(len(row)), size),
        pairs=tuple(
            join(Pairs(each, values.astype(np.int64), one), distinct)
            for values in table.sensitive.T
        ),
        codes=table.codes[row],
        costs=weighted_costs(table),
        everything=math.fsum(column.rule.weight for column in table.quasi),
    )


def column_levels(column: EncodedColumn) -> tuple[Int32s, tuple[Int32s, ...]]:
    """Return the value of each row, (n,), and for each level the class of each value, (v,).

    Values are those that occur, in code order. At level 0 every value is its own class. An ordered
    column then has 64, 32 .. 2, 1 intervals of equal width, beginning with fewer than the values. A
    taxonomy has the ancestors of height 1, 2 .. of the leaves; a shallow leaf waits until its
    parent is as high. NULL stays separate until the last level, which is everything. Each level
    joins classes of the one before.
    """
    present, values = np.unique(column.codes, return_inverse=True)
    levels = [np.arange(len(present), dtype=np.int32)]
    apart = [np.append(classes, _NULL) for classes in _steps(column)]
    for classes in (*apart, np.zeros(column.size + 1)):
        joined = np.unique(classes[present], return_inverse=True)[1]
        if joined.max() < levels[-1].max():
            levels.append(joined.astype(np.int32))
    return values.astype(np.int32), tuple(levels)


def _steps(column: EncodedColumn) -> Iterator[Int64s]:
    """Yield the class of each domain value, coarser and coarser."""
    if column.taxonomy is not None:
        yield from ancestors_by_height(column.taxonomy)
        return
    exponent = min(_FINEST, max(column.size - 1, 0).bit_length() - 1)
    for n_intervals in (1 << i for i in range(exponent, -1, -1)):
        # the greatest value closes the last interval
        yield np.minimum((column.position * n_intervals).astype(np.int64), n_intervals - 1)
