"""Nothing at all, or nothing where values differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.encoding.text import value_texts
from dbanon.anonymization.recodings.groups import column_boxes, value_column
from dbanon.domain.assignment import ValueColumn
from dbanon.domain.table import Structure

if TYPE_CHECKING:
    from dbanon.domain.assignment import Assignment, EncodedColumn


@dataclass(frozen=True, slots=True)
class Suppress:
    """A star for every group."""

    accepts = frozenset(Structure)

    def publish(self, column: EncodedColumn, assignment: Assignment) -> ValueColumn:
        """Return the one label, at full loss."""
        return ValueColumn(
            name=column.name,
            recoding="suppress",
            kind=column.kind,
            index=np.zeros(assignment.n_groups, np.int32),
            labels=("*",),
            loss=np.ones(1),
        )


@dataclass(frozen=True, slots=True)
class CellSuppression:
    """The value where all rows of the group have the same one, else NULL; the type stays.

    So do Aggarwal et al. (ICDT 2005) and Meyerson and Williams (PODS 2004) publish a class.
    """

    accepts = frozenset(Structure)

    def publish(self, column: EncodedColumn, assignment: Assignment) -> ValueColumn:
        """Return a value or NULL for every group; O(n) and one text for each distinct value."""
        boxes = column_boxes(column, assignment)
        shown = np.where(boxes.lo == boxes.hi, boxes.lo, column.size)
        codes, place = np.unique(shown, return_inverse=True)
        known = codes[codes < column.size]
        labels = [
            *value_texts(column.kind, column.values[known]),
            *[None] * (len(codes) > len(known)),
        ]
        loss = np.where(boxes.lo == boxes.hi, 0.0, 1.0)
        return value_column(
            column, "cell-suppression", labels=labels, place=place, loss=loss, size=boxes.size
        )
