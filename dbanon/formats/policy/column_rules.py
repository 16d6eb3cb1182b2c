"""What a policy says of each column: read as suspiciously as all of it, and written again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbanon.domain.keys import keys_of
from dbanon.domain.policy import ColumnRule, Role
from dbanon.formats.allowances import flaws
from dbanon.formats.policy import keys

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from dbanon.formats.document_reader import Section

_KEYS = keys_of(ColumnRule)
_WHOLE_FLOAT = 2**53
_MASKING = frozenset({"mask", "masked", "masking", "method", "noise"})


def read(
    name: str | None, section: Section, *, names: Mapping[str, Collection[str] | None]
) -> ColumnRule | None:
    """Read the rule of a column; what is wrong is reported to the section.

    names: of each registry; None is not checked.
    """
    if name is None:
        section.require("column")
    elif not name or "\x00" in name:
        section.problems.append(f"{section.path}: not the name of a column")
    section.require("role")
    found = keys.read(section, _KEYS, names)
    found["allow"] = allowances(section, of_column=True)
    role = Role(found.pop("role")) if "role" in found else None
    for key in section.values:
        if role and key in _KEYS and role not in (_KEYS[key].roles or Role):
            section.report(key, "only a quasi-identifier is recoded")
    _close(section)
    return None if name is None or role is None else ColumnRule(name, role, **found)


def _close(section: Section) -> None:
    """Report keys that there are not; those of masking with where they belong."""
    for key in _MASKING.intersection(section.values):
        section.asked.add(key)
        section.report(key, "is no key of a column: a masking step is a table [[masking]]")
    section.close()


def document(rule: ColumnRule) -> dict[str, object]:
    """Return a rule as what JSON and TOML can hold, without the name of its column."""
    written = keys.document(rule, {"allow": rule.allow})
    return {key: _shortest(value) for key, value in written.items()}


def allowances(section: Section, *, of_column: bool) -> tuple[str, ...]:
    """Read the cautions that are meant, of a column or of the whole policy."""
    allow = section.texts("allow") or ()
    for flaw in flaws(allow, of_column=of_column):
        section.report("allow", flaw)
    return allow


def _shortest(value: object) -> object:
    """Write 5.0 as 5; it is read back as 5.0."""
    whole = isinstance(value, float) and value.is_integer() and abs(value) < _WHOLE_FLOAT
    return int(value) if whole and isinstance(value, float) else value
