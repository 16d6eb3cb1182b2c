"""Suggest a role for every column, with the reason in words."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from dbanon.domain.policy import ColumnRule, Role
from dbanon.domain.table import ColumnKind, quote_identifier
from dbanon.formats.column_names import (
    DESCRIBES_A_PERSON,
    HARMS_A_PERSON,
    MEASURES_A_PERSON,
    NAMES_A_PERSON,
    PLACES_A_PERSON,
    is_of_names,
    person_numbered,
    says_which_harm,
    tells_rows_apart,
    words,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from dbanon.domain.report import UniqueSet
    from dbanon.domain.table import ColumnInfo, ColumnStats, TableInfo
    from dbanon.formats.persons import Persons

_COMMENT = re.compile(rf"\bdbanon:\s*({'|'.join(Role)})\b", re.IGNORECASE)
_NEARLY_UNIQUE = 0.95
_FINE = 0.9  # the share from which policy set warns of nearly unique values
_FEW = 50
_WORTH_TELLING = 0.01  # the share of rows that a set makes unique
_OF_TYPES = {
    "uuid": "it holds UUIDs, which are keys",
    "inet": "it holds addresses of machines",
    "macaddr": "it holds addresses of machines",
    "macaddr8": "it holds addresses of machines",
}
_NUMBERS = frozenset({ColumnKind.INTEGER, ColumnKind.DECIMAL, ColumnKind.FLOAT})
_DATES = frozenset({ColumnKind.DATE, ColumnKind.TIMESTAMP, ColumnKind.TIMESTAMPTZ})


class _Column(NamedTuple):
    info: ColumnInfo
    words: frozenset[str]
    stats: ColumnStats | None
    in_key: bool
    of_persons: bool = False
    table: str = ""

    @property
    def distinctness(self) -> float:
        """The share of values that differ, 0 when unknown."""
        filled = self.stats.n_rows - self.stats.n_null if self.stats else 0
        return self.stats.n_distinct / filled if self.stats and filled else 0.0

    def says(self, vocabulary: frozenset[str]) -> bool:
        return bool(self.words & vocabulary)

    @property
    def harms(self) -> bool:
        """Whether the name says something to protect."""
        return self.says(HARMS_A_PERSON) or says_which_harm(self.info.name, self.table)


def suggest(
    info: TableInfo, stats: Mapping[str, ColumnStats], persons: Persons | None = None
) -> list[tuple[ColumnRule, str]]:
    """Return a rule and its reason for every column, in the order of the table.

    Nothing is called insensitive unless its comment says so: in doubt a column is a
    quasi-identifier, and what cannot be one is not published. stats: by column name; a column
    without is judged by its name and type; persons: who seem to have several rows.
    """
    found = []
    for column in info.columns:
        known = _Column(
            column,
            words(column.name),
            stats.get(column.name),
            in_key=column.name in info.primary_key,
            of_persons=persons is not None and persons.is_sure and persons.column == column.name,
            table=info.name.name,
        )
        role, reason = _role(known)
        found.append((ColumnRule(column.name, role), reason))
    return found


def told(reason: str, rule: ColumnRule, sets: Sequence[UniqueSet]) -> str:
    """Return the reason of a quasi-identifier with what it does to rows, in numbers.

    sets: what makes rows unique, those that do so of most rows first.
    """
    found = next((one for one in sets if rule.column in one.columns), None)
    if rule.role is not Role.QUASI or found is None or found.share < _WORTH_TELLING:
        return reason
    others = [quote_identifier(name) for name in found.columns if name != rule.column]
    words = f"with {' and '.join(others)}" if others else "by itself"
    return f"{reason}; {words} it makes {found.share:.0%} of rows unique"


def identifies(column: ColumnInfo, *, in_key: bool = False) -> str | None:
    """Return why a column looks like an identifier by itself, None if it does not.

    A comment that gives it a role is the word of somebody who has thought about it.
    """
    known = _Column(column, words(column.name), None, in_key)
    if _COMMENT.search(column.comment or ""):
        return None
    if in_key:
        return "it is part of the primary key"
    if column.identity:
        return "it is numbered by the database"
    if _names_a_person(known):
        return "it is named like something that names a person"
    if _is_placed(known):
        return "it is named like a name, an address or a key"
    return _OF_TYPES.get(column.base_type)


def key_of(
    info: TableInfo,
    stats: Mapping[str, ColumnStats],
    persons: Persons | None = None,
    *,
    pairs: Mapping[str, int] | None = None,
) -> tuple[str, ...]:
    """Return the first column that has another value in every row, and none without one.

    A date or time is one only if nothing else is, with the column of the persons or alone.
    pairs: by column, how many distinct pairs it makes with the column of the persons, which then
    is half of a key, with a date rather than with anything else.
    """
    found = {c.name: s for c in info.columns if (s := stats.get(c.name)) and not s.n_null}
    alone = [name for name, known in found.items() if 0 < known.n_rows == known.n_distinct]
    alone.sort(key=lambda name: info.column(name).kind in _DATES)  # two may come at one moment
    lasting = alone and info.column(alone[0]).kind not in _DATES
    if lasting or persons is None or persons.column not in found:
        return tuple(alone[:1])
    n_rows = found[persons.column].n_rows
    others = [name for name in found if (pairs or {}).get(name) == n_rows > 0]
    others.sort(key=lambda name: info.column(name).kind not in _DATES)
    return (persons.column, others[0]) if others else tuple(alone[:1])


def differing(
    suggested: Iterable[tuple[ColumnRule, str]], persons: Persons | None, pairs: Mapping[str, int]
) -> tuple[str, ...]:
    """Return the quasi-identifiers in which rows of a person differ; pairs as in ``key_of``."""
    if persons is None or persons.n_values is None:
        return ()
    return tuple(
        rule.column
        for rule, _ in suggested
        if rule.role is Role.QUASI and pairs.get(rule.column, 0) > persons.n_values
    )


def _role(column: _Column) -> tuple[Role, str]:
    match = _COMMENT.search(column.info.comment or "")
    if match:
        return Role(match[1].lower()), "its comment says so"
    return next((role, reason) for role, reason, holds in _RULES if holds(column))


def _names_a_person(column: _Column) -> bool:
    name = column.info.name
    is_text = column.info.kind is ColumnKind.CATEGORY
    is_number = is_text or column.info.kind is ColumnKind.INTEGER
    return (
        column.says(NAMES_A_PERSON)
        or (is_text and is_of_names(name))
        or (is_number and person_numbered(name) is not None)
    )


def _describes(column: _Column) -> bool:
    return column.says(DESCRIBES_A_PERSON) and not column.harms


def _is_placed(column: _Column) -> bool:
    if tells_rows_apart(column.info.name):
        return True
    return column.says(PLACES_A_PERSON) and not column.harms


def _is_free_text(column: _Column) -> bool:
    return column.info.kind is ColumnKind.CATEGORY and column.distinctness > _NEARLY_UNIQUE


def _is_number_of_a_person(column: _Column) -> bool:
    """Whether texts, such as those of a state ID, are keys whatever else the name says."""
    return tells_rows_apart(column.info.name) and _is_free_text(column)


def _is_uuid(column: _Column) -> bool:
    return column.info.base_type == "uuid" and not _has_few_values(column)


def _is_numbering(column: _Column) -> bool:
    return column.info.kind is ColumnKind.INTEGER and column.distinctness == 1


def _has_few_values(column: _Column) -> bool:
    return column.stats is not None and column.stats.n_distinct <= _FEW


def _singles_out(column: _Column) -> bool:
    """Whether numbers to protect are so fine that whoever knows one finds the row."""
    is_fine = column.distinctness >= _FINE and not _has_few_values(column)
    return column.harms and column.info.kind in _NUMBERS and is_fine


# The first rule that holds decides. A wrong "quasi" costs precision, a wrong "identifier" a column;
# a wrong "sensitive" publishes raw values, so it comes late.
_RULES: tuple[tuple[Role, str, Callable[[_Column], bool]], ...] = (
    (Role.IDENTIFIER, "part of the key", lambda c: c.in_key),
    (Role.IDENTIFIER, "tells persons apart", lambda c: c.of_persons),
    (Role.IDENTIFIER, "numbered by the database", lambda c: c.info.identity),
    (
        Role.IDENTIFIER,
        "its type cannot be generalized",
        lambda c: not c.info.kind.can_be_quasi or c.info.user_defined or not c.info.has_equality,
    ),
    (Role.IDENTIFIER, "named like something that names a person", _names_a_person),
    (Role.QUASI, "a date, which others may know", lambda c: c.info.kind in _DATES),
    (
        Role.IDENTIFIER,
        "named like a key, and nearly every value is different",
        _is_number_of_a_person,
    ),
    (Role.QUASI, "named like something that others know of a person", _describes),
    (Role.IDENTIFIER, "named like a name, an address or a key", _is_placed),
    (Role.IDENTIFIER, "a UUID, which is a key", _is_uuid),
    (Role.IDENTIFIER, "nearly every value is different", _is_free_text),
    (Role.QUASI, "to protect, but so fine that it singles out", _singles_out),
    (Role.SENSITIVE, "named like something to protect", lambda c: c.harms),
    (
        Role.SENSITIVE,
        "an amount or a score of few values, to protect",
        lambda c: c.says(MEASURES_A_PERSON) and _has_few_values(c) and c.distinctness < _FINE,
    ),
    (Role.IDENTIFIER, "every value is different", _is_numbering),
    (Role.QUASI, "few distinct values, which others may know", _has_few_values),
    (Role.QUASI, "in doubt a quasi-identifier", lambda _: True),
)
