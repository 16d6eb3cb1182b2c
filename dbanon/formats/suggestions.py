"""Suggest a role for every column, with the reason in words."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from dbanon.domain.policy import ColumnRule, Role
from dbanon.domain.policy_warning import Code, Match
from dbanon.domain.table import (
    ColumnInfo,
    ColumnKind,
    ColumnStats,
    ForeignKey,
    TableInfo,
    quote_identifier,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from dbanon.domain.report import UniqueSet


_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def _list(text: str) -> frozenset[str]:
    return frozenset(text.split())


class _Vocabulary:
    """Words of names; ``diagnos*`` are all that begin so, and ``*statin`` all that end so."""

    def __init__(self, text: str) -> None:
        entries = text.split()
        self._whole = frozenset(entries)
        self._first = tuple(entry[:-1] for entry in entries if entry.endswith("*"))
        self._last = tuple(entry[1:] for entry in entries if entry.startswith("*"))

    def has(self, words: Iterable[str]) -> bool:
        """Return True if it has one of the words."""
        return any(
            word in self._whole or word.startswith(self._first) or word.endswith(self._last)
            for word in words
        )


NAMES_A_PERSON = _Vocabulary(
    "account alias birthname cookie cpr displayname drivers email extension familyname fax "
    "fingerprint firstname fname forename fullname givenname guid handle iban image imei "
    "initials ip lastname licence license lname login maidenname mail medicaid medicare "
    "middlename mname mobile mrn nhs nickname nin nino passport passwd password phone photo "
    "picture plate rowguid signature ssn surname tel telephone token url username uuid vin"
)
DESCRIBES_A_PERSON = _Vocabulary(
    "admi* age birth birthdate birthday birthplace birthyear born branch canton citizen* city "
    "class country county date dateofbirth deathdate department dept discharg* district dob "
    "education employer ethnic* fips gender height hire hispan* hospital insur* job language lat "
    "latitude lng location lon longitude marital marst married municipality nationality native "
    "occupation organization payer plz postal postalcode postcode profession province race region "
    "relationship religion school sex shop specialty state statefip countyfip store town ward "
    "weight work workclass year yr zip zipcode"
)
PLACES_A_PERSON = _list("address id key name names nr street")
HARMS_A_PERSON = _Vocabulary(
    "abuse* addict* adhd aids alcohol* allerg* alive alzheimer* anxiety arthritis asthma attrition "
    "autis* bipolar cancer cause chapter charge claim comorbid* condition* conviction copd covid* "
    "cpt crime dead death debt deceased delinq* dementia depress* expire* diabetes* diag diagnos* "
    "died disab* disease* disorder* dosage dose drug* dx epilep* finding fracture* hepatitis hiv "
    "hypertens* icd* illness immuni* *inc infect* injur* "
    "income inctot incwage *insulin loan* loinc medication* offence offense orientation poverty "
    "obesity pregnan* prescription procedure* psych* readmi* reasoncode reasondescription recid* "
    "relaps* salary schizo* sentence smok* snomed stroke suicid* surviv* symptom* treatment* "
    "tumor* tumour* verdict vital* wage* a1c albumin "
    "bpd bps circ dbp diastolic heart* homeless* oxygen pulse respirat* sbp spo systolic "
    "temperature waist* "
    "bilirubin bmi cholesterol creatinine glucose haemoglobin hba1c hdl hemoglobin ldl "
    "potassium serum sodium triglycerides acarbose aspirin *azole *buride *cillin *formin "
    "*gliptin *glinide *glitazone *mab *mycin *olol *piride *pizide *pril *sartan *statin "
    "warfarin"
)
MEASURES_A_PERSON = _Vocabulary(
    "*satisfaction performance amnt amount amt balance bonus commission cost decile dti expense "
    "expenses fee gain gpa *grade *grades installment loss *outcome premium price profit pymnt "
    "rate recover* *result revol* score"
)
_NAMES_AN_OUTCOME = _list("class default label outcome target y")
_COUNTS = _list("count counts n num number")
_PLACES = _list("coordinates lat latitude lng lon longitude")
_OF_BIRTH = _list("birth birthdate birthday birthyear born dateofbirth dob")
_POSTCODES = _list("plz postal postalcode postcode zip zipcode")
_SEEN_OF_A_PERSON = _list("age ethnicity gender race sex")
_OF_NAMES = _list(
    "family first full given initial last maiden middle name names nick nm prefix suffix"
)
_WRITTEN = _PLACES | _list("comment comments memo note notes remark remarks")
_TELLS_ROWS_APART = _list("id identifier key nbr no nr num number ref reference")
_OF_HEALTH = _Vocabulary(
    "allerg* careplan* claim* condition* diagnos* drug* immuni* lab labs labevents labresults "
    "measurement* medicat* microbiolog* observation* prescri* procedure* specimen* treatment* "
    "vaccin*"
)
_OF_VISITS = _list("admission admissions encounter encounters stay stays visit visits")
_SAYS_WHY = _list("code description reason")
_SAYS_WHICH = _Vocabulary(
    "code concept description display finding interpretation item itemid nval reason* result* sig "
    "tval val value*"
)
_ABOUT_A_CODE = _Vocabulary("category class route status system type unit* *uom version")
_WHERE = _list("business cell contact home main office personal primary private work")
_HAS_NO_ORDER = _Vocabulary(
    "bpl branch category citizen* city class code concept country county department dept district "
    "empstat ethnic* flag form gender gq hispan* id ind industry job kind language location "
    "marital method mode "
    "marst metro nationality occ occupation puma race region relate relationship religion route "
    "sample school sex shop state* county* status store type unit units ward"
)
_STAFF = _Vocabulary(
    "agent caregiver doctor manager nurse officer performer physician practitioner provider* "
    "requester staff teacher"
)

_ANYBODY = _list("human individual participant person subject")
_PERSONS = _ANYBODY | _list(
    "applicant beneficiary borrower buyer cardholder child citizen claimant client customer "
    "debtor defendant donor employee enrollee guest inmate insured juvenile member offender "
    "passenger patient pensioner policyholder prisoner pupil recipient resident respondent "
    "student subscriber suspect taxpayer tenant user victim voter worker"
)
_OTHER_FORMS = {
    "children": "child",
    "cust": "customer",
    "emp": "employee",
    "pat": "patient",
    "people": "person",
    "subj": "subject",
}
_ONLY_PERSONS_HAVE = _list("cpr mrn nhs nin nino passport ssn")
_NUMBER = _list("code fk guid id ident identifier key nbr no nr num number ref sk uid uuid")
_SAYS_LITTLE = _list(
    "anon anonymous clinic external global hospital internal local main master original source "
    "study unique"
)
_ENDINGS = ("id", "key", "no")
_SHORT_KEY = re.compile("(?![bklm])[a-z]id")
_JOINED_KEY = re.compile("[a-z]{3,}(?<!pa)id")  # of which the order means nothing


def parts(name: str) -> tuple[str, ...]:
    """Split a name at case, digits and punctuation, and ``providerid`` into two words."""
    return tuple(part for word in _WORD.findall(name) for part in _split(word.lower()))


def _split(word: str) -> tuple[str, ...]:
    stem = word.removesuffix("id")
    is_joined = stem != word and len(stem) > len("id")
    if is_joined and (DESCRIBES_A_PERSON.has([stem]) or _STAFF.has([stem])):
        return stem, "id"
    return (word,)


def words(name: str) -> frozenset[str]:
    """Return the words of a name, and all of them joined."""
    found = parts(name)
    return frozenset([*found, "".join(found)])


def is_anybody(person: str) -> bool:
    """Return True if a word for a person is generic, such as ``subject``."""
    return person in _ANYBODY


def person_listed(table: str) -> str | None:
    """Return the person in the name of a table: ``hospital_patients``, not ``patient_visits``."""
    found = parts(table)
    return _person(found[-1]) if found else None


def person_numbered(column: str) -> str | None:
    """Return the kind of person that a column numbers: ``patient_no``, not ``patient_type``.

    The name is one such word, or that of a number that only persons have, with words for a number.
    """
    left = [p for p in parts(column) if len(p) > 1 and p not in _NUMBER | _SAYS_LITTLE]
    if len(left) != 1:
        return None
    stems = [left[0], *(left[0].removesuffix(ending) for ending in _ENDINGS)]
    if _ONLY_PERSONS_HAVE.intersection(stems):
        return "person"
    joined = (p for stem in stems[1:] for p in _PERSONS if stem != left[0] and stem.endswith(p))
    return next((person for stem in stems if (person := _person(stem))), next(joined, None))


def names_a_place(column: str) -> bool:
    """Return True if a name describes coordinates."""
    return bool(words(column) & _PLACES)


def is_known(column: str, *, insensitive: bool) -> bool:
    """Return True if a name is a widely known attribute, or a visible one if ``insensitive``."""
    known = _OF_BIRTH | _POSTCODES | (_SEEN_OF_A_PERSON if insensitive else frozenset())
    return bool(words(column) & known)


def is_postcode(column: str) -> bool:
    """Return True if a name describes a postcode."""
    return bool(words(column) & _POSTCODES)


def is_of_names(column: str) -> bool:
    """Return True if a name only describes a part of a person's name, such as ``maiden``."""
    found = [part for part in parts(column) if len(part) > 1]
    return bool(found) and _OF_NAMES.issuperset(found)


