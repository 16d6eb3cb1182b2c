"""The masking steps of a policy."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Protocol

from dbanon.domain.errors import PolicyError
from dbanon.domain.policy import MaskingStep, Role
from dbanon.domain.table import ColumnKind, Structure, quote_identifier
from dbanon.formats.document_reader import did_you_mean
from dbanon.models.base import Scope
from dbanon.models.specs import of_scope

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from dbanon.domain.policy import ColumnRule, Policy
    from dbanon.domain.table import TableInfo
    from dbanon.formats.document_reader import Section

_OWN = ("method", "columns", "within")
_ABOUT_NUMBERS = {"at": None, "shown": "threshold", "restore_variance": False}
_TEXTS = frozenset({"text", "varchar", "bpchar"})


class Masking(Protocol):
    """The properties of a masking method that decide which columns it fits."""

    @property
    def of_numbers(self) -> bool:
        """True for numbers only, False for values of any type."""
        ...

    @property
    def of_ranks(self) -> bool:
        """True if ranks of ordered values may be the numbers."""
        ...

    @property
    def within_class(self) -> bool:
        """True if rows are masked within their classes."""
        ...

    @property
    def whole(self) -> bool:
        """True if the result for a value depends on other rows."""
        ...


def read(top: Section, *, methods: Collection[str] | None) -> tuple[MaskingStep, ...]:
    """Read the steps of a policy, and report their problems."""
    found = [_step(section, methods) for section in top.sections("masking")]
    if not found and top.values.get("masking") == []:
        top.report("masking", "is empty: leave it out")
    return tuple(step for step in found if step is not None)


def _step(section: Section, methods: Collection[str] | None) -> MaskingStep | None:
    section.require("method")
    section.require("columns")
    method = section.text("method", among=methods)
    columns, within = section.texts("columns"), section.texts("within") or ()
    for name in {name for name in columns or () if (columns or ()).count(name) > 1}:
        section.report("columns", f"names {name} more than once")
    for name in {*(columns or ())} & {*within}:
        section.report("within", f"names {name}, which is masked")
    given = [key for key in section.values if key not in _OWN]
    params = {key: section.scalar(key) for key in given}
    section.close()
    if method is None or columns is None:
        return None
    known = {key: value for key, value in params.items() if value is not None}
    return MaskingStep(method, columns, known, within)


def documents(policy: Policy) -> list[dict[str, object]]:
    """Return the steps for JSON and TOML."""
    return [
        {
            "method": step.method,
            "columns": list(step.columns),
            **({"within": list(step.within)} if step.within else {}),
            **step.params,
        }
        for step in policy.masking
    ]


def misfits(
    policy: Policy, info: TableInfo, *, make: Callable[[MaskingStep], Masking]
) -> Iterator[str]:
    """Yield reasons against the masking steps; make: returns the method of a step."""
    rules = {rule.column: rule for rule in policy.columns}
    present = {column.name for column in info.columns}
    shown = [name for name, rule in rules.items() if rule.role.is_published]
    for step in policy.masking:
        try:
            method = make(step)
        except PolicyError as error:
            yield f"{error}{f': {error.hint}' if error.hint else ''}"
            continue
        for name in (*step.columns, *step.within):
            of_step = f"masking by {step.method} of column {quote_identifier(name)}"
            if name not in present or name not in shown:
                yield f"{of_step}: it is not published{did_you_mean(name, shown)}"
            elif name in step.columns:
                found = _of_column(step, rules[name], info, method=method)
                yield from (f"{of_step}: {text}" for text in found)
        quasi = [name for name in step.columns if name in rules and _is_quasi(rules[name])]
        named = (name for name in (*step.columns, *step.within) if name in rules)
        if method.within_class and any(_is_quasi(rules[name]) for name in named):
            yield f"{step.method} is within classes, in which quasi-identifiers are alike"
        if quasi and of_scope(policy.models, Scope.POPULATION):
            yield f"masking by {step.method}: a population is compared with values as they are"


def _of_column(
    step: MaskingStep, rule: ColumnRule, info: TableInfo, *, method: Masking
) -> Iterator[str]:
    kind = info.column(rule.column).kind
    if rule.column in info.primary_key:
        yield "it is part of the key, by which rows are found again"
    if method.of_numbers and not kind.is_ordered:
        has_order = bool(rule.order or info.column(rule.column).labels)
        yield from _of_ranks(step, method, has_order=has_order)
    if "at" in step.params and kind.is_moment:
        yield "at is a number: leave it out for dates and times"
    if "label" in step.params or step.method == "rare-to-other":
        if kind is not ColumnKind.CATEGORY or info.column(rule.column).base_type not in _TEXTS:
            yield "it needs texts, which a label is one of"
        elif _is_quasi(rule) and rule.structure(kind) is Structure.TREE and rule.taxonomy:
            yield "its taxonomy has a place for each value: choose a recoding that is coarser"
        label = str(step.params.get("label", "other"))
        room = re.search(r"\((\d+)\)$", info.column(rule.column).type)
        if room is not None and len(label) > int(room[1]):
            yield f"its type has no room for the label {label!r}: give a shorter label"


def _of_ranks(step: MaskingStep, method: Masking, *, has_order: bool) -> Iterator[str]:
    if not method.of_ranks:
        yield "it needs numbers, dates or times"
    elif not has_order:
        yield "it needs numbers, dates, times or values in an order, such as those of an enum"
    else:
        given = [key for key, own in _ABOUT_NUMBERS.items() if step.params.get(key, own) != own]
        yield from (f"{key} is for numbers: leave it out for values in an order" for key in given)


def _is_quasi(rule: ColumnRule) -> bool:
    return rule.role is Role.QUASI
