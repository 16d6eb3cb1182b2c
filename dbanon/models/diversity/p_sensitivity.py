"""The p of p-sensitive k-anonymity (Truta, Vinay 2006); k is a separate model."""

from __future__ import annotations

from dataclasses import dataclass, field

from dbanon.models.base import COUNT, Case, DistinctModel, OfPersons, Reason, too_few


@dataclass(frozen=True, slots=True)
class PSensitivity(DistinctModel):
    """Every class has at least p distinct values of the sensitive column."""

    p: int = field(metadata=COUNT.field())

    title = "{p}-sensitivity"
    limit = "p"
    is_short = True
    of_persons = OfPersons.DIFFERENT_VALUES
    guards_persons = True

    def explain(self, case: Case) -> Reason:
        """Return the number of values."""
        return too_few(case, self.p, possible="{}-sensitivity")
