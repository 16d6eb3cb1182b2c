from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbanon.domain.policy import ColumnRule, ModelSpec, Policy, Role
from dbanon.domain.policy_warning import Code, Contents
from dbanon.domain.table import ColumnInfo, ColumnKind, TableInfo, TableName
from dbanon.formats.policy_warnings import alike, flaws, policy_warnings, unknown
from dbanon.formats.suggestions import Persons, identifies

TABLE = TableName("public", "people")
K5, L3 = ModelSpec("k-anonymity", {"k": 5}), ModelSpec("l-diversity", {"l": 3})


def found(roles, *models, **seen):
    """Return (column, message) of every caution about columns of the given roles."""
    return [(caution.column, caution.message) for caution in told(roles, *models, **seen)]


def told(
    roles,
    *models,
    contents=None,
    unique=(),
    complete=True,
    comments=None,
    allowed=None,
    persons=None,
    rows=None,
    **said,
):
    """Return the warnings; allowed: by column, those that its rule allows; said: of a policy."""
    columns = tuple(
        ColumnInfo(name, "text", "text", ColumnKind.CATEGORY, comment=(comments or {}).get(name))
        for name in roles
    )
    info = TableInfo(1, TABLE, "r", columns, ("id",))
    rules = tuple(
        ColumnRule(name, Role(role), allow=(allowed or {}).get(name, ()))
        for name, role in roles.items()
    )
    policy = Policy(TABLE, rules, models or (K5, L3), **said)
    given_ = policy_warnings(
        policy,
        info,
        contents=contents or {},
        unique=unique,
        complete=complete,
        persons=persons,
        rows=rows,
    )
    assert all(caution.hint for caution in given_)
    assert all(caution.code.of_column is (caution.column is not None) for caution in given_)
    return given_


PLAIN = {"id": "identifier", "age": "quasi", "disease": "sensitive", "ward": "insensitive"}


def test_an_ordinary_policy_is_let_pass():
    contents = {"disease": Contents(100, 7), "ward": Contents(100, 89)}
    assert found(PLAIN, contents=contents, unique=[("id",), ("age", "ward")]) == []


@pytest.mark.parametrize(("column", "n"), [("ward", 90), ("ward", 100), ("disease", 100)])
def test_values_that_are_nearly_unique_are_told(column, n):
    ((named, message),) = found(PLAIN, contents={column: Contents(100, n)})
    assert named == column
    assert f"column {column} has nearly unique values" in message


def test_a_column_that_is_empty_or_has_one_value_is_let_pass():
    assert found(PLAIN, contents={"ward": Contents(0, 0), "disease": Contents(1, 1)}) == []


def test_a_unique_index_is_told_once():
    contents = {"ward": Contents(100, 100)}
    ((named, message),) = found(PLAIN, contents=contents, unique=[("ward",)])
    assert (named, "has a UNIQUE index" in message) == ("ward", True)


def test_an_index_of_several_published_columns_is_told():
    ((named, message),) = found(PLAIN, unique=[("disease", "ward"), ("id", "ward")])
    assert named is None
    assert message == "columns disease, ward are unique together"


@pytest.mark.parametrize("name", ["email", "PatientName", "home_address", "passport_no"])
def test_a_name_of_an_identifier_is_told(name):
    ((named, message),) = found({**PLAIN, name: "insensitive"})
    assert named == name
    assert "looks like an identifier" in message
    assert found({**PLAIN, name: "quasi"}) == []
    assert found({**PLAIN, name: "insensitive"}, comments={name: "dbanon: insensitive"}) == []


@pytest.mark.parametrize("base", ["uuid", "inet", "macaddr"])
def test_a_type_of_keys_and_of_machines_is_told(base):
    column = ColumnInfo("colour", base, base, ColumnKind.CATEGORY)
    info = TableInfo(1, TableName("public", "t"), "r", (column,), ())
    text = replace(info, columns=(replace(column, base_type="text"),))
    assert identifies(info, "colour") is not None
    assert identifies(text, "colour") is None


def test_a_part_of_the_key_that_is_published_as_it_is_is_told():
    (found_,) = told({**PLAIN, "id": "insensitive"})
    assert (found_.column, "it is part of the primary key" in found_.hint) == ("id", True)


def test_the_name_of_a_disease_is_no_name():
    assert found({**PLAIN, "disease_name": "sensitive"}) == []


def test_k_and_l_of_one_are_told():
    one = [ModelSpec("k-anonymity", {"k": 1}), ModelSpec("l-diversity", {"l": 1})]
    texts = [message for _, message in found(PLAIN, *one)]
    assert texts == ["k = 1: a class may be a single row", "l = 1 does not protect disease"]
    (text,) = [message for _, message in found(PLAIN, K5)]
    assert text == "no model protects disease"
    assert found(PLAIN, K5, complete=False) == []
    assert found(PLAIN, K5, ModelSpec("t-closeness", {"t": 0.2})) == []
    assert found({**PLAIN, "disease": "identifier"}, K5) == []


