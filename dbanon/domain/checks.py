"""Proofs of a relation by the database, and the error if they fail."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from dbanon.domain.errors import DbanonError

if TYPE_CHECKING:
    from datetime import datetime

    from dbanon.domain.table import TableName


class Verdict(StrEnum):
    """Result of one check; an empty relation is not checked, never passed."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_CHECKED = "not checked"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One model on one relation, as counted by the database.

    ``column`` is None for k-anonymity; ``achieved``: by the worst class, None if unchecked.
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
    """The check of every model of a release, on the relation that is served."""

    relation: TableName
    results: tuple[CheckResult, ...]

    @property
    def passed(self) -> bool:
        """True if something was checked and everything passed."""
        return self.verdict is Verdict.PASSED

    @property
    def verdict(self) -> Verdict:
        """Failed if any check failed, passed only if all models were checked."""
        found = {result.verdict for result in self.results}
        if Verdict.FAILED in found:
            return Verdict.FAILED
        return Verdict.PASSED if found == {Verdict.PASSED} else Verdict.NOT_CHECKED

    @property
    def shortfalls(self) -> tuple[str, ...]:
        """Required and achieved value of each failed model."""
        return tuple(
            f"{result.model}{f' of {result.column}' if result.column else ''} requires"
            f" {result.required:g}, the worst class has {result.achieved:g}"
            f" ({result.failing_classes:,} of {result.classes:,} classes fail)"
            for result in self.results
            if result.verdict is Verdict.FAILED
        )


@dataclass(frozen=True, slots=True)
class Verification:
    """A later check of a release in the ledger; ``reason``: why it did not pass."""

    release: int
    verdict: Verdict
    results: tuple[CheckResult, ...]
    reason: str | None
    verified_at: datetime
    verified_by: str


class CheckFailed(DbanonError):
    """The relation does not meet its guarantees."""

    exit_code = 3

    def __init__(self, message: str, report: CheckReport, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.report = report