def tells_rows_apart(column: str) -> bool:
    """Return True if a name ends like that of a key, and not only like that of a code."""
    found = parts(column)
    return bool(found) and (found[-1] in _TELLS_ROWS_APART or found[0] == "id" or _is_short(found))


def _is_short(found: Sequence[str]) -> bool:
    """Return True for a key of one letter and id, such as ``pid``."""
    return len(found) == 1 and bool(_SHORT_KEY.fullmatch(found[0]))


def has_values(info: TableInfo) -> bool:
    """Return True if each row is one fact: several columns are its value in several types."""
    return sum(parts(column.name)[:1] in {("value",), ("val",)} for column in info.columns) > 1


def is_number(column: str) -> bool:
    """Return True if the name of a column ends like that of a number or a key."""
    found = parts(column)
    return bool(found) and (found[-1] in _NUMBER or _is_short(found))


def _person(word: str) -> str | None:
    for form in (word, word.removesuffix("s"), _OTHER_FORMS.get(word)):
        if form in _PERSONS:
            return form
    return None


_FEWEST = 20  # minimum values of a key that may identify persons
_FEWEST_ROWS, _MOST_ROWS = 1.05, 20.0  # of one value, on average
_MOST_ROWS_OF_ONE = 200  # of a person; a value of more is a kind, such as citizen


