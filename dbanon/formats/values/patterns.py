"""Detect identifying contents in a sample of values; never prints one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dbanon.domain.caution import Code
from dbanon.domain.table import ColumnKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from dbanon.domain.table import ColumnInfo

LONGEST = 200
"""Characters of a value that are looked at."""

_SSN = re.compile(r"(?<![\d-])(?!000|666|9)\d{3}-(?!00)\d\d-(?!0000)\d{4}(?![\d-])")
_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)*\.[A-Za-z]{2,}")
_PHONE = re.compile(r"(?=.*[-+ ().])\+?[\d\s().-]{7,22}")
# Texts with the characters of telephone numbers that are none: dates, numbers, ranges, ZIP+4,
# codes of tests (LOINC) and of drugs (NDC), addresses of machines.
_NO_PHONE = re.compile(
    r"\d{1,4}[.-]\d{1,2}[.-]\d{1,4}\.?|-?\d*\.?\d+|\d+(\.\d+)?\s*-\s*\d+(\.\d+)?"
    r"|\d{5}-\d{4}|\d+-\d|\d{4,5}-\d{3,4}-\d{1,2}|(\d{1,3}\.){3}\d{1,3}"
)
_LOCAL_PHONE = re.compile(r"\d{3}-\d{4}")
_FEWEST_DIGITS, _MOST_DIGITS = 7, 15
_COORDINATES = re.compile(r"\(?[-+]?\d{1,3}\.\d{3,}\s*[,; ]\s*[-+]?\d{1,3}\.\d{3,}\)?")
_WORD_OF_NAME = r"[^\W\d_]['\u2019.\w-]*"
_NAME = re.compile(rf"{_WORD_OF_NAME}(?:,? {_WORD_OF_NAME}){{1,3}}")
_GIVEN_NAMES = """
aisha alexander alice amanda amy andrea andrew angela anna anthony antonio barbara benjamin
betty brian carlos carol charles chen christina christopher cynthia daniel david deborah dennis
diana donald donna dorothy edward elena elizabeth emily emma eric fatima frank gary george hans
helen henry ines ivan jack jacob james janet jason jean jennifer jessica joan john jonathan
jorge jose joseph joshua joyce juan judith julia julie karen katherine kathleen keith kelly
kenneth kevin kimberly larry laura lauren linda lisa luca luis margaret maria marie mark martha
martin mary matthew megan melissa michael michelle mohamed mohammed monika nancy nicholas nicole
noah olga olivia pamela patricia patrick paul pedro peter philip rachel raymond rebecca richard
robert roger ronald rosa ruth ryan samantha samuel sandra sara sarah scott sharon shirley sofia
sophia stefan stephanie stephen steven susan teresa theresa thomas timothy tyler victoria
virginia walter wei william
"""
_GIVEN = frozenset(_GIVEN_NAMES.split())
_HOLDS_ANYTHING = frozenset({"bytea", "hstore", "json", "jsonb", "tsvector", "xml"})
_MOMENTS = frozenset({ColumnKind.TIMESTAMP, ColumnKind.TIMESTAMPTZ})
_SECONDS = re.compile(r"\d\d:\d\d:(?!00(?:[^.\d]|$))")
_FEWEST = 5  # minimum number of distinct values for a result
_ENOUGH = 2000  # different texts are looked at
_SOME, _FIFTH, _MANY, _MOST = 0.05, 0.2, 0.5, 0.8


def signs(column: ColumnInfo, values: Sequence[str | None]) -> Iterator[Code]:
    """Yield the warnings about the contents of a column that is published unchanged.

    values: of some rows, as PostgreSQL prints them, at most ``LONGEST`` characters each.
    """
    filled = [value.strip() for value in values if value]
    distinct = list(dict.fromkeys(filled))
    if column.kind in _MOMENTS:
        if len(distinct) > 1 and _share(distinct, _SECONDS.search) > _SOME:
            yield Code.TO_THE_SECOND
    elif column.base_type in _HOLDS_ANYTHING:
        yield Code.FREE_TEXT
    elif column.base_type == "point":
        yield Code.LOOKS_LIKE_COORDINATES
    elif column.kind is ColumnKind.CATEGORY and distinct:
        yield from _of_texts(distinct[:_ENOUGH], are_own=len(distinct) > _MANY * len(filled))


def _of_texts(distinct: Sequence[str], *, are_own: bool) -> Iterator[Code]:
    """Yield the warnings about texts; are_own: most values are distinct."""
    if _share(distinct, _SSN.search) > _SOME:
        yield Code.LOOKS_LIKE_SSN
    if _share(distinct, _EMAIL.search) > _SOME:
        yield Code.LOOKS_LIKE_EMAIL
    if _share(distinct, _COORDINATES.fullmatch) > _MANY:
        yield Code.LOOKS_LIKE_COORDINATES
    elif _share(distinct, _is_phone) > _MANY:
        yield Code.LOOKS_LIKE_PHONE
    if len(distinct) < _FEWEST:
        return
    are_names = are_own and _share(distinct, _is_full_name) > _MOST
    if are_names or _share(distinct, _is_given_name) > _FIFTH:
        yield Code.LOOKS_LIKE_NAME
    if are_own and _share(distinct, _is_sentence) > _FIFTH:
        yield Code.FREE_TEXT


def _share(values: Sequence[str], holds: Callable[[str], object]) -> float:
    return sum(bool(holds(value)) for value in values) / len(values)


def _is_phone(text: str) -> bool:
    if not _PHONE.fullmatch(text) or _SSN.fullmatch(text):
        return False
    if _NO_PHONE.fullmatch(text) and not _LOCAL_PHONE.fullmatch(text):
        return False
    return _FEWEST_DIGITS <= sum(c.isdigit() for c in text) <= _MOST_DIGITS


def _is_full_name(text: str) -> bool:
    words = re.split(r"[ ,]+", text)
    return bool(_NAME.fullmatch(text)) and all(word[0].isupper() for word in words if word)


def _is_given_name(text: str) -> bool:
    return text.casefold() in _GIVEN


def _is_sentence(text: str) -> bool:
    return len(text) > 30 and text.count(" ") >= 5  # noqa: PLR2004 - seven words, or so
