"""Nothing at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

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
