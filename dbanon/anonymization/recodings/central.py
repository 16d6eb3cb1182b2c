"""Central values of a group: mean, midpoint, median and mode."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from dbanon.anonymization.encoding.bands import fixed_text, value_texts
from dbanon.anonymization.recodings.groups import column_boxes, value_column
from dbanon.domain.table import ColumnKind, Structure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from dbanon.domain.assignment import Assignment, EncodedColumn, ValueColumn
    from dbanon.kernels.layout import Floats


_HALF = 2**62  # of what int64 holds
_SCALE = 64  # binary digits: a sum of less than 2**63 numbers scaled by it does not overflow


def _sorted(
    values: NDArray[Any], group: NDArray[Any], *, n_groups: int
) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[np.int64]]:
    """Return the values by group, the start of each group, and its number of values."""
    count = np.bincount(group, minlength=n_groups)
    return values[np.argsort(group, kind="stable")], np.cumsum(count) - count, count


def mean_of(numbers: Sequence[float]) -> float:
    """Return the correctly rounded mean of finite numbers, within their range; at least one."""
    return min(max(_mean(numbers), min(numbers)), max(numbers))


def _mean(numbers: Sequence[float]) -> float:
    try:
        return math.fsum(numbers) / len(numbers)
    except OverflowError:
        scaled = [math.ldexp(number, -_SCALE) for number in numbers]
        return math.ldexp(math.fsum(scaled) / len(numbers), _SCALE)


def group_means(values: Floats, group: NDArray[Any], *, n_groups: int) -> Floats:
    """Return the mean of each group, (n_groups,), as ``mean_of``; no group is empty."""
    if not n_groups:
        return np.empty(0)
    ordered, starts, count = _sorted(values, group, n_groups=n_groups)
    least, greatest = (f.reduceat(ordered, starts) for f in (np.minimum, np.maximum))
    numbers, ends = ordered.tolist(), (starts + count).tolist()
    means = [_mean(numbers[a:b]) for a, b in zip(starts.tolist(), ends, strict=True)]
    return np.asarray(np.clip(means, least, greatest), np.float64)


def group_medians(values: Floats, group: NDArray[Any], *, n_groups: int) -> Floats:
    """Return the lower median of each group, (n_groups,); no group is empty."""
    count = np.bincount(group, minlength=n_groups)
    middle = np.cumsum(count) - count + (count - 1) // 2
    return np.asarray(values[np.lexsort((values, group))[middle]])


def group_totals(
    values: NDArray[np.int64], group: NDArray[Any], *, n_groups: int, times: int = 1
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return ``times`` the exact sum of each group, and its number of values, both (n_groups,)."""
    if not n_groups:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    ordered, starts, count = _sorted(values, group, n_groups=n_groups)
    greatest = max(-int(values.min()), int(values.max()))
    exact = ordered if greatest * int(count.max()) * times < _HALF else ordered.astype(object)
    return np.add.reduceat(exact, starts) * times, count


def shifts(within: Floats, between: Floats, count: NDArray[np.int64]) -> Floats:
    """Return how far to move group means to regain the variance of the values, (g,).

    within: (n,) values minus their group mean; between: (g,) group means minus the mean of all;
    count: (g,) group sizes. Domingo-Ferrer et al. (DMKD 2005) stretch by sqrt(total / between);
    subtracting one here avoids cancellation. 0 if all group means are equal.
    """
    explained = float((count * between**2).sum())
    if explained == 0.0:
        return np.zeros(len(between))
    rest = float((within**2).sum()) / explained
    return np.asarray(between * (rest / (1.0 + math.sqrt(1.0 + rest))))


def stretched(means: Floats, values: Floats, group: NDArray[Any]) -> Floats:
    """Return group means, moved apart to the variance of the values, (g,)."""
    exponent = int(np.frexp(np.abs(values).max(initial=0.0))[1])
    # a power of two changes no digit and keeps squares finite
    scaled, scaled_means = np.ldexp(values, -exponent), np.ldexp(means, -exponent)
    middle = mean_of(scaled.tolist())
    count = np.bincount(group, minlength=len(means))
    moved = shifts(scaled - scaled_means[group], scaled_means - middle, count)
    greatest = np.finfo(np.float64).max
    with np.errstate(over="ignore"):
        return np.clip(means + np.ldexp(moved, exponent), -greatest, greatest)


_MICROSECONDS = 1_000_000


@dataclass(frozen=True, slots=True)
class Mean:
    """The mean of the values without NULL, at limited precision; NULL if there is none.

    Numbers have ``digits`` decimals (default 1 for integers, 3 for others), dates the nearest day,
    timestamps the nearest second. Only this rounding can move a mean out of the range of its class.
    If the rule restores the variance, means are stretched to that of the values (Domingo-Ferrer et
    al., DMKD 2005).
    """

    accepts = frozenset({Structure.LINE})

    def publish(self, column: EncodedColumn, assignment: Assignment) -> ValueColumn:
        """Return a mean for every group; O(n log n) and one text for each group."""
        present = (assignment.group >= 0) & (column.codes < column.size)
        group, some = np.unique(assignment.group[present], return_inverse=True)
        values = column.values[column.codes[present]]
        if values.dtype.kind == "f":
            means = group_means(values, some, n_groups=len(group))
            if column.rule.restore_variance and len(values):
                means = stretched(means, values, some)
            texts = _float_texts(column, means.tolist())
        else:
            texts = _integer_means(column, values.astype(np.int64), some)
        return _of_some(column, assignment, recoding="mean", group=group, texts=texts)


