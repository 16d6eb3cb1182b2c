"""Distinct l-diversity (Machanavajjhala et al., ICDE 2006, TKDD 2007); NULL is a value."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dbanon.kernels.layout import DISTINCT
from dbanon.models.base import ClassModel, OfPersons, Variant
from dbanon.models.bounds import Bound
from dbanon.models.explanation import too_few
from dbanon.models.parameters import COUNT

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dbanon.models.base import Rule
    from dbanon.models.explanation import Case, Told
    from dbanon.models.tally import Tally, Whole


@dataclass(frozen=True, slots=True)
class LDiversity(ClassModel):
    """Every class has at least l distinct values of the sensitive column."""

    l: int = field(metadata=COUNT.field("--l", help="least distinct sensitive values in a class"))

    title = "distinct {l}-diversity"
    limit = "l"
    bound = Bound.AT_LEAST
    variant = Variant("--l-kind", "distinct", "how --l counts; recursive needs --c as well")
    is_short = True
    counts = True
    of_persons = OfPersons.DIFFERENT_VALUES
    guards_persons = True

    def achieved(self, tally: Tally, whole: Whole) -> NDArray[np.float64]:  # noqa: ARG002 - counts
        """Return the number of distinct values of each class."""
        return tally.distinct().astype(float)

    def search_rule(self, whole: Whole) -> Rule:  # noqa: ARG002 - counts
        """Return the number of values."""
        return DISTINCT, [self.required, 0.0]

    def explain(self, case: Case) -> Told:
        """Say how many values there are."""
        return too_few(case, self.l, possible="distinct {}-diversity")
