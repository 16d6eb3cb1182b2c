"""Warnings about policies that are valid but rarely intended."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Code(StrEnum):
    """Subject of a warning, by which a policy acknowledges it; stored, so never renamed."""

    K_OF_ONE = "k-of-one"
    NO_DIVERSITY = "no-diversity"
    UNKNOWN_VALUE = "unknown-value"
    NO_SUBJECT = "no-subject"
    UNIQUE_TOGETHER = "unique-together"
    UNIQUE_INDEX = "unique-index"
    NEAR_UNIQUE = "near-unique"
    ALIKE_VALUES = "alike-values"
    LOOKS_LIKE_IDENTIFIER = "looks-like-identifier"
    NEW_COLUMN = "new-column"
    LOOKS_LIKE_SSN = "looks-like-ssn"
    LOOKS_LIKE_EMAIL = "looks-like-email"
    LOOKS_LIKE_PHONE = "looks-like-phone"
    LOOKS_LIKE_NAME = "looks-like-name"
    LOOKS_LIKE_COORDINATES = "looks-like-coordinates"
    FREE_TEXT = "free-text"
    TO_THE_SECOND = "to-the-second"
    KNOWN_TO_OTHERS = "known-to-others"
    DERIVED = "derived"
    REPEATED = "repeated"
    MASKED = "masked"
    ANATOMY = "anatomy"
    PSEUDONYM = "pseudonym"

    @property
    def of_column(self) -> bool:
        """True if it concerns a column, whose rule acknowledges it; otherwise the policy."""
        return self not in _OF_POLICY


_OF_POLICY = frozenset(
    {Code.K_OF_ONE, Code.NO_DIVERSITY, Code.NO_SUBJECT, Code.UNIQUE_TOGETHER, Code.NEW_COLUMN}
    | {Code.ANATOMY, Code.PSEUDONYM, Code.UNKNOWN_VALUE}
)


@dataclass(frozen=True, slots=True)
class Caution:
    """Something in a policy that weakens its guarantee; ``column`` is None for all of it."""

    code: Code
    column: str | None
    message: str
    hint: str

    def __str__(self) -> str:
        """Return the message with the hint, on one line."""
        return f"{self.with_code} (try: {self.hint})"

    @property
    def with_code(self) -> str:
        """The message with its code."""
        return f"{self.message} [{self.code}]"


@dataclass(frozen=True, slots=True)
class Contents:
    """Rows of a column without NULL, and distinct values.

    n_alike: values that differ from another only in case, blanks or Unicode form, 0 if not counted.
    """

    n_filled: int
    n_distinct: int
    n_alike: int = 0
