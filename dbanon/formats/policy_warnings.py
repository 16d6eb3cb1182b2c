"""Warnings about policies that are valid but rarely intended."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from typing import TYPE_CHECKING

from dbanon.domain.policy import K_ANONYMITY, L_DIVERSITY, ColumnRule, Policy, Role
from dbanon.domain.policy_warning import Code, Content, Contents, Match, PolicyWarning
from dbanon.domain.table import ColumnInfo, ColumnKind, ColumnStats, TableInfo, quote_identifier
from dbanon.domain.text import listed
from dbanon.formats.document_reader import did_you_mean
from dbanon.formats.suggestions import Persons, identifies, is_known, names_a_place
from dbanon.models.base import LISTED, Scope
from dbanon.models.registry import of_scope, sensitive_of, texts

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence


AS_IT_IS = (Role.SENSITIVE, Role.INSENSITIVE)
"""Roles of columns that are published as they are."""

_NEARLY = 0.9
_FORMAT = "Cf"  # zero-width blanks and joiners, marks of direction
_LOOKS = {
    Code.LOOKS_LIKE_SSN: "looks like social security numbers",
    Code.LOOKS_LIKE_EMAIL: "looks like e-mail addresses",
    Code.LOOKS_LIKE_PHONE: "looks like telephone numbers",
    Code.LOOKS_LIKE_NAME: "looks like names of persons",
    Code.LOOKS_LIKE_COORDINATES: "looks like coordinates",
    Code.FREE_TEXT: "looks like free text",
    Code.TO_THE_SECOND: "contains times to the second",
    Code.KNOWN_TO_OTHERS: "is probably known to others",
}


def policy_warnings(
    policy: Policy,
    info: TableInfo,
    *,
    contents: Mapping[str, Contents],
    unique: Iterable[Collection[str]],
    complete: bool,
    persons: Persons | None = None,
    rows: Mapping[str, Sequence[str | None]] | None = None,
) -> list[PolicyWarning]:
    """Return the warnings about a policy that it does not acknowledge.

    contents: by column, of those published unchanged; without it, only name and indexes count;
    unique: the columns of each UNIQUE index; complete: True if no command adds models later;
    persons: a column of persons with several rows; rows: some readable values as texts, by column.
    """
    rows = rows or {}
    rules = [rule for rule in policy.columns if rule.role in AS_IT_IS]
    shown = {rule.column for rule in rules}
    keys = [tuple(key) for key in unique if shown.issuperset(key)]
    found = [*_of_models(policy, complete=complete)]
    if persons is not None:
        found += _of_persons(policy, info, persons)
    found += [_together(key) for key in keys if len(key) > 1]
    for rule in rules:
        known = contents.get(rule.column)
        found += _of_values(rule, known, is_key=(rule.column,) in keys)
        found += _of_name(rule, info, known)
        found += _of_looks(rule, info.column(rule.column), rows.get(rule.column, ()))
        found += _of_masking(rule, policy)
        found += _of_derivation(rule, policy.with_role(Role.QUASI), rows)
        if known is not None and known.n_alike and rule.role is Role.SENSITIVE:
            found.append(_alike(rule.column, known.n_alike))
    return [warning for warning in found if not is_allowed(warning, policy)]


def repeated(policy: Policy, others: Iterable[Policy]) -> Iterator[PolicyWarning]:
    """Yield insensitive columns that are named like sensitive ones of the same persons' tables."""
    protected = {
        rule.column.casefold(): other.table
        for other in others
        for rule in other.with_role(Role.SENSITIVE)
    }
    for rule in policy.with_role(Role.INSENSITIVE):
        if rule.column.casefold() in protected:
            why = f"is sensitive in {protected[rule.column.casefold()]}"
            warning = _about(rule, Code.REPEATED, why)
            if not is_allowed(warning, policy):
                yield warning


def unknown(policy: Policy, values: Mapping[str, Collection[str]]) -> Iterator[PolicyWarning]:
    """Yield models that limit values without rows, which may be misspelled; values: by column."""
    for spec in of_scope(policy.models, Scope.SENSITIVE):
        columns = sensitive_of(spec, values)
        known = {value for name in columns for value in values.get(name, ())}
        missing = len({*texts(spec, LISTED)} - known)
        if missing:
            names = _in_line(columns)
            warning = PolicyWarning(
                Code.UNKNOWN_VALUE, None, f"{missing:,} listed values are in no row of {names}"
            )
            if not is_allowed(warning, policy):
                yield warning


_ROOM = 33  # characters for the names of columns in a warning


