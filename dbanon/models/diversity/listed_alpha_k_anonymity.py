"""(alpha, k)-anonymity of listed values (Wong et al., KDD 2006); k is a separate model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dbanon.models.base import (
    SHARE,
    TEXTS,
    Bound,
    Case,
    ClassModel,
    Reads,
    Reason,
    Rule,
    rounded_up,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dbanon.models.tally import Tally, Whole

_MOST_VALUES = 1_000


@dataclass(frozen=True, slots=True)
class ListedAlphaKAnonymity(ClassModel):
    """No ``listed`` value has a share of more than alpha of a class; the others are not limited."""

    alpha: float = field(metadata=SHARE.field())
    listed: tuple[str, ...] = field(metadata=TEXTS.field())

    title = "a share of at most alpha = {alpha} of each listed value"
    limit = "alpha"
    bound = Bound.AT_MOST
    reads = Reads.LABELS

    def achieved(self, tally: Tally, whole: Whole) -> NDArray[np.float64]:
        """Return the largest share of a listed value in each class, 0 if it has none."""
        import numpy as np

        is_listed = np.isin(tally.values, whole.domain.codes_of(self.listed))
        return tally.most(np.where(is_listed, tally.shares(), 0.0))

    def search_rule(self, whole: Whole) -> Rule | None:
        """Return the largest share of each value, None if there are too many to count."""
        import numpy as np

        from dbanon.models.closeness.distances import between

        if len(whole.share) > _MOST_VALUES:
            return None
        most = np.ones(len(whole.share))
        most[whole.domain.codes_of(self.listed)] = self.alpha
        return between(whole, np.zeros(len(most)), most + 1e-12)

    def explain(self, case: Case) -> Reason:
        """Return the share of the most frequent listed value."""
        top = float(self.achieved(case.one, case.whole)[0])
        fact = f"{100 * top:.0f} % of the rows share one of the listed values of {case.name}"
        return fact, f"alpha >= {rounded_up(top)}"
