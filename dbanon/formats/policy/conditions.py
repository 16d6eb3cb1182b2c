"""Conditions on columns that select the rows of a policy."""

from __future__ import annotations

import datetime as dt
import math
import re
from typing import TYPE_CHECKING

from dbanon.domain.policy import Comparison, Condition
from dbanon.domain.table import ColumnKind, quote_identifier
from dbanon.formats.document_reader import Section, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dbanon.domain.policy import Policy, Scalar
    from dbanon.domain.table import ColumnInfo, TableInfo

_NUMBERS = frozenset({ColumnKind.INTEGER, ColumnKind.DECIMAL, ColumnKind.FLOAT})
_NULLS = frozenset({Comparison.IS_NULL, Comparison.IS_NOT_NULL})
_IN_ORDER = frozenset(
    {
        Comparison.BELOW,
        Comparison.AT_MOST,
        Comparison.ABOVE,
        Comparison.AT_LEAST,
        Comparison.BETWEEN,
    }
)
_MOMENTS = frozenset({ColumnKind.DATE, ColumnKind.TIMESTAMP, ColumnKind.TIMESTAMPTZ})
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_BOUNDS = 2


def read(top: Section) -> tuple[Condition, ...]:
    """Read the conditions of a policy, and report their problems."""
    found = [_condition(section) for section in top.sections("where")]
    if not found and top.values.get("where") == []:
        top.report("where", "is empty: leave it out")
    return tuple(condition for condition in found if condition is not None)


def _condition(section: Section) -> Condition | None:
    section.require("column")
    section.require("is")
    column = section.text("column")
    comparison = section.text("is", among=[word.value for word in Comparison])
    section.asked.add("value")
    value = None
    if comparison is not None:
        value = _value(section, Comparison(comparison))
    section.close()
    if column is None or comparison is None:
        return None
    return Condition(column, Comparison(comparison), value)


def _value(section: Section, comparison: Comparison) -> Scalar | tuple[Scalar, ...] | None:
    given = section.values.get("value")
    if comparison in _NULLS:
        if "value" in section.values:
            section.report("value", f"{comparison} takes none")
        return None
    if comparison not in {Comparison.IN, Comparison.BETWEEN}:
        return _scalar(section, "value", given)
    if not isinstance(given, list) or not given:
        section.report("value", f"{comparison} takes a list of values")
        return None
    if comparison is Comparison.BETWEEN and len(given) != _BOUNDS:
        section.report("value", "between takes two values, both included")
    values = [_scalar(section, "value", item) for item in given]
    return tuple(value for value in values if value is not None)


def _scalar(section: Section, key: str, given: object) -> Scalar | None:
    """Read one value; TOML dates and times become text, because JSON has neither."""
    if isinstance(given, (dt.datetime, dt.date)):
        return given.isoformat()
    if given is None:
        section.report(key, "is missing")
        return None
    if given == "":
        return ""
    return Section({key: given}, section.path, section.problems).scalar(key)


def documents(policy: Policy) -> list[dict[str, object]]:
    """Return the conditions for JSON and TOML."""
    return [
        {"column": condition.column, "is": condition.comparison.value, **_held(condition)}
        for condition in policy.where
    ]


def _held(condition: Condition) -> Mapping[str, object]:
    value = condition.value
    if value is None:
        return {}
    return {"value": list(value) if isinstance(value, tuple) else value}


def misfits(policy: Policy, info: TableInfo) -> Iterator[str]:
    """Yield the conditions that do not fit the columns of a table; messages have no values."""
    columns = {column.name: column for column in info.columns}
    for condition in policy.where:
        named = f"where: column {quote_identifier(condition.column)}"
        column = columns.get(condition.column)
        if column is None:
            yield f"{named} does not exist{did_you_mean(condition.column, columns)}"
        elif column.user_defined:
            yield f"{named} is of type {column.type}, and reading it may run foreign code"
        elif condition.comparison not in _NULLS and not column.kind.can_be_quasi:
            yield f"{named} is of type {column.type}, of which only is null can be asked"
        elif condition.comparison in _IN_ORDER and not column.kind.is_ordered:
            yield f"{named} is of type {column.type}, which is compared by =, <> and in only"
        elif not all(map(_can_be_asked, condition.values)):
            yield f"{named} is compared with NaN, an infinite number or a text with a NUL character"
        elif condition.comparison not in _NULLS and not all(
            _fits(value, column) for value in condition.values
        ):
            yield f"{named} is of type {column.type}, and a value is none of it"


def _can_be_asked(value: Scalar) -> bool:
    """Return True if a column and a document can hold the value."""
    if isinstance(value, str):
        return "\x00" not in value
    return isinstance(value, int) or math.isfinite(value)


def _fits(value: Scalar, column: ColumnInfo) -> bool:
    if isinstance(value, bool) or column.kind is ColumnKind.BOOLEAN:
        return isinstance(value, bool) and column.kind is ColumnKind.BOOLEAN
    if isinstance(value, str):
        return _is_moment(value, column.kind) if column.kind in _MOMENTS else _is_text(column)
    return column.kind in _NUMBERS


def _is_text(column: ColumnInfo) -> bool:
    return not column.kind.is_ordered


def _is_moment(text: str, kind: ColumnKind) -> bool:
    """Return True for a date, or a time with a zone if the type has one."""
    read = dt.date.fromisoformat if kind is ColumnKind.DATE else dt.datetime.fromisoformat
    try:
        moment = read(text)
    except ValueError:
        return False
    zone = moment.tzinfo if isinstance(moment, dt.datetime) else None
    return bool(_DATE.match(text)) and (zone is not None) == (kind is ColumnKind.TIMESTAMPTZ)
