import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbanon.domain.caution import Contents
from dbanon.domain.policy import ColumnRule, ModelSpec, Policy, Role
from dbanon.domain.table import ColumnInfo, ColumnKind, TableInfo, TableName
from dbanon.formats.cautions import alike, cautions

TABLE = TableName("public", "people")
K5, L3 = ModelSpec("k-anonymity", {"k": 5}), ModelSpec("l-diversity", {"l": 3})


def found(roles, *models, contents=None, unique=(), complete=True, comments=None):
    """Return (column, message) of every caution about columns of the given roles."""
    columns = tuple(
        ColumnInfo(name, "text", "text", ColumnKind.CATEGORY, comment=(comments or {}).get(name))
        for name in roles
    )
    info = TableInfo(1, TABLE, "r", columns, ("id",))
    rules = tuple(ColumnRule(name, Role(role)) for name, role in roles.items())
    policy = Policy(TABLE, rules, models or (K5, L3))
    given_ = cautions(policy, info, contents=contents or {}, unique=unique, complete=complete)
    assert all(caution.hint for caution in given_)
    return [(caution.column, caution.message) for caution in given_]


PLAIN = {"id": "identifier", "age": "quasi", "disease": "sensitive", "ward": "insensitive"}


def test_an_ordinary_policy_is_let_pass():
    contents = {"disease": Contents(100, 7), "ward": Contents(100, 89)}
    assert found(PLAIN, contents=contents, unique=[("id",), ("age", "ward")]) == []


@pytest.mark.parametrize(("column", "n"), [("ward", 90), ("ward", 100), ("disease", 100)])
def test_values_that_are_nearly_unique_are_told(column, n):
    ((named, message),) = found(PLAIN, contents={column: Contents(100, n)})
    assert named == column
    assert f"column {column} has a value of its own in nearly every row" in message
    assert ("l-diversity of it proves little" in message) is (column == "disease")


def test_a_column_that_is_empty_or_has_one_value_is_let_pass():
    assert found(PLAIN, contents={"ward": Contents(0, 0), "disease": Contents(1, 1)}) == []


def test_a_unique_index_is_told_once():
    contents = {"ward": Contents(100, 100)}
    ((named, message),) = found(PLAIN, contents=contents, unique=[("ward",)])
    assert (named, "has a UNIQUE index" in message) == ("ward", True)


def test_an_index_of_several_published_columns_is_told():
    ((named, message),) = found(PLAIN, unique=[("disease", "ward"), ("id", "ward")])
    assert named is None
    assert "columns disease, ward are published as they are" in message


@pytest.mark.parametrize("name", ["email", "PatientName", "home_address", "passport_no"])
def test_a_name_of_an_identifier_is_told(name):
    ((named, message),) = found({**PLAIN, name: "insensitive"})
    assert named == name
    assert "looks like an identifier" in message
    assert found({**PLAIN, name: "quasi"}) == []
    assert found({**PLAIN, name: "insensitive"}, comments={name: "dbanon: insensitive"}) == []


def test_the_name_of_a_disease_is_no_name():
    assert found({**PLAIN, "disease_name": "sensitive"}) == []


def test_k_and_l_of_one_are_told():
    one = [ModelSpec("k-anonymity", {"k": 1}), ModelSpec("l-diversity", {"l": 1})]
    texts = [message for _, message in found(PLAIN, *one)]
    assert [text.partition(" asks")[0].partition(":")[0] for text in texts] == ["k = 1", "l = 1"]
    (text,) = [message for _, message in found(PLAIN, K5)]
    assert text.startswith("no model is asked of disease")
    assert found(PLAIN, K5, complete=False) == []
    assert found(PLAIN, K5, ModelSpec("t-closeness", {"t": 0.2})) == []
    assert found({**PLAIN, "disease": "identifier"}, K5) == []


def test_values_that_are_written_in_several_ways_are_told_of_sensitive_columns():
    contents = {"disease": Contents(100, 7, 3), "ward": Contents(100, 7, 3)}
    ((named, message),) = found(PLAIN, contents=contents)
    assert named == "disease"
    assert message.startswith("3 values of sensitive column disease differ from another only in")


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
