"""A policy file to edit, made of what is suggested."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbanon.domain.policy import DROP, Role
from dbanon.domain.table import quote_identifier
from dbanon.formats.policy.proposals import propose

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dbanon.domain.policy import ColumnRule
    from dbanon.domain.table import ColumnStats, TableInfo
    from dbanon.formats.policy.proposals import Proposal
    from dbanon.formats.suggestions import Persons

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
    """Return a policy file to edit, with the reasons for each role and recoding as comments.

    stats: by column name; key: what tells the rows apart, as far as is known; differing: the
    quasi-identifiers in which rows of a person differ.
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
    """Return what is said of a column; what may be said of it as well is a comment."""
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
    """Return the line that leaves out what is not named, of a table with many columns."""
    import tomli_w

    if n_columns <= _MOST_COLUMNS:
        return ""
    why = f"# {n_columns} columns: what is not named is left out, such as new ones"
    return f"{why}\n{tomli_w.dumps({'rest': DROP})}"


def _key(info: TableInfo, key: Sequence[str]) -> str:
    """Return the line that names the key, where there is no primary key."""
    import tomli_w

    if info.primary_key:
        return ""
    if not key:
        return '# no column alone tells the rows apart: name several\n# key = ["...", "..."]\n'
    return "# other values in every row\n" + tomli_w.dumps({"key": list(key)})


def _named(suggested: tuple[ColumnRule, str]) -> tuple[str, Role]:
    return suggested[0].column, suggested[0].role


def _subject(persons: Persons | None, roles: Mapping[str, Role], differing: Sequence[str]) -> str:
    """Return the line that names the subject, as a comment where somebody has to think first."""
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
