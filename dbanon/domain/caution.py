"""What is allowed and seldom meant."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Code(StrEnum):
    """What a caution is about, and the word by which a policy allows it.

    Stored policies hold these words, so none is renamed or taken away.
    """

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
        """Whether it is about a column, whose rule then allows it; else about the policy."""
        return self not in _OF_POLICY


_OF_POLICY = frozenset(
    {Code.K_OF_ONE, Code.NO_DIVERSITY, Code.NO_SUBJECT, Code.UNIQUE_TOGETHER, Code.NEW_COLUMN}
    | {Code.ANATOMY, Code.PSEUDONYM, Code.UNKNOWN_VALUE}
)


@dataclass(frozen=True, slots=True)
class Caution:
    """Something in a policy that weakens what it promises; ``column`` is None for all of it."""

    code: Code
    column: str | None
    message: str
    hint: str

    def __str__(self) -> str:
        """Return it on one line, with what to do."""
        return f"{self.with_code} (try: {self.hint})"

    @property
    def with_code(self) -> str:
        """The message with the word by which a policy allows it."""
        return f"{self.message} [{self.code}]"


@dataclass(frozen=True, slots=True)
class Contents:
    """How many values a column has, and how many differ from another one.

    n_filled: rows whose value is not NULL; n_alike: the distinct values that differ from another
    only in case, blanks or the form of their characters, 0 where nobody has looked.
    """

    n_filled: int
    n_distinct: int
    n_alike: int = 0