@dataclass(frozen=True, slots=True)
class Persons:
    """A column that seems to identify persons with several rows.

    is_sure: True for a word for a person, False for a key that rows share; n_rows, n_values:
    numbers of rows and distinct values, None if the role may not count them; n_null: rows without a
    person.
    """

    column: str
    reason: str
    is_sure: bool
    n_rows: int | None = None
    n_values: int | None = None
    n_null: int = 0

    @property
    def figure(self) -> str:
        """The numbers of rows and persons, in words."""
        column = quote_identifier(self.column)
        if self.n_rows is None:
            return f"column {column} may identify persons (not counted)"
        if self.is_sure:
            return f"{self.n_rows:,} rows, {self.n_values:,} persons by column {column}"
        return f"{self.n_rows:,} rows, {self.n_values:,} values of column {column}"

    @property
    def setting(self) -> str:
        """The line of a policy that names the column."""
        return f"subject = {json.dumps(self.column, ensure_ascii=False)}"


class _Candidate(NamedTuple):
    column: str
    reason: str
    is_sure: bool


def candidates(info: TableInfo, keys: Sequence[ForeignKey], *, sure: bool = False) -> list[str]:
    """Return the columns to count because they may identify persons; sure: by name only."""
    found = _candidates(info, keys)
    return [candidate.column for candidate in found if candidate.is_sure or not sure]


