"""(n, t)-closeness (Li, Li, Venkatasubramanian, TKDE 2010)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dbanon.models.base import CLOSENESS, COUNT, DISTANCE, Bound, Case, ClassModel, Reason, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

    from dbanon.models.tally import Tally, Whole


@dataclass(frozen=True, slots=True)
class NTCloseness(ClassModel):
    """Every class is within t of one of the larger sets around it that have n rows.

    The sets are the rows with the same published values in the first quasi-identifiers of the
    policy, for any number of them; for none, the whole relation.
    """

    n: int = field(metadata=COUNT.field())
    t: float = field(metadata=CLOSENESS.field())
    distance: str = field(metadata=DISTANCE.field())

    title = "({n}, {t})-closeness ({distance})"
    limit = "t"
    bound = Bound.AT_MOST
    of_whole = True
    is_around = True

    def achieved(self, tally: Tally, whole: Whole) -> NDArray[np.float64]:
        """Return the distance of each class from the nearest set of n rows, infinite if none."""
        import numpy as np

        from dbanon.models.closeness.distances import distance_from

        best = np.full(tally.n_classes, np.inf)
        if whole.n_rows >= self.n:
            best = distance_from(tally, whole, whole.share, distance=self.distance)
        for joint in whole.coarser:
            for some, share in self._sets(tally, whole, joint):
                near = distance_from(tally.of(some), whole, share, distance=self.distance)
                best[some] = np.minimum(best[some], near)
        return best

    def _sets(
        self, tally: Tally, whole: Whole, joint: NDArray[np.int64]
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float64]]]:
        """Yield the classes of each set of n rows, and the distribution of its values."""
        import numpy as np

        rows = np.bincount(joint, weights=tally.size)
        order = np.argsort(joint, kind="stable")
        ends = np.cumsum(np.bincount(joint))
        for number in np.flatnonzero(rows >= self.n):
            some = order[ends[number - 1] if number else 0 : ends[number]]
            part = tally.of(some)
            counts = np.bincount(part.values, weights=part.counts, minlength=len(whole.share))
            yield some, counts / rows[number]

    def search_rule(self, whole: Whole) -> Rule:
        """Return the distance from the whole relation, which is one of the sets."""
        from dbanon.models.closeness.distances import closeness_rule

        return closeness_rule(self.t, whole, distance=self.distance)

    def explain(self, case: Case) -> Reason:
        """Return the number of rows."""
        return f"the table has {case.whole.n_rows:,} rows", f"n <= {case.whole.n_rows}"
