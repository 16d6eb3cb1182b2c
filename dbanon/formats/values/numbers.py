"""The values of a column as numbers, and numbers as values of the column."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from dbanon.domain.table import ColumnKind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.domain.table import ColumnInfo

_EPOCH = date(1970, 1, 1)
_INTEGERS = {"int2": 2**15, "int4": 2**31, "int8": 2**63}
_MOST_DECIMALS = 12
_LARGEST = 1e150  # beyond it the square of a number is none
_LARGEST_WHOLE = 2.0**53  # from here on floats skip whole numbers
_MICROSECONDS = 1_000_000
_NUMERIC = re.compile(r"numeric\((\d+)(?:,(-?\d+))?\)")
_FIRST, _LAST = (float((day - _EPOCH).days) for day in (date.min, date.max))
_DAY = 86_400


def numbers(values: pa.Array, kind: ColumnKind) -> NDArray[np.float64]:
    """Return the number of each value, NaN for what is none, or infinite, or more than 1e150.

    values: texts, or what quasi-identifiers are read as; days and seconds since 1970 for dates and
    times, of which those before the year 1 and after 9999 are none.
    """
    if pa.types.is_string(values.type):
        found = np.array([_number(text, kind) for text in values.to_pylist()], np.float64)
    elif pa.types.is_timestamp(values.type):
        whole = values.cast(pa.timestamp("us", values.type.tz)).cast(pa.int64())
        found = whole.to_numpy(zero_copy_only=False).astype(np.float64) / _MICROSECONDS
    else:
        if pa.types.is_date(values.type):
            values = values.cast(pa.int32())
        found = values.to_numpy(zero_copy_only=False).astype(np.float64)
    if kind.is_moment:
        unit = 1 if kind is ColumnKind.DATE else _DAY
        found[(found < _FIRST * unit) | (found >= (_LAST + 1) * unit)] = np.nan
    found[~(np.abs(found) <= _LARGEST)] = np.nan
    return found


def are_coarse(values: pa.Array, found: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether each number is of so many digits before the point that its float is another one."""
    coarse = np.abs(found) >= _LARGEST_WHOLE
    for i in np.flatnonzero(coarse).tolist():
        coarse[i] = Decimal(str(values[i])) != Decimal(repr(float(found[i])))
    return coarse


def written(
    found: NDArray[np.float64], column: ColumnInfo, like: pa.Array, *, alone: bool = False
) -> pa.Array:
    """Return numbers as values of the column, of the type that ``like`` has.

    Whole numbers where the column has such, whole days and seconds, and no more decimals than
    ``like``; the nearest that the type can hold. alone: with the decimals of each number and no
    zeros after them, however many ``like`` has.
    """
    kind = column.kind
    if kind is ColumnKind.INTEGER:
        end = _INTEGERS[column.base_type]
        whole = [min(max(int(x), -end), end - 1) for x in np.rint(found).tolist()]
        if pa.types.is_string(like.type):
            return pa.array(map(str, whole), pa.string())
        return pa.array(whole, like.type)
    if kind.is_moment:
        return _moments(found, kind, like.type)
    decimals = _declared_decimals(column.type) if alone else _decimals(like)
    greatest, found = _greatest(column.type, decimals), found.round(decimals)
    if greatest is not None:
        found = np.clip(found, -greatest, greatest)
    if not pa.types.is_string(like.type):
        return pa.array(found, like.type)
    spell = "{:.15g}" if kind is ColumnKind.FLOAT else f"{{:.{decimals}f}}"
    texts = [spell.format(x) for x in found.tolist()]
    if alone and kind is ColumnKind.DECIMAL and decimals:
        texts = [text.rstrip("0").rstrip(".") for text in texts]
    return pa.array(texts, pa.string())


def _number(text: str, kind: ColumnKind) -> float:
    try:
        if kind is ColumnKind.DATE:
            return float((date.fromisoformat(text) - _EPOCH).days)
        if kind.is_moment:
            moment = datetime.fromisoformat(text)
            since = moment.replace(tzinfo=moment.tzinfo or UTC)
            return (since - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(seconds=1)
        return float(text)
    except ValueError:  # before Christ, after the year 9999, infinity
        return float("nan")


def _moments(found: NDArray[np.float64], kind: ColumnKind, of: pa.DataType) -> pa.Array:
    unit = 1 if kind is ColumnKind.DATE else _DAY
    whole = np.clip(np.rint(found), _FIRST * unit, (_LAST + 1) * unit - 1).astype(np.int64)
    if pa.types.is_date(of):
        return pa.array(whole.astype(np.int32)).cast(of)
    if pa.types.is_timestamp(of):
        return pa.array(whole).cast(pa.timestamp("s", of.tz)).cast(of)
    if kind is ColumnKind.DATE:
        return pa.array([str(_EPOCH + timedelta(days=day)) for day in whole.tolist()], pa.string())
    start = datetime(1970, 1, 1, tzinfo=UTC)
    moments = (start + timedelta(seconds=second) for second in whole.tolist())
    zone = "+00" if kind is ColumnKind.TIMESTAMPTZ else ""
    spelled = [f"{m:%Y-%m-%d %H:%M:%S}"[-19:].rjust(19, "0") + zone for m in moments]
    return pa.array(spelled, pa.string())


def _declared_decimals(declared: str) -> int:
    """Return how many decimals a type can hold, up to 12."""
    fits = _NUMERIC.fullmatch(declared)
    return _MOST_DECIMALS if fits is None else min(max(int(fits[2] or 0), 0), _MOST_DECIMALS)


def _greatest(declared: str, decimals: int) -> float | None:
    """Return the greatest number of a numeric type with a precision, None of others."""
    fits = _NUMERIC.fullmatch(declared)
    if fits is None:
        return None
    greatest = Decimal(f"{'9' * int(fits[1])}e{-int(fits[2] or 0)}")
    end = float(greatest)
    while Decimal(f"{end:.{decimals}f}") > greatest:
        end = float(np.nextafter(end - 10.0**-decimals / 2, 0.0))
    return end


def _decimals(like: pa.Array) -> int:
    """Return how many decimals values have, up to 12."""
    if pa.types.is_string(like.type):
        parts = (text.partition(".")[2] for text in like.to_pylist() if "e" not in text.lower())
        return min(max(map(len, parts), default=0), _MOST_DECIMALS)
    found = like.to_numpy(zero_copy_only=False)
    found = found[np.isfinite(found)]
    return next(
        (d for d in range(_MOST_DECIMALS) if (found.round(d) == found).all()), _MOST_DECIMALS
    )