def find(
    info: TableInfo, keys: Sequence[ForeignKey], stats: Mapping[str, ColumnStats]
) -> Persons | None:
    """Return the column that most likely identifies persons with several rows, None if none does.

    keys: the table's foreign keys; stats: by column name. A word for a person is a sure sign if a
    value repeats. Another key may identify persons if each of its values has a few rows.
    """
    found = [p for c in _candidates(info, keys) if (p := _counted(c, stats)) is not None]
    return max(found, key=lambda p: (p.is_sure, p.n_values or 0), default=None)


def _counted(candidate: _Candidate, stats: Mapping[str, ColumnStats]) -> Persons | None:
    """Evaluate the counts of a candidate; one that could not be counted remains possible."""
    known = stats.get(candidate.column)
    if known is None:
        return Persons(*candidate) if candidate.is_sure else None
    filled = known.n_rows - known.n_null
    if not 0 < known.n_distinct < filled:
        return None
    is_kind = known.n_distinct < _FEWEST and filled > _MOST_ROWS_OF_ONE * known.n_distinct
    if is_kind or (
        not candidate.is_sure
        and not (
            known.n_distinct >= _FEWEST and _FEWEST_ROWS <= filled / known.n_distinct <= _MOST_ROWS
        )
    ):
        return None
    return Persons(*candidate, known.n_rows, known.n_distinct, known.n_null)


def _candidates(info: TableInfo, keys: Sequence[ForeignKey]) -> Iterator[_Candidate]:
    own = _listed(info)
    referred = {key.columns[0]: key.table for key in keys if len(key.columns) == 1}
    for column in info.columns:
        if (column.name,) == info.primary_key or not column.has_equality:
            continue
        table = referred.get(column.name)
        if table == info.name:  # a row of the same table, such as a manager
            continue
        person = person_listed(table.name) if table else person_numbered(column.name)
        reason = f"refers to {table}" if table else "named like the number of a person"
        if person is not None:
            if own is None or own == person or is_anybody(own) or is_anybody(person):
                yield _Candidate(column.name, reason, is_sure=own in {None, person})
        elif own is None and (table is not None or _is_key(column.name)):
            reason = reason if table else "named like a key"
            yield _Candidate(column.name, reason, is_sure=False)


def _listed(info: TableInfo) -> str | None:
    """Return the word for a person if each row is one; columns of other persons do not count."""
    if len(info.primary_key) != 1:
        return None
    return person_numbered(info.primary_key[0]) or person_listed(info.name.name)


def _is_key(column: str) -> bool:
    found = words(column)
    return is_number(column) and not DESCRIBES_A_PERSON.has(found) and not HARMS_A_PERSON.has(found)


_COMMENT = re.compile(rf"\bdbanon:\s*({'|'.join(Role)})\b", re.IGNORECASE)
_NEARLY_UNIQUE = 0.95
_FINE = 0.9  # the share from which policy set warns of nearly unique values
_FEW = 50
_FEWEST_NAMES, _ENOUGH_ROWS = 6, 100  # names of persons have more values in so many rows
_RECUR = 0.5  # the share of distinct values below which few values recur
_SHARED = 0.05  # below which keys are those of a lookup table
_WORTH_TELLING = 0.01  # the share of rows that a set makes unique
_OF_TYPES = {
    "uuid": "it holds UUIDs, which are keys",
    "inet": "it holds addresses of machines",
    "macaddr": "it holds addresses of machines",
    "macaddr8": "it holds addresses of machines",
}


