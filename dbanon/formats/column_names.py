"""What the name of a column, or of a table, says of what it holds."""

from __future__ import annotations

import re

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def _list(text: str) -> frozenset[str]:
    return frozenset(text.split())


NAMES_A_PERSON = _list(
    "account alias birthname cookie cpr displayname drivers email familyname fax fingerprint "
    "firstname fname forename fullname givenname guid handle iban image imei initials ip lastname "
    "licence license lname login maidenname mail medicaid medicare middlename mname mobile mrn "
    "nhs nickname nin nino passport passwd password phone photo picture plate rowguid signature "
    "ssn surname tel telephone token url username uuid vin"
)
DESCRIBES_A_PERSON = _list(
    "admission age birth birthdate birthday birthplace birthyear born branch canton citizenship "
    "city class country county date dateofbirth deathdate department dept discharge district dob "
    "education employer ethnic ethnicity fips gender height hire hispanic hospital job language "
    "lat latitude lng location lon longitude marital married municipality nationality native "
    "occupation organization payer plz postal postalcode postcode profession province race region "
    "relationship religion school sex shop state store town ward weight work workclass year yr "
    "zip zipcode"
)
PLACES_A_PERSON = _list("address id key name names nr street")
HARMS_A_PERSON = _list(
    "allergy cause chapter charge comorbidity condition conviction cpt crime death debt diagnoses "
    "diagnosis disability disease disorder drug dx finding hiv icd illness immunization income "
    "loinc medication offence offense orientation pregnancy pregnant prescription procedure "
    "reasoncode reasondescription recid recidivism salary sentence snomed symptom treatment "
    "verdict wage"
)
MEASURES_A_PERSON = _list(
    "amount balance bonus claim commission cost decile expense expenses fee gpa premium price "
    "rate score"
)
_PLACES = _list("coordinates lat latitude lng lon longitude")
_OF_BIRTH = _list("birth birthdate birthday birthyear born dateofbirth dob")
_POSTCODES = _list("plz postal postalcode postcode zip zipcode")
_SEEN_OF_A_PERSON = _list("age ethnicity gender race sex")
_OF_NAMES = _list(
    "family first full given initial last maiden middle name names nick nm prefix suffix"
)
_TELLS_ROWS_APART = _list("id identifier key nbr no nr num number ref")
_HARM_LISTED = _list(
    "allergies careplans claims conditions diagnoses diagnosis encounters immunizations "
    "medications observations prescriptions procedures treatments visits"
)
_SAYS_WHICH = _list("code description reason result value")

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


def parts(name: str) -> tuple[str, ...]:
    """Split a name at case, digits and punctuation."""
    return tuple(word.lower() for word in _WORD.findall(name))


def words(name: str) -> frozenset[str]:
    """Return the words of a name; also all of it in one word."""
    found = parts(name)
    return frozenset([*found, "".join(found)])


def is_anybody(person: str) -> bool:
    """Whether a word for a person says nothing of what they are."""
    return person in _ANYBODY


def person_listed(table: str) -> str | None:
    """Return the word for a person if that is what each row of a table of that name is.

    ``patients`` and ``hospital_patients``, not ``patient_visits``.
    """
    found = parts(table)
    return _person(found[-1]) if found else None


def person_numbered(column: str) -> str | None:
    """Return the word for a person whose number a column of that name holds.

    The name is one such word, or one of a number that only persons have, with words for a number:
    ``patient_no``, ``PersonID``, ``ssn``, not ``patient_type``.
    """
    left = [p for p in parts(column) if len(p) > 1 and p not in _NUMBER | _SAYS_LITTLE]
    if len(left) != 1:
        return None
    stems = [left[0], *(left[0].removesuffix(ending) for ending in _ENDINGS)]
    if _ONLY_PERSONS_HAVE.intersection(stems):
        return "person"
    return next((person for stem in stems if (person := _person(stem))), None)


def names_a_place(column: str) -> bool:
    """Whether a name says where something is."""
    return bool(words(column) & _PLACES)


def is_known(column: str, *, insensitive: bool) -> bool:
    """Whether a name says what everybody knows of those whom they know.

    insensitive: or what can be seen of anybody, and may yet be called sensitive.
    """
    known = _OF_BIRTH | _POSTCODES | (_SEEN_OF_A_PERSON if insensitive else frozenset())
    return bool(words(column) & known)


def is_postcode(column: str) -> bool:
    """Whether a name says where mail is brought."""
    return bool(words(column) & _POSTCODES)


def is_of_birth(column: str) -> bool:
    """Whether a name says when somebody was born."""
    return bool(words(column) & _OF_BIRTH)


def is_of_names(column: str) -> bool:
    """Whether a name says a part of somebody's name and nothing else, as ``maiden`` does."""
    found = [part for part in parts(column) if len(part) > 1]
    return bool(found) and _OF_NAMES.issuperset(found)


def tells_rows_apart(column: str) -> bool:
    """Whether a name ends like that of a key, and not only with a code."""
    found = parts(column)
    return bool(found) and found[-1] in _TELLS_ROWS_APART


def says_which_harm(column: str, table: str) -> bool:
    """Whether a column says which illness, drug or test it is that a row of the table is about."""
    return bool(words(column) & _SAYS_WHICH and words(table) & _HARM_LISTED)


def is_number(column: str) -> bool:
    """Whether the name of a column ends like that of a number or a key."""
    found = parts(column)
    return bool(found) and found[-1] in _NUMBER


def _person(word: str) -> str | None:
    for form in (word, word.removesuffix("s"), _OTHER_FORMS.get(word)):
        if form in _PERSONS:
            return form
    return None
