"""Boxes of groups, cells and labels, as recodings use them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.loss.costs import box_losses, column_costs
from dbanon.domain.assignment import ValueColumn
from dbanon.domain.table import ColumnKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from dbanon.domain.assignment import Assignment, Bands, EncodedColumn


_TIMES = frozenset({ColumnKind.TIMESTAMP, ColumnKind.TIMESTAMPTZ})


@dataclass(frozen=True, eq=False, slots=True)
class ColumnBoxes:
    """Least and greatest code, rows and certainty penalty of all groups, (n_groups,) each."""

    lo: NDArray[np.int32]
    hi: NDArray[np.int32]
    size: NDArray[np.int64]
    loss: NDArray[np.float64]


def column_boxes(column: EncodedColumn, assignment: Assignment) -> ColumnBoxes:
    """Return the bounds of each group; O(n)."""
    from dbanon.kernels.boxes.costs import group_boxes

    codes = np.ascontiguousarray(column.codes[:, None])
    lo, hi, size = group_boxes(codes, assignment.group, assignment.n_groups)
    loss = box_losses([column_costs(column)], lo, hi)
    return ColumnBoxes(lo[:, 0], hi[:, 0], size, loss[:, 0])


def distinct_pairs(
    boxes: ColumnBoxes, size: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the distinct bounds, lo and hi, and for each group the index of its own."""
    keys, place = np.unique(boxes.lo * np.int64(size + 1) + boxes.hi, return_inverse=True)
    return keys // (size + 1), keys % (size + 1), place


def value_column(
    column: EncodedColumn,
    recoding: str,
    *,
    labels: Sequence[str | None],
    place: NDArray[np.int64],
    loss: NDArray[np.float64],
    size: NDArray[np.int64],
) -> ValueColumn:
    """Give every group its label, ``labels[place]``, and every label the mean loss of its rows."""
    index_of = {label: i for i, label in enumerate(dict.fromkeys(labels))}
    index = np.array([index_of[label] for label in labels], np.int32)[place]
    rows = np.bincount(index, weights=size, minlength=len(index_of))
    lost = np.bincount(index, weights=loss * size, minlength=len(index_of))
    return ValueColumn(
        name=column.name,
        recoding=recoding,
        kind=column.kind,
        index=index,
        labels=tuple(index_of),
        loss=np.clip(lost / rows, 0.0, 1.0),
    )


def range_literal(column: EncodedColumn, low: str, high: str, *, closing: str = "]") -> str:
    """Return a literal of a range type: ``[20,40)``, ``[90,)``, ``(,18)``; empty ends are open.

    A range of integers is open if its type cannot hold the integer beyond an end.
    """
    if column.greatest is not None:
        if low and int(low) < -column.greatest - 1:
            low = ""
        if high and int(high) + (closing == "]") > column.greatest:
            high = ""
    quote = '"' if column.kind in _TIMES else ""
    begin = f"[{quote}{low}{quote}" if low else "("
    end = f"{quote}{high}{quote}{closing}" if high else ")"
    return f"{begin},{end}"


def cells_literal(column: EncodedColumn, bands: Bands, lo: int, hi: int) -> str:
    """Return the cells lo..hi as a literal of a range type."""
    closing = _closing(bands, hi)
    return range_literal(column, bands.low[lo], bands.high[hi], closing=closing)


def cells_text(bands: Bands, lo: int, hi: int) -> str:
    """Return readable text: ``[20, 40)``, ``90+``, ``<18``, ``1984``, ``[1984, 1986]``, ``*``."""
    if bands.names:
        return bands.names[lo] if lo == hi else f"[{bands.names[lo]}, {bands.names[hi]}]"
    low, high, closing = bands.low[lo], bands.high[hi], _closing(bands, hi)
    if not high:
        return f"{low}+" if low else "*"
    if not low:
        return f"<={high}" if closing == "]" else f"<{high}"
    return low if lo == hi and closing == "]" else f"[{low}, {high}{closing}"


def _closing(bands: Bands, cell: int) -> str:
    """Return the closing bracket of a range that ends with a cell; below the bottom it is open."""
    return "]" if bands.closed and bands.low[cell] else ")"
