"""Warnings about policies that are valid but rarely intended."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dbanon.domain.policy import Role


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
    NOT_APPROVED = "not-approved"
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
    | {Code.ANATOMY, Code.PSEUDONYM, Code.UNKNOWN_VALUE, Code.NOT_APPROVED}
)


class Content(NamedTuple):
    """A pattern of texts, such as e-mail addresses, and the role of columns that match it.

    what: name of the pattern; holds: returns True if a text matches. A column matches if a share
    ``least`` of at least ``fewest`` distinct texts does; own: only if most of its values differ.
    code: warning about such a column that is published unchanged.
    """

    what: str
    role: Role
    holds: Callable[[str], object]
    least: float
    code: Code | None = None
    fewest: int = 1
    own: bool = False


class Match(NamedTuple):
    """A pattern, and the share of the rows with a value that match it."""

    content: Content
    share: float


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a warning means: what was found, what an attacker can do with it, and a remedy."""

    finding: str
    risk: str
    remedy: str


_LOOKS_LIKE = "the values of a column that is published unchanged look like {}"
_FINDS = "Whoever knows the value of a person finds the row."
_NAMES = "They identify persons, whatever class a row is in."
_DROP = "give it the role identifier"
_COARSEN = "give it the role quasi or identifier"
_GROUP = "give it the role identifier or quasi, or group its values in a generated column"

EXPLANATIONS: Mapping[Code, Explanation] = {
    Code.K_OF_ONE: Explanation("k = 1", "A class may be a single row.", "--k 5 or more"),
    Code.NO_DIVERSITY: Explanation(
        "l = 1, or no model protects a sensitive column",
        "If all rows of a class have the same value, it is known of every person in it.",
        "--l 2 or more",
    ),
    Code.UNKNOWN_VALUE: Explanation(
        "a model limits listed values, some of which are in no row",
        "If one is misspelled, nothing limits the value that was meant.",
        "correct the list in the policy",
    ),
    Code.NO_SUBJECT: Explanation(
        "a column suggests that persons have several rows, and the policy names no subject",
        "k counts rows, and all rows of a class may belong to one person.",
        "set subject to that column in the policy",
    ),
    Code.UNIQUE_TOGETHER: Explanation(
        "columns that are published unchanged have a UNIQUE index together",
        "Whoever knows the values of a person in all of them finds the row.",
        "make one of them a quasi-identifier or an identifier",
    ),
    Code.UNIQUE_INDEX: Explanation(
        "a column that is published unchanged has a UNIQUE index",
        f"{_FINDS} If the column is sensitive, l-diversity of it proves little.",
        _GROUP,
    ),
    Code.NEAR_UNIQUE: Explanation(
        "nearly every row has a distinct value in a column that is published unchanged",
        f"{_FINDS} If the column is sensitive, l-diversity of it proves little.",
        _GROUP,
    ),
    Code.ALIKE_VALUES: Explanation(
        "sensitive values differ only in case, spaces or Unicode form, as hiv and HIV do",
        "They count as different values, so that a class may have fewer than l.",
        "write them the same way, in the table or in a generated column",
    ),
    Code.LOOKS_LIKE_IDENTIFIER: Explanation(
        "the name or the type of a column that is published unchanged suggests a name, an address,"
        " a number of a person or a key",
        _NAMES,
        f"{_DROP}, or comment the column with dbanon: and its role",
    ),
    Code.NEW_COLUMN: Explanation(
        'a column is new, and rest = "drop" leaves it out',
        "None; readers may miss it. --strict does not refuse it.",
        "set the policy again with a role for the column",
    ),
    Code.NOT_APPROVED: Explanation(
        "the database demands approvals, and the policy in force is not an approved one",
        "None yet; publish and refresh will refuse it.",
        "dbanon policy approve, by a role that is not its author. To acknowledge it has no effect",
    ),
    Code.LOOKS_LIKE_SSN: Explanation(_LOOKS_LIKE.format("social security numbers"), _NAMES, _DROP),
    Code.LOOKS_LIKE_EMAIL: Explanation(_LOOKS_LIKE.format("e-mail addresses"), _NAMES, _DROP),
    Code.LOOKS_LIKE_PHONE: Explanation(_LOOKS_LIKE.format("telephone numbers"), _NAMES, _DROP),
    Code.LOOKS_LIKE_NAME: Explanation(_LOOKS_LIKE.format("names of persons"), _NAMES, _DROP),
    Code.LOOKS_LIKE_COORDINATES: Explanation(
        _LOOKS_LIKE.format("coordinates of a place"),
        "An exact place is often the home of one person.",
        _COARSEN,
    ),
    Code.FREE_TEXT: Explanation(
        "values look like sentences, or the type holds anything (json, xml, bytea)",
        "A text can contain names and any other fact about a person.",
        _DROP,
    ),
    Code.TO_THE_SECOND: Explanation(
        "a column that is published unchanged contains times to the second",
        "Whoever knows when something happened finds the row.",
        "give it the role quasi, or publish its date from a generated column",
    ),
    Code.KNOWN_TO_OTHERS: Explanation(
        "the name of a column suggests a birth or a postal code; if it is insensitive, also an age,"
        " a sex or a race",
        f"Others often know such facts. {_FINDS}",
        _COARSEN,
    ),
    Code.DERIVED: Explanation(
        "a column that is published unchanged is determined by a quasi-identifier, or determines"
        " one, as a year of birth determines an age group",
        "It discloses what the class hides of the quasi-identifier.",
        _COARSEN,
    ),
    Code.REPEATED: Explanation(
        "an insensitive column is named like a sensitive one of another table of its dataset",
        "If it repeats the values of the person, no model protects them here.",
        "give it the role identifier or sensitive",
    ),
    Code.MASKED: Explanation(
        "an insensitive column is masked, which alone gives no k",
        "Whoever roughly knows the value of a person may find the row.",
        "give it the role quasi: classes are then formed of the masked values",
    ),
    Code.ANATOMY: Explanation(
        "anatomy publishes exact quasi-identifiers",
        "Whoever knows these finds the row, and learns the sensitive value with probability 1/l at"
        " most. All buckets together show which sensitive values go with which quasi-identifiers,"
        " and allow better guesses (deFinetti's attack).",
        "leave anatomy out, and ask for k and l",
    ),
    Code.PSEUDONYM: Explanation(
        "a pseudonym or a replaced column links all values of a person in all rows and relations",
        "k and l hold for attackers who know quasi-identifiers. Whoever knows one rare sensitive"
        " value of a person finds the pseudonym, and all other values.",
        "leave pseudonym and replace out, and join by classes",
    ),
}
"""What each warning means."""


@dataclass(frozen=True, slots=True)
class PolicyWarning:
    """Something in a policy that weakens its guarantee; ``column`` is None for all of it.

    hint: by default the remedy of its explanation.
    """

    code: Code
    column: str | None
    message: str
    hint: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "hint", self.hint or EXPLANATIONS[self.code].remedy)

    def __str__(self) -> str:
        """Return the message with its code."""
        return f"{self.message} [{self.code}]"


@dataclass(frozen=True, slots=True)
class Contents:
    """Rows of a column without NULL, and distinct values.

    n_alike: values that differ from another only in case, blanks or Unicode form, 0 if not counted.
    """

    n_filled: int
    n_distinct: int
    n_alike: int = 0
