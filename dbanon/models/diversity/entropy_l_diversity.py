"""Entropy l-diversity (Machanavajjhala et al., ICDE 2006, TKDD 2007)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dbanon.kernels.layout import ENTROPY
from dbanon.models.base import LEVEL, Bound, Case, ClassModel, Reason, Rule, rounded_down

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dbanon.models.tally import Tally, Whole


@dataclass(frozen=True, slots=True)
class EntropyLDiversity(ClassModel):
    """The entropy of the values of every class is at least ln l."""

    l: float = field(metadata=LEVEL.field())

    title = "entropy {l}-diversity"
    limit = "l"
    bound = Bound.AT_LEAST

    def achieved(self, tally: Tally, whole: Whole) -> NDArray[np.float64]:  # noqa: ARG002 - counts
        """Return exp(entropy) of each class."""
        import numpy as np

        shares = tally.shares()
        effective: NDArray[np.float64] = np.exp(-tally.total(shares * np.log(shares)))
        return effective

    def search_rule(self, whole: Whole) -> Rule:  # noqa: ARG002 - counts
        """Return the least entropy."""
        return ENTROPY, [math.log(self.required), 0.0]

    def explain(self, case: Case) -> Reason:
        """Return the possible l of the three kinds."""
        level = float(self.achieved(case.one, case.whole)[0])
        distinct = min(case.distinct, max(int(self.l), 1))
        entropy, probabilistic = rounded_down(level), rounded_down(1 / case.top)
        possible = f"entropy l <= {entropy}, distinct {distinct}-diversity"
        return case.shared, f"{possible}, or probabilistic l <= {probabilistic},"