def _in_line(names: Iterable[str]) -> str:
    return listed(map(quote_identifier, names), room=_ROOM)


def _about(rule: ColumnRule, code: Code, why: str, hint: str = "") -> PolicyWarning:
    """Return a warning about one column."""
    message = f"{rule.role.value} column {quote_identifier(rule.column)} {why}"
    return PolicyWarning(code, rule.column, message, hint)


def alike(values: Iterable[str]) -> int:
    """Count the distinct values that differ from another only in case, spaces or Unicode form."""
    forms = Counter(map(_form, values))
    return sum(count for count in forms.values() if count > 1)


def _form(text: str) -> str:
    if not text.isascii():
        text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
        text = "".join(c for c in text if unicodedata.category(c) != _FORMAT)
    return " ".join(text.casefold().split())


def _of_models(policy: Policy, *, complete: bool) -> Iterator[PolicyWarning]:
    if policy.anatomy:
        message = "anatomy publishes exact quasi-identifiers, and gives no k"
        yield PolicyWarning(Code.ANATOMY, None, message)
    if policy.linking:
        kind = "replaced" if policy.pseudonym is None else "pseudonym"
        names = _in_line(policy.linking)
        message = f"{kind} {names} links all values of a person"
        yield PolicyWarning(Code.PSEUDONYM, None, message)
    if policy.model(K_ANONYMITY) is not None and policy.k == 1:
        yield PolicyWarning(Code.K_OF_ONE, None, "k = 1: a class may be a single row")
    sensitive = [quote_identifier(rule.column) for rule in policy.with_role(Role.SENSITIVE)]
    judged = [s for s in of_scope(policy.models, Scope.SENSITIVE) if s.name != L_DIVERSITY]
    others = [spec for spec in judged if LISTED not in spec.params]
    asked = policy.model(L_DIVERSITY)
    if not sensitive or others or (asked is None and not complete):
        return
    if asked is None or asked.params.get("l") == 1:
        what = "no model protects" if asked is None else "l = 1 does not protect"
        if judged:
            what = "only listed values are limited in"
        names = listed(sensitive, room=_ROOM)
        yield PolicyWarning(Code.NO_DIVERSITY, None, f"{what} {names}")


def _of_persons(policy: Policy, info: TableInfo, persons: Persons) -> Iterator[PolicyWarning]:
    if not policy.is_one_row(info):
        return
    message = f"{persons.figure}: k counts rows"
    yield PolicyWarning(Code.NO_SUBJECT, None, message, f"{persons.setting} in the policy")


def _together(key: tuple[str, ...]) -> PolicyWarning:
    message = f"columns {_in_line(key)} are unique together"
    return PolicyWarning(Code.UNIQUE_TOGETHER, None, message)


def _of_values(
    rule: ColumnRule, known: Contents | None, *, is_key: bool
) -> Iterator[PolicyWarning]:
    nearly = known is not None and known.n_filled > 1
    nearly = nearly and known is not None and known.n_distinct >= _NEARLY * known.n_filled
    if not (is_key or nearly):
        return
    code = Code.UNIQUE_INDEX if is_key else Code.NEAR_UNIQUE
    why = "has a UNIQUE index" if is_key else "has nearly unique values"
    yield _about(rule, code, why)


def _of_name(rule: ColumnRule, info: TableInfo, known: Contents | None) -> Iterator[PolicyWarning]:
    stats = None if known is None else ColumnStats(known.n_filled, 0, known.n_distinct)
    reason = identifies(info, rule.column, stats)
    if reason is not None:
        hint = (
            f"give it the role identifier, as {reason}, or the comment 'dbanon: {rule.role.value}'"
        )
        yield _about(rule, Code.LOOKS_LIKE_IDENTIFIER, "looks like an identifier", hint)


def _of_looks(
    rule: ColumnRule, column: ColumnInfo, values: Sequence[str | None]
) -> Iterator[PolicyWarning]:
    found = {*signs(column, values)}
    if names_a_place(rule.column):
        found.add(Code.LOOKS_LIKE_COORDINATES)
    if is_known(rule.column, insensitive=rule.role is Role.INSENSITIVE):
        found.add(Code.KNOWN_TO_OTHERS)
    for code in Code:
        if code in found:
            yield _about(rule, code, _LOOKS[code])


