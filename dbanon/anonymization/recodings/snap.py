"""Widening bounds outward to a grid, so that they no longer are values of members."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.encoding.text import decimal_text, value_texts
from dbanon.domain.errors import PolicyError
from dbanon.domain.table import ColumnKind, quote_identifier

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.domain.assignment import EncodedColumn

_UNITS_PER_SNAP = {
    ColumnKind.INTEGER: 1,
    ColumnKind.DATE: 1,
    ColumnKind.TIMESTAMP: 1_000_000,
    ColumnKind.TIMESTAMPTZ: 1_000_000,
}


@dataclass(frozen=True, slots=True)
class SnappedBounds:
    """Values widened to grid lines, as exact integers of some unit and as text.

    low, high: the grid lines at or below and at or above each value; span: the range of the
    column in the same unit.
    """

    low: list[int]
    high: list[int]
    low_texts: list[str]
    high_texts: list[str]
    span: int


def snap_bounds(column: EncodedColumn, codes: NDArray[np.int64]) -> SnappedBounds:
    """Widen the values of the codes to multiples of the rule's ``snap``; exact arithmetic.

    Raises PolicyError unless the grid is positive and made of whole integers, days or
    microseconds where the values are.
    """
    values = column.values[np.append(codes, [0, -1])] if column.size else column.values
    if values.dtype.kind == "f":
        exact = [Decimal(repr(value)) for value in values.tolist()]
        step, places = _grid(column, exact)
        units = [int(number.scaleb(places)) for number in exact]
    else:
        step, places = _grid(column, [])
        units = values.astype(np.int64).tolist()
    ends, units = units[-2:], units[:-2]
    low = [unit // step * step for unit in units]
    high = [-(-unit // step) * step for unit in units]
    return SnappedBounds(
        low=low,
        high=high,
        low_texts=_texts(column, low, places),
        high_texts=_texts(column, high, places),
        span=ends[1] - ends[0] if ends else 0,
    )


def _grid(column: EncodedColumn, exact: list[Decimal]) -> tuple[int, int]:
    """Return the grid's step in units, and the decimals of a unit; fractions as ``exact``."""
    snap, places = Decimal(repr(column.rule.snap)), 0
    if column.kind in _UNITS_PER_SNAP:
        step = snap * _UNITS_PER_SNAP[column.kind]
    else:
        places = max(0, *(-_exponent(number) for number in [snap, *exact]))
        step = snap.scaleb(places)
    if not step.is_finite() or step <= 0 or step != int(step):
        msg = f"column {quote_identifier(column.name)}: snap must be a positive whole step"
        raise PolicyError(msg, hint="give snap in units of the column (days, seconds)")
    return int(step), places


def _exponent(number: Decimal) -> int:
    exponent = number.as_tuple().exponent
    return exponent if isinstance(exponent, int) else 0


def _texts(column: EncodedColumn, units: list[int], places: int) -> list[str]:
    if column.kind is ColumnKind.INTEGER:
        return [str(unit) for unit in units]
    if column.kind in _UNITS_PER_SNAP:
        try:
            grid = np.array(units, np.int64)
        except OverflowError:
            msg = f"column {quote_identifier(column.name)}: snap leaves no date or time to round to"
            raise PolicyError(
                msg, hint="give snap in units of the column (days, seconds)"
            ) from None
        return value_texts(column.kind, grid.view(column.values.dtype))
    return [decimal_text(unit, places) for unit in units]
