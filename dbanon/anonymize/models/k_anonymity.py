"""k-anonymity (Samarati 2001, Sweeney 2002)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from dbanon.anonymize.models.bounds import Bound

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dbanon.anonymize.models.tally import Tally, Whole


@dataclass(frozen=True, slots=True)
class KAnonymity:
    """Every class has at least k rows; a row counts itself."""

    k: int
    bound: ClassVar[Bound] = Bound.AT_LEAST

    @property
    def required(self) -> float:
        """The least number of rows."""
        return self.k

    def achieved(self, tally: Tally, whole: Whole) -> NDArray[np.float64]:  # noqa: ARG002 - rows
        """Return the number of rows of each class."""
        return tally.size.astype(float)