def _of_derivation(
    rule: ColumnRule, quasi: Iterable[ColumnRule], rows: Mapping[str, Sequence[str | None]]
) -> Iterator[PolicyWarning]:
    values = rows.get(rule.column)
    if values is None:
        return
    others = [(other.column, rows[other.column]) for other in quasi if other.column in rows]
    leads_to = [name for name, known in others if determines(values, known)]
    follows = [name for name, known in others if name not in leads_to and determines(known, values)]
    for what, names in (("determines", leads_to), ("follows from", follows)):
        if names:
            why = f"{what} {listed(map(quote_identifier, names), room=_ROOM // 2)}"
            yield _about(rule, Code.DERIVED, why)


def _of_masking(rule: ColumnRule, policy: Policy) -> Iterator[PolicyWarning]:
    """Yield the warning that values masked row by row give no k."""
    methods = [step.method for step in policy.masked(rule.column) if step.method != "permutation"]
    if methods and rule.role is Role.INSENSITIVE:
        why = f"is masked by {listed(methods, room=_ROOM // 2)}: no k"
        yield _about(rule, Code.MASKED, why)


def _alike(column: str, count: int) -> PolicyWarning:
    return PolicyWarning(
        Code.ALIKE_VALUES,
        column,
        f"{count:,} values of column {quote_identifier(column)} differ only in spelling",
    )


_FEWEST = 50  # minimum number of rows for a result
_SHARED = 0.5  # of the rows have a value that another row has, too
_CHANCE = 1e-9


def determines(first: Sequence[str | None], second: Sequence[str | None]) -> bool:
    """Return True if the first column determines the second in a sample, and not by chance.

    Rows with a NULL in either column are ignored. If the columns were independent, n rows with one
    value of the first would agree in the second with probability sum(p(v)^n) over its values v. The
    product over all values of the first must be below 1e-9. O(rows).
    """
    found: dict[str, str] = {}
    pairs = []
    for one, other in zip(first, second, strict=True):
        if one is None or other is None:
            continue
        if found.setdefault(one, other) != other:
            return False
        pairs.append((one, other))
    sizes = Counter(Counter(one for one, _ in pairs).values())
    shared = sum(size * count for size, count in sizes.items() if size > 1)
    if len(pairs) < _FEWEST or shared < _SHARED * len(pairs):
        return False
    shares = [count / len(pairs) for count in Counter(other for _, other in pairs).values()]
    chance = sum(
        count * math.log(math.fsum(share**size for share in shares) or math.ulp(0.0))
        for size, count in sizes.items()
    )
    return chance < math.log(_CHANCE)


def flaws(entries: Iterable[str], *, of_column: bool) -> Iterator[str]:
    """Yield the errors in the list of a column, or in that of the policy."""
    codes = []
    for entry in entries:
        code, reason = _parts(entry)
        if code not in list(Code):
            codes_there = ", ".join(one for one in Code if one.of_column == of_column)
            near = did_you_mean(code, list(Code))
            yield f"names no warning that there is{near}; those that it may name are {codes_there}"
        elif not reason:
            yield f'gives no reason: "{code}: why"'
        elif Code(code).of_column != of_column:
            where = "the column that it is about" if Code(code).of_column else "the whole policy"
            yield f"{code} is allowed by allow of {where}"
        else:
            codes.append(code)
    for code, count in Counter(codes).items():
        if count > 1:
            yield f"allows {code} {count} times"


def is_allowed(warning: PolicyWarning, policy: Policy) -> bool:
    """Return True if the policy acknowledges a warning with a reason."""
    entries = policy.allow
    if warning.code.of_column:
        entries = next(rule.allow for rule in policy.columns if rule.column == warning.column)
    return warning.code in {code for code, reason in map(_parts, entries) if reason}


def _parts(entry: str) -> tuple[str, str]:
    code, _, reason = entry.partition(":")
    return code.strip(), reason.strip()


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
_DOCUMENT = re.compile(r'\{\s*".*\}|\[\s*[\[{"].*\]|a:\d+:\{.*\}', re.DOTALL)
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


def _is_written(text: str) -> bool:
    return _is_sentence(text) and text[-1] in ".!?"  # labels of categories seldom end so


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
    Content("JSON or other documents", _ID, _DOCUMENT.fullmatch, _MANY, fewest=51),
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
    Content("free text", _ID, _is_written, _FIFTH, Code.FREE_TEXT, fewest=2),
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


def looks(info: TableInfo, rows: Mapping[str, Sequence[str | None]]) -> dict[str, Match]:
    """Return the first match of each column that has one; rows: as in ``matches``, by column."""
    found = {name: next(matches(info.column(name), rows[name]), None) for name in rows}
    return {name: match for name, match in found.items() if match is not None}


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