def _integer_means(
    column: EncodedColumn, values: NDArray[np.int64], group: NDArray[np.int64]
) -> list[str]:
    """Return the mean of each group of integers, stretched if the rule requires it."""
    n_groups = int(group.max(initial=-1)) + 1
    times, unit = _precision(column)
    totals, count = group_totals(values, group, n_groups=n_groups, times=times)
    if not column.rule.restore_variance or not n_groups:
        return _texts_of_units(column, _rounded(totals, count * unit))
    sums = (totals // times).astype(object)
    least = np.minimum.reduceat(values[np.argsort(group, kind="stable")], np.cumsum(count) - count)
    # unsigned differences of int64 do not overflow
    offsets = (values.view(np.uint64) - least.view(np.uint64)[group]).astype(np.float64)
    own = ((sums - least.astype(object) * count) / count).astype(np.float64)
    between = (sums * len(values) - sums.sum() * count.astype(object)) / (count * len(values))
    moved = shifts(offsets - own[group], between.astype(np.float64), count)
    means = [
        (Fraction(total, n) + Fraction(shift)) * times / unit
        for total, n, shift in zip(sums.tolist(), count.tolist(), moved.tolist(), strict=True)
    ]
    return _texts_of_units(column, np.array([round(mean) for mean in means], object))


@dataclass(frozen=True, slots=True)
class Midpoint:
    """The middle between the least and the greatest value; NULL if there is none.

    At the same precision as a mean. It discloses no member's value if they differ.
    """

    accepts = frozenset({Structure.LINE})

    def publish(self, column: EncodedColumn, assignment: Assignment) -> ValueColumn:
        """Return a midpoint for every group; O(n log n) and one text for each group."""
        keys, count = _present_keys(column, assignment)
        group = np.flatnonzero(count)
        last = np.cumsum(count)[group] - 1
        codes = (keys[place] % (column.size + 1) for place in (last - count[group] + 1, last))
        least, greatest = (column.values[code] for code in codes)
        if least.dtype.kind == "f":
            pairs = zip(least.tolist(), greatest.tolist(), strict=True)
            texts = _float_texts(column, [mean_of(pair) for pair in pairs])
        else:
            times, unit = _precision(column)
            ends = np.concatenate([least, greatest]).astype(np.int64)
            pair = np.tile(np.arange(len(group)), 2)
            totals, two = group_totals(ends, pair, n_groups=len(group), times=times)
            texts = _texts_of_units(column, _rounded(totals, two * unit))
        return _of_some(column, assignment, recoding="midpoint", group=group, texts=texts)


@dataclass(frozen=True, slots=True)
class Median:
    """The lower median of the values without NULL; NULL if there is none."""

    accepts = frozenset({Structure.LINE, Structure.ORDER})

    def publish(self, column: EncodedColumn, assignment: Assignment) -> ValueColumn:
        """Return a member's value for every group; O(n log n)."""
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
        """Return a member's value for every group; O(n log n)."""
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
    """Return group * (size + 1) + code of the values without NULL, sorted, and their counts."""
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
    boxes = column_boxes(column, assignment)
    return value_column(column, boxes, recoding=recoding, labels=labels, place=place)


def _of_some(
    column: EncodedColumn,
    assignment: Assignment,
    *,
    recoding: str,
    group: NDArray[np.int32] | NDArray[np.int64],
    texts: list[str],
) -> ValueColumn:
    """Return a column with a text for some groups, and NULL for the others."""
    place = np.full(assignment.n_groups, len(texts))
    place[group] = np.arange(len(texts))
    labels = [*texts, *([] if len(group) == assignment.n_groups else [None])]
    boxes = column_boxes(column, assignment)
    return value_column(column, boxes, recoding=recoding, labels=labels, place=place)


def _float_texts(column: EncodedColumn, means: list[float]) -> list[str]:
    """Return means as text, rounded from their shortest decimals to compare with the values."""
    digits = column.rule.decimals(column.kind)
    return [f"{Decimal(repr(mean)):z.{digits}f}" for mean in means]


def _precision(column: EncodedColumn) -> tuple[int, int]:
    """Return the multiplier and divisor that turn a mean of integers into whole units."""
    if column.values.dtype.kind == "M":
        return 1, 1 if column.kind is ColumnKind.DATE else _MICROSECONDS
    return 10 ** column.rule.decimals(column.kind), 1


def _rounded(numerator: NDArray[Any], denominator: NDArray[np.int64]) -> NDArray[Any]:
    """Return the nearest integers, ties to even; denominator > 0."""
    whole = numerator // denominator
    rest = 2 * (numerator - whole * denominator)
    up = (rest > denominator) | ((rest == denominator) & (whole % 2 == 1))
    return np.asarray(whole + up.astype(np.int64))


def _texts_of_units(column: EncodedColumn, units: NDArray[Any]) -> list[str]:
    """Return whole days, seconds or units of the last decimal as values."""
    distinct, place = np.unique(units, return_inverse=True)
    if column.values.dtype.kind == "M":
        moments = distinct.astype(np.int64) * _precision(column)[1]
        texts = value_texts(column.kind, moments.view(column.values.dtype))
    else:
        digits = column.rule.decimals(column.kind)
        texts = [fixed_text(number, digits) for number in distinct.tolist()]
    return [texts[i] for i in place.tolist()]
