"""What recodings need to know of the groups, and how they hand over their labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.loss.costs import box_losses, column_costs
from dbanon.domain.assignment import ValueColumn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from dbanon.domain.assignment import Assignment, EncodedColumn


@dataclass(frozen=True, eq=False, slots=True)
class ColumnBoxes:
    """One column of the boxes of all groups, (n_groups,) each.

    lo, hi: least and greatest code; size: rows; loss: normalized certainty penalty.
    """

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
    """Return the distinct bounds, lo and hi, and for each group the place of its own."""
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
    """Give every group its label, ``labels[place]``, and every distinct label its loss.

    loss, size: (n_groups,). Groups that share a label may have lost differently; the label's loss
    is then their mean over rows, so that sums over rows stay exact.
    """
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
