"""What the database proved of a relation, and the error when it did not."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from dbanon.domain.errors import DbanonError

if TYPE_CHECKING:
    from datetime import datetime

    from dbanon.domain.table import TableName


class Verdict(StrEnum):
    """The outcome of one check; an empty relation is not checked, never passed."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_CHECKED = "not checked"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One model on one relation, as the database counted it.

    ``column`` is the sensitive column, None for k-anonymity; ``achieved`` is what the worst class
    achieves, None when nothing was checked.
    """

    model: str
    column: str | None
    required: float
    achieved: float | None
    classes: int
    failing_classes: int
    n_rows: int
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class CheckReport:
    """Every model of a release, checked on the relation that readers see."""

    relation: TableName
    results: tuple[CheckResult, ...]

    @property
    def passed(self) -> bool:
        """Whether there was something to check and all of it held."""
        return self.verdict is Verdict.PASSED

    @property
    def verdict(self) -> Verdict:
        """Failed if anything failed, and passed only if all that was asked was checked."""
        found = {result.verdict for result in self.results}
        if Verdict.FAILED in found:
            return Verdict.FAILED
        return Verdict.PASSED if found == {Verdict.PASSED} else Verdict.NOT_CHECKED

    @property
    def shortfalls(self) -> tuple[str, ...]:
        """What each model that failed requires, and how far the worst class is from it."""
        return tuple(
            f"{result.model}{f' of {result.column}' if result.column else ''} requires"
            f" {result.required:g}, the worst class has {result.achieved:g}"
            f" ({result.failing_classes:,} of {result.classes:,} classes fail)"
            for result in self.results
            if result.verdict is Verdict.FAILED
        )


@dataclass(frozen=True, slots=True)
class Verification:
    """A later check of a release, as the ledger keeps it; ``reason`` is why it did not pass."""

    release: int
    verdict: Verdict
    results: tuple[CheckResult, ...]
    reason: str | None
    verified_at: datetime
    verified_by: str


class CheckFailed(DbanonError):
    """The relation does not hold what it promises."""

    exit_code = 3

    def __init__(self, message: str, report: CheckReport, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.report = report
