"""k-anonymity (Samarati 2001, Sweeney 2002)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dbanon.models.base import COUNT, Bound, ClassModel, Scope

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dbanon.models.tally import Tally, Whole


@dataclass(frozen=True, slots=True)
class KAnonymity(ClassModel):
    """Every class has at least k rows; a row counts itself."""

    k: int = field(metadata=COUNT.field())

    title = "{k}-anonymity"
    limit = "k"
    bound = Bound.AT_LEAST
    scope = Scope.CLASSES
    is_short = True
    counts = True
    guards_persons = True

    def achieved(self, tally: Tally, whole: Whole) -> NDArray[np.float64]:  # noqa: ARG002 - rows
        """Return the number of rows of each class."""
        return tally.size.astype(float)
