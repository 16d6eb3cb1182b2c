"""Central values: mean, midpoint, median and mode of a group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.encoding.text import value_texts
from dbanon.anonymization.recodings.groups import column_boxes, value_column
from dbanon.domain.table import ColumnKind, Structure

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.domain.assignment import Assignment, EncodedColumn, ValueColumn

_DIGITS_OF_INTEGERS, _DIGITS_OF_FRACTIONS = 1, 3


@dataclass(frozen=True, slots=True)
class Mean:
    """The mean of the values that are there, at limited precision; NULL when none is.

    Numbers have ``digits`` decimals (1 for integers, 3 for others unless the rule says so), dates
    the nearest day, timestamps the nearest second. Where the rule restores the variance, means are
    stretched to that of the values (Domingo-Ferrer et al., DMKD 2005).
    """

    accepts = frozenset({Structure.LINE})

    def publish(self, column: EncodedColumn, assignment: Assignment) -> ValueColumn:
        """Return a mean for every group; O(n) and one text for each distinct mean."""
        present = (assignment.group >= 0) & (column.codes < column.size)
        group = assignment.group[present]
        scale = _Scale(column)
        count = np.bincount(group, minlength=assignment.n_groups)
        offsets = scale.offsets[column.codes[present]]
        total = np.bincount(group, weights=offsets, minlength=assignment.n_groups)
        some = count > 0
        of_groups = total[some] / count[some]
        if column.rule.restore_variance and len(offsets):
            of_groups = _stretched(of_groups, count[some], offsets)
        means, place_of_some = np.unique(of_groups, return_inverse=True)
        place = np.full(assignment.n_groups, len(means))
        place[some] = place_of_some
        labels = [*_mean_texts(column, scale.values(means)), *([] if some.all() else [None])]
        return _with_box_loss(column, assignment, recoding="mean", labels=labels, place=place)


def _stretched(
    means: NDArray[np.float64], count: NDArray[np.int64], values: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return means at distances from that of all by which the values have their variance."""
    scale = np.abs(values).max() or 1.0  # offsets may be so large that their squares are none
    middle = values.mean()
    within = np.sqrt(((values / scale - middle / scale) ** 2).sum())
    between = np.sqrt((count * (means / scale - middle / scale) ** 2).sum())
    return np.asarray(middle + (means - middle) * (within / between if between > 0.0 else 1.0))


@dataclass(frozen=True, slots=True)
class Midpoint:
    """The middle between the least and the greatest value that are there; NULL when none is.

    At the same precision as a mean. It tells no value of a member where these differ.
    """

    accepts = frozenset({Structure.LINE})

    def publish(self, column: EncodedColumn, assignment: Assignment) -> ValueColumn:
        """Return a middle for every group; O(n log n) and one text for each distinct one."""
        keys, count = _present_keys(column, assignment)
        some, last = count > 0, np.cumsum(count) - 1
        scale = _Scale(column)
        lo, hi = (keys[place[some]] % (column.size + 1) for place in (last - count + 1, last))
        middles = scale.offsets[lo] + (scale.offsets[hi] - scale.offsets[lo]) / 2.0
        distinct, place_of_some = np.unique(middles, return_inverse=True)
        place = np.full(assignment.n_groups, len(distinct))
        place[some] = place_of_some
        labels = [*_mean_texts(column, scale.values(distinct)), *([] if some.all() else [None])]
        return _with_box_loss(column, assignment, recoding="midpoint", labels=labels, place=place)


