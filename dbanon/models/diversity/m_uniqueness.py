"""m-uniqueness, a part of m-invariance (Xiao, Tao, SIGMOD 2007)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dbanon.models.base import COUNT, Bound, Case, ClassModel, Reason

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dbanon.models.tally import Tally, Whole


@dataclass(frozen=True, slots=True)
class MUniqueness(ClassModel):
    """Every class has at least m rows, all with different values."""

    m: int = field(metadata=COUNT.field())

    title = "{m}-uniqueness"
    limit = "m"
    bound = Bound.AT_LEAST
    is_short = True
    one_row = "rows that all differ"
    is_monotone = False

    def achieved(self, tally: Tally, whole: Whole) -> NDArray[np.float64]:  # noqa: ARG002 - counts
        """Return the number of rows of each class, 0 if a value repeats."""
        import numpy as np

        unique = tally.most(tally.counts.astype(float)) <= 1
        return np.where(unique, tally.size, 0).astype(float)

    def explain(self, case: Case) -> Reason:
        """Return the share of the most frequent value."""
        most = case.whole.n_rows // int(case.one.counts.max())
        return case.shared, f"m = {most} with k <= {most}" if most > 1 else ""