def test_values_that_are_written_in_several_ways_are_told_of_sensitive_columns():
    contents = {"disease": Contents(100, 7, 3), "ward": Contents(100, 7, 3)}
    ((named, message),) = found(PLAIN, contents=contents)
    assert named == "disease"
    assert message == "3 values of column disease differ only in spelling"


@pytest.mark.parametrize(
    "other",
    [
        *("HIV", " hiv", "hiv ", "hiv\t", "\u00a0hiv", "hiv\u2003", "h\u200biv", "\ufeffhiv"),
        *("\uff48\uff49\uff56", "h\u00adiv", "hIv\u3000"),
    ],
)
def test_spellings_of_one_value_are_alike(other):
    assert alike(["hiv", "flu", other]) == 2


@pytest.mark.parametrize(
    "pair", [("é", "e\u0301"), ("straße", "STRASSE"), ("a  b", "a b"), ("", " "), ("ﬁt", "FIT")]
)
def test_forms_of_one_text_are_alike(pair):
    assert alike(pair) == 2
    assert alike([*pair, "other"]) == 2


@pytest.mark.parametrize("pair", [("hiv", "hiv2"), ("ab", "a b"), ("é", "e"), ("1", "1.0")])
def test_other_values_are_not(pair):
    assert alike(pair) == 0


@given(st.text())
def test_a_text_is_like_itself_in_capitals_and_between_blanks(text):
    twins = {text, text.upper().lower(), f" {text}\n"}
    assert alike({text}) == 0
    assert alike(twins | {"\x00 else"}) >= 2


def test_a_reason_silences_one_warning_of_one_column():
    roles = {**PLAIN, "email": "insensitive", "fax": "insensitive"}
    contents = {"email": Contents(100, 100)}
    both = {Code.NEAR_UNIQUE, Code.LOOKS_LIKE_IDENTIFIER}
    codes = {(c.column, c.code) for c in told(roles, contents=contents)}
    assert codes == {*(("email", code) for code in both), ("fax", Code.LOOKS_LIKE_IDENTIFIER)}
    for code in both:
        allowed = {"email": (f" {code} : they are made up",)}
        left = {(c.column, c.code) for c in told(roles, contents=contents, allowed=allowed)}
        assert left == codes - {("email", code)}


def test_a_reason_beside_the_settings_silences_what_is_about_the_policy():
    one = ModelSpec("k-anonymity", {"k": 1})
    assert [caution.code for caution in told(PLAIN, one, L3)] == [Code.K_OF_ONE]
    assert told(PLAIN, one, L3, allow=("k-of-one: a test of readers",)) == []
    assert told(PLAIN, one, L3, allow=("no-diversity: of no matter here",)) != []


def test_anatomy_is_warned_of_until_somebody_means_it():
    (found,) = told(PLAIN, L3, anatomy=True)
    assert (found.code, found.column) == (Code.ANATOMY, None)
    assert "gives no k" in found.message
    assert told(PLAIN, L3, anatomy=True, allow=("anatomy: all know who is in it",)) == []


def test_without_a_reason_nothing_is_silenced():
    one = ModelSpec("k-anonymity", {"k": 1})
    for entry in ("k-of-one", "k-of-one:", "k-of-one: "):
        assert told(PLAIN, one, L3, allow=(entry,)) != []


@pytest.mark.parametrize(
    ("entries", "of_column", "expected"),
    [
        (["near-unique: a, b: c"], True, []),
        (["k-of-one: for a test"], False, []),
        (["near-uniqe: why"], True, ["names no warning that there is; did you mean near-unique?"]),
        (["near-unique"], True, ['gives no reason: "near-unique: why"']),
        (["near-unique: why"], False, ["near-unique is allowed by allow of the column that it is"]),
        (["k-of-one: why"], True, ["k-of-one is allowed by allow of the whole policy"]),
        (["near-unique: a", "near-unique: b"], True, ["allows near-unique 2 times"]),
    ],
)
def test_what_is_allowed_is_a_warning_that_there_is_with_a_reason(entries, of_column, expected):
    found = list(flaws(entries, of_column=of_column))
    assert len(found) == len(expected)
    assert all(map(str.startswith, found, expected))


@pytest.mark.parametrize("of_column", [True, False])
def test_an_unknown_warning_is_refused_with_those_that_there_are(of_column):
    (found,) = flaws(["zzz: why"], of_column=of_column)
    assert ("near-unique" in found) == of_column
    assert ("k-of-one" in found) != of_column


VISITORS = Persons(
    column="person_id",
    reason="named like the number of a person",
    is_sure=True,
    n_rows=8376,
    n_values=1152,
)


