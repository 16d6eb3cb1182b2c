"""What the classes of a node must meet."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dbanon.domain.errors import PolicyError

if TYPE_CHECKING:
    from dbanon.anonymization.interfaces import Requirement
    from dbanon.domain.assignment import EncodedTable


@dataclass(frozen=True, slots=True)
class Condition:
    """Classes have k rows, l values, and distributions within t; up to ``budget`` rows may go."""

    k: int
    l: int
    t: float
    budget: int

    @property
    def monotone(self) -> Condition:
        """The part that a node meets whenever a node below does, for any subset of the columns.

        Suppressed rows that come back may move the distribution of the whole away from that of a
        class, so that t-closeness is monotone only when no row may go.
        """
        return self if self.budget == 0 else replace(self, t=1.0)

    @property
    def counts_only(self) -> bool:
        """Whether the sizes of the classes decide."""
        return self.l <= 1 and self.t >= 1.0


ANYTHING = Condition(k=1, l=1, t=1.0, budget=0)


def condition(table: EncodedTable, requirement: Requirement, *, t: float) -> Condition:
    """Return the condition of a table; raise PolicyError for a t that means nothing."""
    if not 0 <= t <= 1:
        msg = f"t = {t} is not a distance in [0, 1]"
        raise PolicyError(msg, hint="1 asks for nothing; 0.2 is a usual choice")
    if t < 1 and not table.sensitive_names:
        msg = f"the policy asks for t = {t} but names no sensitive column"
        raise PolicyError(msg, hint="give a column the role sensitive")
    budget = requirement.budget(table.n_rows)
    return Condition(requirement.k, requirement.l, t, budget)
