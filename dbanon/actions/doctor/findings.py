"""What doctor found, and how bad it is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from dbanon.domain.errors import DbanonError


class Level(StrEnum):
    """How bad a finding is."""

    OK = "ok"
    WARNING = "warning"
    FAILURE = "failure"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at; ``exit_code`` is what it would make the command return."""

    level: Level
    subject: str
    message: str
    hint: str | None = None
    exit_code: int = 0


def failure(subject: str, message: str, hint: str | None) -> Finding:
    """Return the finding that something is broken."""
    return Finding(Level.FAILURE, subject, message, hint, DbanonError.exit_code)
