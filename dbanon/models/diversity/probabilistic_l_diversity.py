"""Probabilistic l-diversity: the most frequent value is guessed with probability 1 / l at most."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dbanon.kernels.layout import SHARE
from dbanon.models.base import LEVEL, Bound, ClassModel, OfPersons, Rule

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dbanon.models.tally import Tally, Whole


@dataclass(frozen=True, slots=True)
class ProbabilisticLDiversity(ClassModel):
    """No value has a share of more than 1 / l of a class."""

    l: float = field(metadata=LEVEL.field())

    title = "probabilistic {l}-diversity"
    limit = "l"
    bound = Bound.AT_LEAST
    of_persons = OfPersons.INVERSE_TOP_SHARE

    def achieved(self, tally: Tally, whole: Whole) -> NDArray[np.float64]:  # noqa: ARG002 - counts
        """Return the rows of each class over those of its most frequent value."""
        return tally.size / tally.most(tally.counts.astype(float))

    def search_rule(self, whole: Whole) -> Rule:  # noqa: ARG002 - counts
        """Return the largest share of a value."""
        return SHARE, [1.0 / self.required, 0.0]
