"""Distinct l-diversity (Machanavajjhala et al., ICDE 2006, TKDD 2007); NULL is a value."""

from __future__ import annotations

from dataclasses import dataclass, field

from dbanon.models.base import COUNT, Case, DistinctModel, OfPersons, Reason, too_few


@dataclass(frozen=True, slots=True)
class LDiversity(DistinctModel):
    """Every class has at least l distinct values of the sensitive column."""

    l: int = field(metadata=COUNT.field())

    title = "distinct {l}-diversity"
    limit = "l"
    is_short = True
    counts = True
    of_persons = OfPersons.DIFFERENT_VALUES
    guards_persons = True

    def explain(self, case: Case) -> Reason:
        """Return the number of values."""
        return too_few(case, self.l, possible="distinct {}-diversity")
