"""The alpha of (alpha, k)-anonymity (Wong et al., KDD 2006); k is a separate model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dbanon.kernels import layout
from dbanon.models.base import SHARE, Bound, Case, ClassModel, OfPersons, Reason, Rule, rounded_up

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dbanon.models.tally import Tally, Whole


@dataclass(frozen=True, slots=True)
class AlphaKAnonymity(ClassModel):
    """No value has a share of more than alpha of a class."""

    alpha: float = field(metadata=SHARE.field())

    title = "a share of at most alpha = {alpha}"
    limit = "alpha"
    bound = Bound.AT_MOST
    is_short = True
    of_persons = OfPersons.TOP_SHARE

    def achieved(self, tally: Tally, whole: Whole) -> NDArray[np.float64]:  # noqa: ARG002 - counts
        """Return the largest share of a value in each class."""
        return tally.most(tally.shares())

    def search_rule(self, whole: Whole) -> Rule:  # noqa: ARG002 - counts
        """Return the largest share of a value."""
        return layout.SHARE, [self.required, 0.0]

    def explain(self, case: Case) -> Reason:
        """Return the share of the most frequent value."""
        return case.shared, f"alpha >= {rounded_up(case.top)}"
