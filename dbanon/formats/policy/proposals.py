"""Propose recodings for quasi-identifiers, and draft a policy file from them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dbanon.domain.policy import DROP, Role
from dbanon.domain.table import ColumnKind, quote_identifier
from dbanon.formats.suggestions import is_of_birth, is_postcode

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dbanon.domain.policy import ColumnRule
    from dbanon.domain.table import ColumnInfo, ColumnStats, TableInfo
    from dbanon.formats.suggestions import Persons


_DIGITS = 3  # of a postcode, as the Safe Harbor rule has it
_LENGTH = 5  # digits of most postcodes that are stored as numbers
_WIDTH = 10 ** (_LENGTH - _DIGITS)
_MOMENTS = frozenset({ColumnKind.DATE, ColumnKind.TIMESTAMP, ColumnKind.TIMESTAMPTZ})
_NUMBERS = frozenset({ColumnKind.INTEGER, ColumnKind.DECIMAL, ColumnKind.FLOAT})
_FEW, _NEARLY_UNIQUE = 50, 0.9  # distinct values; their share of the rows
_BANDS = 12  # at most, of the middle half of the rows
_LEAST_SET, _MOST_SET = 3, 12  # values of a column of which sets are read with ease


@dataclass(frozen=True, slots=True)
class Proposal:
    """A recoding and a floor (further keys of the column) for a quasi-identifier, with reasons."""

    recoding: str
    reason: str
    floor: Mapping[str, object] = field(default_factory=dict)
    why: str = ""


def propose(column: ColumnInfo, stats: ColumnStats | None) -> Proposal:
    """Propose a recoding, and a floor for values that identify persons alone."""
    floor, why = _floor(column, stats)
    recoding, reason = _of_cells(column) if floor else _of_values(column, stats)
    return Proposal(recoding, reason, floor, why)


def is_fine(column: ColumnInfo, stats: ColumnStats | None) -> bool:
    """Return True if nearly every number is unique, so that knowing it identifies the row."""
    if stats is None or column.kind not in _NUMBERS or stats.n_distinct <= _FEW:
        return False
    return stats.n_distinct >= _NEARLY_UNIQUE * (stats.n_rows - stats.n_null)


def _bands(column: ColumnInfo, stats: ColumnStats) -> float | int | None:
    """Return a round band width that divides the interquartile range into 5 to 12 bands."""
    least = 2.0 if column.kind is ColumnKind.INTEGER else 0.0
    wanted = (stats.spread or 0.0) / _BANDS
    if not least <= wanted < math.inf or not wanted:
        return None
    power = 10.0 ** math.floor(math.log10(wanted))
    width = next(float(f"{step * power:.1g}") for step in (1, 2, 5, 10) if step * power >= wanted)
    return int(width) if width >= 1 else width


def _floor(column: ColumnInfo, stats: ColumnStats | None) -> tuple[dict[str, object], str]:
    """Return the finest level to publish of values that identify persons alone, and the reason."""
    if column.kind is ColumnKind.CATEGORY and is_postcode(column.name):
        return {"at_least": _DIGITS}, "few people share all of a postcode"
    if column.kind is ColumnKind.INTEGER and is_postcode(column.name):
        why = f"{_WIDTH} leaves {_DIGITS} of {_LENGTH} digits"
        return {"bands": _WIDTH}, f"few people share all of a postcode: {why}"
    if column.kind in _MOMENTS and is_of_birth(column.name):
        return {"at_least": "year"}, "the day finds a person, the year seldom does"
    if column.kind in _MOMENTS - {ColumnKind.DATE}:
        return {"at_least": "day"}, "an exact time finds a person: ranges are of whole days"
    width = _bands(column, stats) if stats is not None and is_fine(column, stats) else None
    if width is not None:
        return {"bands": width}, "nearly every number is another one: no range ends at one"
    return {}, ""


def _of_cells(column: ColumnInfo) -> tuple[str, str]:
    if column.kind is ColumnKind.CATEGORY:
        return "label", "codes that begin alike are near each other"
    return "interval", "a range of whole cells"


def _of_values(column: ColumnInfo, stats: ColumnStats | None) -> tuple[str, str]:
    if column.kind.is_ordered:
        what = "dates" if column.kind in _MOMENTS else "numbers"
        return "interval", f"a range of {what}, in which rows can be counted"
    if column.kind is ColumnKind.ORDINAL:
        return "interval-text", "its type has an order: from one value to another"
    if stats is not None and _LEAST_SET <= stats.n_distinct <= _MOST_SET:
        return "set", "few values: those of a class say more than a star"
    return "label", "a star where rows of a class differ, until it has a taxonomy"


_MOST_COLUMNS = 25  # in a table of which one looks at each


def draft(
    info: TableInfo,
    suggested: Iterable[tuple[ColumnRule, str]],
    persons: Persons | None = None,
    *,
    stats: Mapping[str, ColumnStats] | None = None,
    key: Sequence[str] = (),
    differing: Sequence[str] = (),
) -> str:
    """Return a policy file to edit, with the reasons for roles and recodings as comments.

    stats: by column name; key: columns that distinguish rows, if known; differing:
    quasi-identifiers that vary between the rows of a person.
    """
    import tomli_w

    rules = list(suggested)
    models = {"k": 5}
    if any(rule.role is Role.SENSITIVE for rule, _ in rules):
        models["l"] = 2
    parts = [
        tomli_w.dumps({"table": str(info.name)})
        + _rest(len(rules))
        + _key(info, key)
        + _subject(persons, dict(map(_named, rules)), differing)
    ]
    parts.append(tomli_w.dumps({"models": models}))
    columns = {column.name: column for column in info.columns}
    for rule, reason in rules:
        proposal = None
        if rule.role is Role.QUASI and rule.column in columns:
            proposal = propose(columns[rule.column], (stats or {}).get(rule.column))
        parts.append(_column(rule, reason, proposal))
    return "\n".join(parts)


def _column(rule: ColumnRule, reason: str, proposal: Proposal | None) -> str:
    import tomli_w

    settings: dict[str, object] = {"role": rule.role.value}
    reasons, recoding = [reason], ""
    if proposal is not None:
        settings |= proposal.floor
        reasons += [proposal.why] if proposal.why else []
        recoding = f'# recoding = "{proposal.recoding}"  # {proposal.reason}\n'
    column = tomli_w.dumps({"columns": {rule.column: settings}})
    return f"# {'; '.join(reasons)}\n{column}{recoding}"


def _rest(n_columns: int) -> str:
    import tomli_w

    if n_columns <= _MOST_COLUMNS:
        return ""
    why = f"# {n_columns} columns: what is not named is left out, such as new ones"
    return f"{why}\n{tomli_w.dumps({'rest': DROP})}"


def _key(info: TableInfo, key: Sequence[str]) -> str:
    import tomli_w

    if info.primary_key:
        return ""
    if not key:
        return '# no column alone tells the rows apart: name several\n# key = ["...", "..."]\n'
    return "# other values in every row\n" + tomli_w.dumps({"key": list(key)})


def _named(suggested: tuple[ColumnRule, str]) -> tuple[str, Role]:
    return suggested[0].column, suggested[0].role


def _subject(persons: Persons | None, roles: Mapping[str, Role], differing: Sequence[str]) -> str:
    """Return the line that names the subject, as a comment if it needs a decision."""
    import tomli_w

    if persons is None:
        return ""
    unless = []
    if not persons.is_sure:
        unless.append("if these are persons")
    if persons.n_null:
        unless.append(f"once its {persons.n_null:,} NULLs are filled or left out by where")
    if roles[persons.column] is not Role.IDENTIFIER:
        unless.append("with the role identifier")
    why = f"{persons.figure} ({persons.reason})" + ", " * bool(unless) + " and ".join(unless)
    setting = ("# " if unless else "") + tomli_w.dumps({"subject": persons.column})
    if differing:
        names = ", ".join(map(quote_identifier, differing))
        setting += (
            f"# rows of a person differ in {names}, and classes are as wide as they are; another\n"
            "# role, a floor or one row of each may cost less\n# rows_per_subject = 1\n"
        )
    return f"# {why}\n{setting}"
