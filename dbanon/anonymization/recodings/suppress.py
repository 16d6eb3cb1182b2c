"""Nothing at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dbanon.domain.assignment import ValueColumn

if TYPE_CHECKING:
    from dbanon.domain.assignment import Assignment, EncodedColumn
    from dbanon.domain.table import Structure


@dataclass(frozen=True, slots=True)
class Suppress:
    """A star for every group."""

    def accepts(self, structure: Structure) -> bool:  # noqa: ARG002 - any column can be hidden
        """Accept every column."""
        return True

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