def test_persons_with_several_rows_and_no_subject_are_told_with_the_figure():
    roles = {**PLAIN, "person_id": "identifier"}
    for subject in (None, "id"):  # the key of the table, by which a row is a person, too
        (caution,) = told(roles, persons=VISITORS, subject=subject)
        assert (caution.code, caution.column) == (Code.NO_SUBJECT, None)
        assert caution.message.startswith("8,376 rows, 1,152 persons by column person_id: k counts")
        assert 'subject = "person_id"' in caution.hint
    assert told(roles, persons=VISITORS, subject="person_id") == []
    assert told(roles, persons=VISITORS, allow=("no-subject: a row is a visit",)) == []


def test_what_may_only_stand_for_persons_is_told_as_such():
    maybe = replace(VISITORS, is_sure=False)
    (caution,) = told({**PLAIN, "person_id": "identifier"}, persons=maybe)
    assert "8,376 rows, 1,152 values of column person_id" in caution.message


PHONES = [f"555-123-4{i:03}" for i in range(100)]
AGES = [str(20 + i % 50) for i in range(100)]


def test_values_that_look_like_those_of_an_identifier_are_told_and_never_shown():
    for column, role in (("disease", "sensitive"), ("ward", "insensitive")):
        (caution,) = told(PLAIN, rows={column: PHONES})
        assert (caution.code, caution.column) == (Code.LOOKS_LIKE_PHONE, column)
        assert f"{role} column {column} looks like telephone numbers" in caution.message
        assert "555" not in str(caution)
    assert told(PLAIN, rows={"age": PHONES, "id": PHONES}) == []


@pytest.mark.parametrize(
    ("name", "insensitive", "sensitive"),
    [
        ("home_lat", [Code.LOOKS_LIKE_COORDINATES], [Code.LOOKS_LIKE_COORDINATES]),
        ("dob", [Code.KNOWN_TO_OTHERS], [Code.KNOWN_TO_OTHERS]),
        ("ZIP", [Code.KNOWN_TO_OTHERS], [Code.KNOWN_TO_OTHERS]),
        ("race", [Code.KNOWN_TO_OTHERS], []),
        ("sex", [Code.KNOWN_TO_OTHERS], []),
        ("colour", [], []),
    ],
)
def test_names_of_what_others_know_are_told(name, insensitive, sensitive):
    assert [c.code for c in told({**PLAIN, name: "insensitive"})] == insensitive
    assert [c.code for c in told({**PLAIN, name: "sensitive"})] == sensitive
    assert told({**PLAIN, name: "quasi"}) == []


def test_a_column_from_which_a_quasi_identifier_follows_is_told():
    born = [str(2020 - int(age)) for age in AGES]
    (caution,) = told(PLAIN, rows={"age": AGES, "ward": born})
    assert (caution.code, caution.column) == (Code.DERIVED, "ward")
    assert "insensitive column ward determines age" in caution.message


def test_a_column_that_follows_from_a_quasi_identifier_is_told():
    groups = [age[0] for age in AGES]
    for column in ("ward", "disease"):
        (caution,) = told(PLAIN, rows={"age": AGES, column: groups})
        assert (caution.code, caution.column) == (Code.DERIVED, column)
        assert f"column {column} follows from age" in caution.message
    allowed = {"ward": ("derived: everybody may know the decade",)}
    assert told(PLAIN, rows={"age": AGES, "ward": groups}, allowed=allowed) == []


def test_listed_values_that_no_row_has_may_be_misspelled():
    spec = ModelSpec("listed-alpha-k-anonymity", {"alpha": 0.2, "listed": ("HIV", "cancre")})
    policy = Policy(TableName("public", "t"), (), models=(L3, spec))
    (caution,) = unknown(policy, {"disease": ["HIV", "flu"], "ward": ["A"]})
    assert (Code.UNKNOWN_VALUE, None) == (caution.code, caution.column)
    assert caution.message.startswith("1 listed values are in no row of disease")
    assert "cancre" not in str(caution)
    assert [] == [*unknown(policy, {"disease": ["HIV", "flu"], "ward": ["cancre"]})]
    meant = replace(policy, allow=("unknown-value: nobody has it yet",))
    assert [] == [*unknown(meant, {"disease": ["flu"]})]


def test_a_model_of_listed_values_is_no_diversity_of_the_others():
    spec = ModelSpec("listed-alpha-k-anonymity", {"alpha": 0.2, "listed": ("HIV",)})
    (caution,) = told({"disease": Role.SENSITIVE}, K5, spec)
    assert Code.NO_DIVERSITY == caution.code
    assert caution.message.startswith("only listed values are limited in disease")
    assert [] == told({"disease": Role.SENSITIVE}, K5, L3, spec)
