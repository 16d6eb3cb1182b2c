"""What a policy says of each column: read as suspiciously as all of it, and written again."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any

from dbanon.domain.policy import ON_NEW_VALUE, PERIODS, SUPPRESS, ColumnRule, Role
from dbanon.formats.allowances import flaws

if TYPE_CHECKING:
    from collections.abc import Collection

    from dbanon.formats.document_reader import Section

_WHOLE_FLOAT = 2**53
_FLOORS = ("at_least", "bands", "top", "bottom")
_FLAGS = ("keep", "restore_variance")
_LAST = ("snap", "digits", "rare", "on_new_value")
_OF_QUASI = ("recoding", "weight", *_FLOORS, "pooled", *_FLAGS, *_LAST)
_MASKING = frozenset({"mask", "masked", "masking", "method", "noise"})
_OF_VALUES = ("taxonomy", "order")


def read(
    name: str | None, section: Section, *, recodings: Collection[str] | None
) -> ColumnRule | None:
    """Read the rule of a column; what is wrong is reported to the section.

    recodings: the names that there are; None is not checked.
    """
    if name is None:
        section.require("column")
    elif not name or "\x00" in name:
        section.problems.append(f"{section.path}: not the name of a column")
    section.require("role")
    role = section.text("role", among=[role.value for role in Role])
    recoding = section.text("recoding", among=recodings)
    taxonomy = section.text("taxonomy")
    weight = section.number("weight", above=0)
    snap = section.number("snap", above=0)
    digits = section.integer("digits", least=0)
    order = _order(section)
    allow = allowances(section, of_column=True)
    floors = _floors(section)
    flags: dict[str, Any] = {key: bool(section.boolean(key)) for key in _FLAGS}
    on_new_value = section.text("on_new_value", among=ON_NEW_VALUE)
    if role is not None and role != Role.QUASI:
        _refuse_recoding(section, of_values=role == Role.SENSITIVE)
    _close(section)
    if name is None or role is None:
        return None
    return ColumnRule(
        name,
        Role(role),
        recoding,
        taxonomy,
        weight or 1.0,
        snap,
        digits,
        order,
        allow,
        on_new_value=on_new_value,
        **floors,
        **flags,
    )


def _close(section: Section) -> None:
    """Report keys that there are not; those of masking with where they belong."""
    for key in _MASKING.intersection(section.values):
        section.asked.add(key)
        section.report(key, "is no key of a column: a masking step is a table [[masking]]")
    section.close()


def document(rule: ColumnRule) -> dict[str, object]:
    """Return a rule as what JSON and TOML can hold, without the name of its column."""
    fields: dict[str, object] = {"role": rule.role.value}
    for key in ("recoding", "taxonomy", *_FLOORS, *_LAST):
        if (value := getattr(rule, key)) is not None:
            fields[key] = _shortest(value)
    if rule.order is not None:
        fields["order"] = list(rule.order)
    if rule.weight != 1:
        fields["weight"] = _shortest(rule.weight)
    if rule.allow:
        fields["allow"] = list(rule.allow)
    fields |= {key: True for key in _FLAGS if getattr(rule, key)}
    if rule.pooled is not None:
        fields["pooled"] = list(rule.pooled)
    return fields


def allowances(section: Section, *, of_column: bool) -> tuple[str, ...]:
    """Read the cautions that are meant, of a column or of the whole policy."""
    allow = section.texts("allow") or ()
    for flaw in flaws(allow, of_column=of_column):
        section.report("allow", flaw)
    return allow


def _refuse_recoding(section: Section, *, of_values: bool) -> None:
    """Report the keys of quasi-identifiers; of_values: but not those about values."""
    for key in (*_OF_QUASI, *(() if of_values else _OF_VALUES)):
        if key in section.values:
            section.report(key, "only a quasi-identifier is recoded")


def _floors(section: Section) -> dict[str, Any]:
    """Read what is the finest that is published."""
    is_period = isinstance(section.values.get("at_least"), str)
    return {
        "at_least": section.text("at_least", among=PERIODS)
        if is_period
        else section.integer("at_least", least=1),
        "bands": section.number("bands", above=0),
        "top": section.number("top", above=-math.inf),
        "bottom": section.number("bottom", above=-math.inf),
        "pooled": section.texts("pooled"),
        "rare": section.text("rare", among=[SUPPRESS]),
    }


def _order(section: Section) -> tuple[str, ...] | None:
    order = section.texts("order", empty=True)
    repeated = [] if order is None else [text for text, n in Counter(order).items() if n > 1]
    if repeated:
        section.report("order", f"lists {len(repeated)} of its values more than once")
    return order


def _shortest(value: object) -> object:
    """Write 5.0 as 5; it is read back as 5.0."""
    whole = isinstance(value, float) and value.is_integer() and abs(value) < _WHOLE_FLOAT
    return int(value) if whole and isinstance(value, float) else value