class _Column(NamedTuple):
    """A column, and what its table and some of its values say of it."""

    info: ColumnInfo
    words: frozenset[str]
    stats: ColumnStats | None
    key: tuple[str, ...] = ()
    of_persons: bool = False
    table: str = ""
    has_values: bool = False
    refers: str | None = None
    match: Match | None = None

    @property
    def in_key(self) -> bool:
        return self.info.name in self.key

    @property
    def distinctness(self) -> float:
        """The share of distinct values, 0 if unknown."""
        filled = self.stats.n_rows - self.stats.n_null if self.stats else 0
        return self.stats.n_distinct / filled if self.stats and filled else 0.0

    @property
    def has_few_values(self) -> bool:
        return self.stats is not None and self.stats.n_distinct <= _FEW

    @property
    def is_few(self) -> bool:
        """True if the column has few values, each in several rows: they identify nobody."""
        return self.has_few_values and 0 < self.distinctness < _RECUR

    @property
    def is_flag(self) -> bool:
        """True for at most six values in a hundred rows or more, whatever the name."""
        known = self.stats
        return (
            known is not None
            and 0 < known.n_distinct <= _FEWEST_NAMES
            and known.n_rows - known.n_null >= _ENOUGH_ROWS
        )

    @property
    def is_nearly_unique(self) -> bool:
        return self.distinctness >= _FINE and not self.has_few_values

    @property
    def harms(self) -> bool:
        """True if the name describes a sensitive attribute."""
        if self.words & _COUNTS and self.info.kind is ColumnKind.INTEGER:
            return False
        listed = words(self.table)
        clinical = self.has_values or _OF_HEALTH.has(listed)
        if clinical and _ABOUT_A_CODE.has(self.words):
            return False
        if clinical and _SAYS_WHICH.has(self.words):
            return True
        if not clinical and self.words & _SAYS_WHY and listed & _OF_VISITS:
            return not DESCRIBES_A_PERSON.has(self.words)
        return HARMS_A_PERSON.has(self.words)

    @property
    def is_outcome(self) -> bool:
        """True if the name describes a sensitive attribute, an amount or a score."""
        name = self.info.name.casefold()
        return self.harms or MEASURES_A_PERSON.has(self.words) or name in _NAMES_AN_OUTCOME

    @property
    def is_key(self) -> bool:
        """True if the name or the primary key suggests that values identify rows."""
        is_visit = self.info.kind is ColumnKind.INTEGER and self.info.name.lower() in _OF_VISITS
        is_name = is_visit or tells_rows_apart(self.info.name)
        if self.info.kind in {ColumnKind.DECIMAL, ColumnKind.FLOAT}:
            is_name = is_name and not self.words & _COUNTS
        return is_name or (self.in_key and self.info.kind is not ColumnKind.BOOLEAN)


def suggest(
    info: TableInfo,
    stats: Mapping[str, ColumnStats],
    persons: Persons | None = None,
    *,
    keys: Sequence[ForeignKey] = (),
    matches: Mapping[str, Match] | None = None,
) -> list[tuple[ColumnRule, str]]:
    """Return a rule and its reason for every column, in the order of the table.

    A column is insensitive only by its comment. Doubtful columns become quasi-identifiers, or are
    not published if that is impossible. stats: by column name; without them, name and type decide;
    keys: the table's foreign keys; matches: what the texts of columns look like.
    """
    referred = _referred(keys)
    found = []
    for column in info.columns:
        known = _Column(
            column,
            words(column.name),
            stats.get(column.name),
            info.primary_key,
            of_persons=persons is not None and persons.is_sure and persons.column == column.name,
            table=info.name.name,
            has_values=has_values(info),
            refers=referred.get(column.name),
            match=(matches or {}).get(column.name),
        )
        role, reason = _role(known)
        found.append((ColumnRule(column.name, role), reason))
    return found


def _referred(keys: Sequence[ForeignKey]) -> dict[str, str]:
    """Return the table that each column references alone."""
    return {key.columns[0]: key.table.name for key in keys if len(key.columns) == 1}


def with_uniqueness(reason: str, rule: ColumnRule, sets: Sequence[UniqueSet]) -> str:
    """Add the share of rows that a quasi-identifier makes unique; sets: most identifying first."""
    found = next((one for one in sets if rule.column in one.columns), None)
    if rule.role is not Role.QUASI or found is None or found.share < _WORTH_TELLING:
        return reason
    others = [quote_identifier(name) for name in found.columns if name != rule.column]
    words = f"with {' and '.join(others)}" if others else "alone"
    return f"{reason}; {words} it makes {found.share:.0%} of rows unique"


