"""Whether the floor of a quasi-identifier fits the type of its column."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbanon.domain.policy import OF_CELLS, PERIODS
from dbanon.domain.table import ColumnKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dbanon.domain.policy import ColumnRule
    from dbanon.domain.table import ColumnInfo

MAX_CHARACTERS = 100
_NUMBERS = frozenset({ColumnKind.INTEGER, ColumnKind.DECIMAL, ColumnKind.FLOAT})
_MOMENTS = frozenset({ColumnKind.DATE, ColumnKind.TIMESTAMP, ColumnKind.TIMESTAMPTZ})


def floor_problems(rule: ColumnRule, column: ColumnInfo) -> Iterator[str]:
    """Yield what keeps a column from having the floor that its rule names."""
    given = [key for key in ("at_least", "bands", "top", "bottom") if _has(rule, key)]
    if rule.pooled is not None:
        yield from _of_pooled(rule)
    if rule.keep:
        for key in ("recoding", *given, "snap", "digits"):
            if _has(rule, key):
                yield f"keep publishes the values as they are: leave {key} out"
    elif given:
        yield from _of_cells(rule, column, given)


def _of_cells(rule: ColumnRule, column: ColumnInfo, given: list[str]) -> Iterator[str]:
    for key in given:
        yield from (_of_at_least if key == "at_least" else _of_number)(rule, column, key)
    if rule.top is not None and rule.bottom is not None and rule.top < rule.bottom:
        yield "bottom is at most top"
    if rule.snap is not None:
        yield f"{given[0]} publishes whole cells already: leave snap out"
    if rule.recoding is not None and rule.recoding not in OF_CELLS:
        fitting = ", ".join(sorted(OF_CELLS))
        yield f"recoding {rule.recoding} knows no {given[0]}: choose one of {fitting}"


def _of_pooled(rule: ColumnRule) -> Iterator[str]:
    length = rule.at_least
    if not isinstance(length, int) or rule.taxonomy is not None:
        yield "pooled goes with at_least, a number of leading characters"
    elif any(len(text) != length for text in rule.pooled or ()):
        yield f"pooled lists texts of {length} characters, as many as at_least"


def _has(rule: ColumnRule, key: str) -> bool:
    return getattr(rule, key) is not None


def _of_at_least(rule: ColumnRule, column: ColumnInfo, key: str) -> Iterator[str]:
    is_level = isinstance(rule.at_least, int)
    if rule.taxonomy is not None:
        if not is_level:
            yield f"{key} of a column with a taxonomy is a number of levels above its leaves"
    elif column.kind in _MOMENTS:
        if is_level:
            yield f"{key} of type {column.type} is one of {', '.join(PERIODS)}"
    elif column.kind is not ColumnKind.CATEGORY or rule.order is not None:
        instead = "bands" if column.kind in _NUMBERS else "a taxonomy"
        yield f"{key} means nothing of type {column.type} here: use {instead}"
    elif not is_level:
        yield f"{key} of type {column.type} is a number of leading characters"
    elif int(rule.at_least or 0) > MAX_CHARACTERS:
        yield f"{key} is at most {MAX_CHARACTERS} characters"


def _of_number(rule: ColumnRule, column: ColumnInfo, key: str) -> Iterator[str]:
    number = getattr(rule, key)
    if column.kind not in _NUMBERS:
        instead = ": use at_least" if column.kind in _MOMENTS else ""
        yield f"{key} needs a numeric type, {column.type} is none{instead}"
    elif rule.taxonomy is not None:
        yield f"{key} is for numbers on a line: leave it or the taxonomy out"
    elif column.kind is ColumnKind.INTEGER and not float(number).is_integer():
        yield f"{key} of type {column.type} is a whole number"
