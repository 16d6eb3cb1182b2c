"""What the values of a column look like: one table of patterns, with the role of each."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from dbanon.domain.caution import Code
from dbanon.domain.policy import Role
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
_IBAN = re.compile(r"[A-Z]{2}\d\d[A-Z0-9]{11,30}")
_CARD = re.compile(r"[3-6]\d{12,18}")
_IP = re.compile(r"(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.(?!$)|$)){4}|(?=.*:.*:)[0-9a-fA-F:]{6,39}")
_MAC = re.compile(r"[0-9a-fA-F]{2}([:-])(?:[0-9a-fA-F]{2}\1){4}[0-9a-fA-F]{2}")
_URL = re.compile(r"(?:https?|ftp)://\S+|www\.\S+\.\S+", re.IGNORECASE)
_UUID = re.compile(r"(?:\w+/)?[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")
_ICD = re.compile(  # of versions 10 and 9
    r"[A-TV-Z]\d[0-9A-Z](?:\.[0-9A-Z]{1,4})?|\d{3}(?:\.\d{1,2})?|[EV]\d\d\d?(?:\.\d\d?)?"
)
_LOINC = re.compile(r"\d{1,5}-\d")
_ATC = re.compile(r"[ABCDGHJLMNPRSV]\d\d[A-Z]{2}\d\d")
_NDC = re.compile(r"\d{4,5}-\d{3,4}-\d{1,2}")
_FEWEST_VALUES = 5  # minimum number of distinct values for a result
_ENOUGH = 2000  # different texts are looked at
_SOME, _FIFTH, _MANY, _MOST = 0.05, 0.2, 0.5, 0.8


def _is_phone(text: str) -> bool:
    if not _PHONE.fullmatch(text) or _SSN.fullmatch(text) or _COORDINATES.fullmatch(text):
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


def _is_iban(text: str) -> bool:
    text = text.replace(" ", "").upper()
    if not _IBAN.fullmatch(text):
        return False
    return int("".join(str(int(c, 36)) for c in text[4:] + text[:4])) % 97 == 1


def _has_luhn_digit(text: str) -> bool:
    digits = [int(c) for c in reversed(text) if c.isdigit()]
    return sum(sum(divmod(d * (1 + place % 2), 10)) for place, d in enumerate(digits)) % 10 == 0


def _is_card(text: str) -> bool:
    return bool(_CARD.fullmatch(re.sub(r"[ -]", "", text))) and _has_luhn_digit(text)


def _is_loinc(text: str) -> bool:
    return bool(_LOINC.fullmatch(text)) and _has_luhn_digit(text)


# Lengths of national numbers with check digits, the weights of their digits, and the modulus of the
# sum: NHS number of England, BSN of the Netherlands, PESEL of Poland, AHV of Switzerland.
_NATIONAL = {
    10: ((10, 9, 8, 7, 6, 5, 4, 3, 2, 1), 11),
    9: ((9, 8, 7, 6, 5, 4, 3, 2, -1), 11),
    11: ((1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1), 10),
    13: ((1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1), 10),
}
_NIR = re.compile(r"[12]\d{14}")  # of France; its last two digits complete a multiple of 97


def _is_national(text: str) -> bool:
    digits = re.sub(r"[ .-]", "", text)
    if not (digits.isascii() and digits.isdigit()):
        return False
    if _NIR.fullmatch(digits):
        return (int(digits[:13]) + int(digits[13:])) % 97 == 0
    weights, modulus = _NATIONAL.get(len(digits), ((), 0))
    total = sum(weight * int(c) for weight, c in zip(weights, digits, strict=False))
    return bool(modulus) and total % modulus == 0


class Content(NamedTuple):
    """What texts look like, and the role that follows.

    holds: True for a text; least: share of the distinct texts for which it must hold; fewest:
    number of distinct texts; own: only if most values are distinct; code: of the warning about such
    a column that is published unchanged.
    """

    what: str
    role: Role
    holds: Callable[[str], object]
    least: float
    code: Code | None = None
    fewest: int = 1
    own: bool = False


class Match(NamedTuple):
    """A content, and the share of filled rows that match it."""

    content: Content
    share: float


_ID, _OUTCOME = Role.IDENTIFIER, Role.SENSITIVE
CONTENTS = (
    Content("social security numbers", _ID, _SSN.search, _SOME, Code.LOOKS_LIKE_SSN),
    Content("e-mail addresses", _ID, _EMAIL.search, _SOME, Code.LOOKS_LIKE_EMAIL),
    Content("coordinates", _ID, _COORDINATES.fullmatch, _MANY, Code.LOOKS_LIKE_COORDINATES),
    Content("telephone numbers", _ID, _is_phone, _MANY, Code.LOOKS_LIKE_PHONE),
    Content("IBANs", _ID, _is_iban, _MANY),
    Content("card numbers", _ID, _is_card, _MOST, fewest=_FEWEST_VALUES),
    Content("national numbers", _ID, _is_national, 0.9, fewest=20),
    Content("IP addresses", _ID, _IP.fullmatch, _MANY),
    Content("MAC addresses", _ID, _MAC.fullmatch, _MANY),
    Content("web addresses", _ID, _URL.match, _MANY),
    Content("UUIDs", _ID, _UUID.fullmatch, _MANY, fewest=51),
    Content(
        "names of persons", _ID, _is_full_name, _MOST, Code.LOOKS_LIKE_NAME,
        fewest=_FEWEST_VALUES, own=True,
    ),
    Content(
        "given names", _ID, _is_given_name, _FIFTH, Code.LOOKS_LIKE_NAME, fewest=_FEWEST_VALUES
    ),
    Content(
        "free text", _ID, _is_sentence, _FIFTH, Code.FREE_TEXT, fewest=_FEWEST_VALUES, own=True
    ),
    Content("LOINC codes", _OUTCOME, _is_loinc, _MOST, fewest=_FEWEST_VALUES),
    Content("ATC codes", _OUTCOME, _ATC.fullmatch, _MOST, fewest=_FEWEST_VALUES),
    Content("NDC codes", _OUTCOME, _NDC.fullmatch, _MOST, fewest=_FEWEST_VALUES),
    Content("ICD codes", _OUTCOME, _ICD.fullmatch, 0.9, fewest=20),
)  # fmt: skip


def matches(column: ColumnInfo, values: Sequence[str | None]) -> Iterator[Match]:
    """Yield what the texts of a column look like, in the order of the table.

    values: of some rows, as PostgreSQL prints them, at most ``LONGEST`` characters each.
    """
    filled = [value.strip() for value in values if value]
    if column.kind is not ColumnKind.CATEGORY or not filled:
        return
    distinct = list(dict.fromkeys(filled))
    are_own = len(distinct) > _MANY * len(filled)
    distinct = distinct[:_ENOUGH]
    for content in CONTENTS:
        if len(distinct) < content.fewest or (content.own and not are_own):
            continue
        found = {text for text in distinct if content.holds(text)}
        if len(found) > content.least * len(distinct):
            yield Match(content, sum(text in found for text in filled) / len(filled))


def signs(column: ColumnInfo, values: Sequence[str | None]) -> Iterator[Code]:
    """Yield the warnings about the contents of a column that is published unchanged.

    values: as in ``matches``.
    """
    if column.kind in _MOMENTS:
        distinct = {value.strip() for value in values if value}
        n_exact = sum(bool(_SECONDS.search(value)) for value in distinct)
        if len(distinct) > 1 and n_exact > _SOME * len(distinct):
            yield Code.TO_THE_SECOND
    elif column.base_type in _HOLDS_ANYTHING:
        yield Code.FREE_TEXT
    elif column.base_type == "point":
        yield Code.LOOKS_LIKE_COORDINATES
    else:
        yield from dict.fromkeys(
            match.content.code
            for match in matches(column, values)
            if match.content.code is not None
        )