@dataclass(frozen=True, slots=True)
class Median:
    """The lower median of the values that are there; NULL when none is."""

    accepts = frozenset({Structure.LINE, Structure.ORDER})

    def publish(self, column: EncodedColumn, assignment: Assignment) -> ValueColumn:
        """Return a value of some member for every group; O(n log n)."""
        keys, count = _present_keys(column, assignment)
        median = np.full(assignment.n_groups, column.size, np.int64)
        some = np.flatnonzero(count)
        first = (np.cumsum(count) - count)[some]
        median[some] = keys[first + (count[some] - 1) // 2] % (column.size + 1)
        return _of_codes(column, assignment, recoding="median", chosen=median)


@dataclass(frozen=True, slots=True)
class Mode:
    """The most frequent value, NULL being one; ties: the lowest code."""

    accepts = frozenset(Structure)

    def publish(self, column: EncodedColumn, assignment: Assignment) -> ValueColumn:
        """Return a value of some member for every group; O(n log n)."""
        published = assignment.group >= 0
        base = np.int64(column.size + 1)
        keys, rows = np.unique(
            assignment.group[published] * base + column.codes[published], return_counts=True
        )
        order = np.lexsort((keys, -rows, keys // base))
        first = np.flatnonzero(np.diff(keys[order] // base, prepend=-1))
        return _of_codes(column, assignment, recoding="mode", chosen=keys[order][first] % base)


def _present_keys(
    column: EncodedColumn, assignment: Assignment
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return group * (size + 1) + code of the values that are there, sorted, and their counts."""
    present = (assignment.group >= 0) & (column.codes < column.size)
    base = np.int64(column.size + 1)
    keys = np.sort(assignment.group[present] * base + column.codes[present])
    return keys, np.bincount(keys // base, minlength=assignment.n_groups)


def _of_codes(
    column: EncodedColumn, assignment: Assignment, *, recoding: str, chosen: NDArray[np.int64]
) -> ValueColumn:
    codes, place = np.unique(chosen, return_inverse=True)
    values = codes[codes < column.size]
    labels: list[str | None] = [*value_texts(column.kind, column.values[values])]
    if len(values) < len(codes):
        labels.append(None)
    return _with_box_loss(column, assignment, recoding=recoding, labels=labels, place=place)


def _with_box_loss(
    column: EncodedColumn,
    assignment: Assignment,
    *,
    recoding: str,
    labels: list[str | None],
    place: NDArray[np.int64],
) -> ValueColumn:
    """Charge a central value with what the group's interval or common ancestor would lose."""
    boxes = column_boxes(column, assignment)
    return value_column(
        column, recoding, labels=labels, place=place, loss=boxes.loss, size=boxes.size
    )


class _Scale:
    """Distances from the least value, so scaled that no sum of them overflows.

    offsets: (size,) float64.
    """

    def __init__(self, column: EncodedColumn) -> None:
        values = column.values
        self._exponent = 0
        if values.dtype.kind == "f":
            # a power of two changes no digit; two bits less leave room for a difference
            self._exponent = int(np.frexp(np.abs(values).max(initial=0.0))[1]) + 2
            values = np.ldexp(values, -self._exponent)
            self.offsets = values - values[:1]
        else:
            numbers = values.astype(np.int64)
            # unsigned differences of int64 do not overflow
            steps = numbers.view(np.uint64) - numbers[:1].view(np.uint64)
            self.offsets = steps.astype(np.float64)
            values = numbers
        self._origin = float(values[0]) if column.size else 0.0

    def values(self, offsets: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the values at these distances."""
        return np.ldexp(self._origin + offsets, self._exponent)


def _digits(column: EncodedColumn) -> int:
    if column.rule.digits is not None:
        return max(column.rule.digits, 0)
    return _DIGITS_OF_INTEGERS if column.kind is ColumnKind.INTEGER else _DIGITS_OF_FRACTIONS


def _mean_texts(column: EncodedColumn, means: NDArray[np.float64]) -> list[str]:
    if column.values.dtype.kind == "M":
        unit = 1.0 if column.kind is ColumnKind.DATE else 1e6
        rounded = (np.rint(means / unit) * unit).astype(np.int64)
        return value_texts(column.kind, rounded.view(column.values.dtype))
    digits = _digits(column)
    return [f"{mean:z.{digits}f}" for mean in means.tolist()]