def identifies(info: TableInfo, name: str, stats: ColumnStats | None = None) -> str | None:
    """Return the reason why a column seems an identifier, None if it has a role in its comment."""
    column = info.column(name)
    known = _Column(column, words(name), stats, info.primary_key, table=info.name.name)
    is_shared = known.is_few or 0 < known.distinctness <= _SHARED
    if _COMMENT.search(column.comment or ""):
        return None
    if known.in_key and not is_shared:
        return "it is part of the primary key"
    if column.identity:
        return "it is numbered by the database"
    if _names_a_person(known):
        return "it is named like something that names a person"
    if _is_placed(known) and not (known.is_outcome and is_shared):
        return "it is named like a name, an address or a key"
    return _OF_TYPES.get(column.base_type)


def key_of(
    info: TableInfo,
    stats: Mapping[str, ColumnStats],
    persons: Persons | None = None,
    *,
    pairs: Mapping[str, int] | None = None,
) -> tuple[str, ...]:
    """Return the first column with unique values, as a tuple; empty if there is none.

    Dates and times come last, alone or with the column of the persons. pairs: by column, the number
    of distinct pairs with the column of the persons, which may be half of a key, preferably with a
    date.
    """
    found = {c.name: s for c in info.columns if (s := stats.get(c.name)) and not s.n_null}
    alone = [name for name, known in found.items() if 0 < known.n_rows == known.n_distinct]
    alone.sort(key=lambda name: info.column(name).kind.is_moment)  # two may come at one moment
    lasting = alone and not info.column(alone[0]).kind.is_moment
    if lasting or persons is None or persons.column not in found:
        return tuple(alone[:1])
    n_rows = found[persons.column].n_rows
    others = [name for name in found if (pairs or {}).get(name) == n_rows > 0]
    others.sort(key=lambda name: not info.column(name).kind.is_moment)
    return (persons.column, others[0]) if others else tuple(alone[:1])


def differing(
    suggested: Iterable[tuple[ColumnRule, str]], persons: Persons | None, pairs: Mapping[str, int]
) -> tuple[str, ...]:
    """Return quasi-identifiers that vary between rows of a person; pairs as in ``key_of``."""
    if persons is None or persons.n_values is None:
        return ()
    return tuple(
        rule.column
        for rule, _ in suggested
        if rule.role is Role.QUASI and pairs.get(rule.column, 0) > persons.n_values
    )


def _role(column: _Column) -> tuple[Role, str]:
    comment = _COMMENT.search(column.info.comment or "")
    if comment:
        return Role(comment[1].lower()), "its comment says so"
    role, reason = next((role, reason) for role, reason, holds in _RULES if holds(column))
    if column.match is not None and reason is _LOOKS:
        return role, f"{column.match.share:.0%} of rows look like {column.match.content.what}"
    return role, reason


def _names_a_person(column: _Column) -> bool:
    name, kind = column.info.name, column.info.kind
    is_kind = column.is_few and _ABOUT_A_CODE.has(parts(name)[-1:])
    is_direct = all(NAMES_A_PERSON.has([part]) or part in _WHERE for part in parts(name))
    is_flag = column.is_flag and not (is_direct or is_of_names(name))
    if kind is ColumnKind.BOOLEAN or is_flag or is_kind:
        return False
    if kind.is_number and (MEASURES_A_PERSON.has(column.words) or kind is ColumnKind.FLOAT):
        return False
    is_text = kind is ColumnKind.CATEGORY
    is_number = is_text or kind is ColumnKind.INTEGER
    return (
        NAMES_A_PERSON.has(column.words)
        or (is_text and is_of_names(name))
        or (is_number and not column.is_few and person_numbered(name) is not None)
    )


def _is_written(column: _Column) -> bool:
    is_text = column.info.kind is ColumnKind.CATEGORY and not column.is_few
    return is_text and bool(column.words & _WRITTEN)


