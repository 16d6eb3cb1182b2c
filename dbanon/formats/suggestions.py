"""Suggest a role for every column, with the reason in words."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from dbanon.domain.policy import ColumnRule, Role
from dbanon.domain.table import ColumnKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from dbanon.domain.table import ColumnInfo, ColumnStats, TableInfo, TableName

_COMMENT = re.compile(rf"\bdbanon:\s*({'|'.join(Role)})\b", re.IGNORECASE)
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def _words_of(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NAMES_A_PERSON = _words_of(
    "account cookie email fax firstname fullname guid iban ip lastname login mail mobile mrn nhs "
    "passport phone ssn surname telephone url username uuid"
)
_DESCRIBES_A_PERSON = _words_of(
    "admission age birth birthdate birthday birthplace birthyear canton citizenship city class "
    "country county date dateofbirth department discharge district dob education employer "
    "ethnicity gender height hospital job language marital married municipality nationality native "
    "occupation plz postal postalcode postcode profession province race region relationship "
    "religion school sex state town ward weight work workclass year yr zip zipcode"
)
_PLACES_A_PERSON = _words_of("address id key name names nr street")
_HARMS_A_PERSON = _words_of(
    "cause chapter condition crime debt death diagnoses diagnosis disability disease disorder dx "
    "hiv icd illness income medication offence offense salary symptom treatment wage"
)
_NEARLY_UNIQUE = 0.95
_FEW = 50
_DATES = frozenset({ColumnKind.DATE, ColumnKind.TIMESTAMP, ColumnKind.TIMESTAMPTZ})


class _Column(NamedTuple):
    info: ColumnInfo
    words: frozenset[str]
    stats: ColumnStats | None
    in_key: bool

    @property
    def distinctness(self) -> float:
        """The share of values that differ, 0 when unknown."""
        filled = self.stats.n_rows - self.stats.n_null if self.stats else 0
        return self.stats.n_distinct / filled if self.stats and filled else 0.0

    def says(self, vocabulary: frozenset[str]) -> bool:
        return bool(self.words & vocabulary)


def suggest(info: TableInfo, stats: Mapping[str, ColumnStats]) -> list[tuple[ColumnRule, str]]:
    """Return a rule and its reason for every column, in the order of the table.

    Nothing is called insensitive unless its comment says so: in doubt a column is a
    quasi-identifier, and what cannot be one is not published. stats: by column name; a column
    without is judged by its name and type.
    """
    found = []
    for column in info.columns:
        role, reason = _role(
            _Column(
                column, _words(column.name), stats.get(column.name), column.name in info.primary_key
            )
        )
        found.append((ColumnRule(column.name, role), reason))
    return found


def identifies(column: ColumnInfo) -> str | None:
    """Return why a column looks like an identifier by itself, None if it does not.

    A comment that gives it a role is the word of somebody who has thought about it.
    """
    known = _Column(column, _words(column.name), None, in_key=False)
    if _COMMENT.search(column.comment or ""):
        return None
    if column.identity:
        return "it is numbered by the database"
    if known.says(_NAMES_A_PERSON):
        return "it is named like something that names a person"
    if known.says(_PLACES_A_PERSON) and not known.says(_HARMS_A_PERSON):
        return "it is named like a name, an address or a key"
    return None


def draft(table: TableName, suggested: Iterable[tuple[ColumnRule, str]]) -> str:
    """Return a policy file to edit, with the reason for each role as a comment."""
    import tomli_w

    rules = list(suggested)
    models = {"k": 5}
    if any(rule.role is Role.SENSITIVE for rule, _ in rules):
        models["l"] = 2
    parts = [tomli_w.dumps({"table": str(table), "models": models})]
    for rule, reason in rules:
        column = tomli_w.dumps({"columns": {rule.column: {"role": rule.role.value}}})
        parts.append(f"# {reason}\n{column}")
    return "\n".join(parts)


def _words(name: str) -> frozenset[str]:
    """Split a column name at case, digits and punctuation; also all of it in one word."""
    words = [word.lower() for word in _WORD.findall(name)]
    return frozenset([*words, "".join(words)])


def _role(column: _Column) -> tuple[Role, str]:
    match = _COMMENT.search(column.info.comment or "")
    if match:
        return Role(match[1].lower()), "its comment says so"
    return next((role, reason) for role, reason, holds in _RULES if holds(column))


def _is_free_text(column: _Column) -> bool:
    return column.info.kind is ColumnKind.CATEGORY and column.distinctness > _NEARLY_UNIQUE


def _is_numbering(column: _Column) -> bool:
    return column.info.kind is ColumnKind.INTEGER and column.distinctness == 1


def _has_few_values(column: _Column) -> bool:
    return column.stats is not None and column.stats.n_distinct <= _FEW


# The first rule that holds decides. A wrong "quasi" costs precision, a wrong "identifier" a column;
# a wrong "sensitive" publishes raw values, so it comes late.
_RULES: tuple[tuple[Role, str, Callable[[_Column], bool]], ...] = (
    (Role.IDENTIFIER, "part of the primary key", lambda c: c.in_key),
    (Role.IDENTIFIER, "numbered by the database", lambda c: c.info.identity),
    (
        Role.IDENTIFIER,
        "its type cannot be generalized",
        lambda c: not c.info.kind.can_be_quasi or c.info.user_defined or not c.info.has_equality,
    ),
    (
        Role.IDENTIFIER,
        "named like something that names a person",
        lambda c: c.says(_NAMES_A_PERSON),
    ),
    (Role.QUASI, "a date, which others may know", lambda c: c.info.kind in _DATES),
    (
        Role.QUASI,
        "named like something that others know of a person",
        lambda c: c.says(_DESCRIBES_A_PERSON) and not c.says(_HARMS_A_PERSON),
    ),
    (Role.IDENTIFIER, "named like a name, an address or a key", lambda c: c.says(_PLACES_A_PERSON)),
    (Role.IDENTIFIER, "nearly every value is different", _is_free_text),
    (Role.SENSITIVE, "named like something to protect", lambda c: c.says(_HARMS_A_PERSON)),
    (Role.IDENTIFIER, "every value is different", _is_numbering),
    (Role.QUASI, "few distinct values, which others may know", _has_few_values),
    (Role.QUASI, "in doubt a quasi-identifier", lambda _: True),
)