def _looks_direct(column: _Column) -> bool:
    if column.match is None or column.match.content.role is not Role.IDENTIFIER:
        return False
    is_name = column.match.content.code is Code.LOOKS_LIKE_NAME
    may_be_place = is_name and DESCRIBES_A_PERSON.has(column.words)
    return column.is_nearly_unique or not may_be_place


def _looks_like_an_outcome(column: _Column) -> bool:
    if column.match is None or column.match.content.role is not Role.SENSITIVE:
        return False
    is_known = DESCRIBES_A_PERSON.has(column.words) or tells_rows_apart(column.info.name)
    return not is_known and not _is_free_text(column)


def _is_sensitive(column: _Column) -> bool:
    """Return True for an outcome, unless it is a key of rows such as a prescription number."""
    if column.is_key and column.info.kind is not ColumnKind.DECIMAL:
        return column.is_outcome and column.stats is not None and column.distinctness <= _SHARED
    return column.is_outcome and not _is_free_text(column)


def _is_shared_key(column: _Column) -> bool:
    """Return True for a key of few values, or of a lookup table that many rows refer to."""
    if column.is_few:
        is_name = column.words & PLACES_A_PERSON == {"name"} and len(parts(column.info.name)) > 1
        return column.is_key or is_name
    is_lookup = column.refers is not None and person_listed(column.refers) is None
    is_lookup = is_lookup and not words(column.refers or "") & _OF_VISITS
    return is_lookup and 0 < column.distinctness <= _SHARED and not _STAFF.has(column.words)


def _describes(column: _Column) -> bool:
    return DESCRIBES_A_PERSON.has(column.words)


def _is_placed(column: _Column) -> bool:
    return not _is_shared_key(column) and (
        column.is_key or bool(column.words & PLACES_A_PERSON and not column.harms)
    )


def _is_free_text(column: _Column) -> bool:
    return column.info.kind is ColumnKind.CATEGORY and column.distinctness > _NEARLY_UNIQUE


def _is_uuid(column: _Column) -> bool:
    return column.info.base_type == "uuid" and not column.has_few_values


def _is_numbering(column: _Column) -> bool:
    is_all = column.info.kind is ColumnKind.INTEGER and column.distinctness == 1
    return is_all and not column.harms and not _describes(column)


def _singles_out(column: _Column) -> bool:
    """Return True if sensitive numbers are so fine that knowing one identifies the row."""
    is_number = column.info.kind.is_number and not column.is_key
    return column.is_outcome and is_number and column.is_nearly_unique


_LOOKS = "values look like it"

# The first rule that holds decides. A wrong "quasi" costs precision, a wrong "identifier" a column;
# a wrong "sensitive" publishes raw values, so direct identifiers come first.
_RULES: tuple[tuple[Role, str, Callable[[_Column], bool]], ...] = (
    (Role.IDENTIFIER, "part of the key", lambda c: (c.info.name,) == c.key),
    (Role.IDENTIFIER, "identifies persons", lambda c: c.of_persons),
    (Role.IDENTIFIER, "numbered by the database", lambda c: c.info.identity),
    (
        Role.IDENTIFIER,
        "its type cannot be generalized",
        lambda c: not c.info.kind.can_be_quasi or c.info.user_defined or not c.info.has_equality,
    ),
    (Role.IDENTIFIER, _LOOKS, _looks_direct),
    (Role.IDENTIFIER, "name suggests an identifier of a person", _names_a_person),
    (Role.IDENTIFIER, "name suggests free text or an exact place", _is_written),
    (Role.QUASI, "a date, which may be known", lambda c: c.info.kind.is_moment),
    (Role.SENSITIVE, _LOOKS, _looks_like_an_outcome),
    (
        Role.IDENTIFIER,
        "name suggests a key, and nearly all values differ",
        lambda c: tells_rows_apart(c.info.name) and _is_free_text(c),
    ),
    (Role.IDENTIFIER, "all values differ", _is_numbering),
    (Role.QUASI, "sensitive, but so fine that a known value finds the row", _singles_out),
    (Role.SENSITIVE, "name suggests a sensitive attribute", _is_sensitive),
    (Role.QUASI, "name suggests a known attribute", _describes),
    (Role.QUASI, "a key of few values, which may be known", _is_shared_key),
    (Role.IDENTIFIER, "part of the key", lambda c: c.in_key and _is_placed(c)),
    (Role.IDENTIFIER, "name suggests a name, an address or a key", _is_placed),
    (Role.IDENTIFIER, "a UUID, which is a key", _is_uuid),
    (Role.IDENTIFIER, "nearly all values differ", _is_free_text),
    (Role.QUASI, "few distinct values, which may be known", lambda c: c.has_few_values),
    (Role.QUASI, "a quasi-identifier by default", lambda _: True),
)


_SCALE = re.compile(  # words of labels in an order
    r"\d|\b(?:low|high|none|mild|minor|moderate|medium|severe|major|small|large|poor|good|never"
    r"|often|always)\b",
    re.IGNORECASE,
)
_DIGITS = 3  # of a postcode, as the Safe Harbor rule has it
_LENGTH = 5  # digits of most postcodes that are stored as numbers
_WIDTH = 10 ** (_LENGTH - _DIGITS)
_FEW_NUMBERS, _NEARLY_ALL = 50, 0.9  # distinct values; their share of the rows
_BANDS = 12  # at most, of the middle half of the rows
_LEAST_SET, _MOST_SET = 3, 12  # values of a column of which sets are read with ease


@dataclass(frozen=True, slots=True)
class Proposal:
    """A recoding and a floor (further keys of the column) for a quasi-identifier, with reasons."""

    recoding: str
    reason: str
    floor: Mapping[str, object] = field(default_factory=dict)
    why: str = ""


def propose(
    column: ColumnInfo, stats: ColumnStats | None, keys: Sequence[ForeignKey] = ()
) -> Proposal:
    """Propose a recoding, and a floor for values that identify persons alone."""
    floor, why = _floor(column, stats)
    if not floor and _is_code(column, stats, refers=column.name in _referred(keys)):
        return Proposal("set", "codes have no order: those that occur in a class")
    recoding, reason = _of_cells(column) if floor else _of_values(column, stats)
    return Proposal(recoding, reason, floor, why)


def _is_code(column: ColumnInfo, stats: ColumnStats | None, *, refers: bool) -> bool:
    """Return True for integers and enums whose order means nothing."""
    if column.kind is ColumnKind.ORDINAL:
        return not any(_SCALE.search(label) for label in column.labels)
    is_number = is_postcode(column.name) or parts(column.name)[-1:] in {("yr",), ("year",)}
    if column.kind is not ColumnKind.INTEGER or is_number:
        return False
    has_two = stats is not None and stats.n_distinct == len(("no", "yes"))
    return (
        refers
        or has_two
        or _JOINED_KEY.fullmatch(parts(column.name)[-1]) is not None
        or _HAS_NO_ORDER.has(words(column.name))
        or parts(column.name)[-1:] in {("cd",), ("by",)}
    )


def is_fine(column: ColumnInfo, stats: ColumnStats | None) -> bool:
    """Return True if nearly every number is unique, so that knowing it identifies the row."""
    if stats is None or not column.kind.is_number or stats.n_distinct <= _FEW_NUMBERS:
        return False
    return stats.n_distinct >= _NEARLY_ALL * (stats.n_rows - stats.n_null)


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
    if column.kind.is_moment and words(column.name) & _OF_BIRTH:
        return {"at_least": "year"}, "the day finds a person, the year seldom does"
    if column.kind.is_moment and column.kind is not ColumnKind.DATE:
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
        what = "dates" if column.kind.is_moment else "numbers"
        return "interval", f"a range of {what}, in which rows can be counted"
    if column.kind is ColumnKind.ORDINAL:
        return "interval-text", "its type has an order: from one value to another"
    if stats is not None and _LEAST_SET <= stats.n_distinct <= _MOST_SET:
        return "set", "few values: those of a class say more than a star"
    return "label", "a star where rows of a class differ, until it has a taxonomy"
