from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbanon.domain.policy import ColumnRule, Role
from dbanon.domain.table import ColumnInfo, ColumnKind, ColumnStats, TableInfo, TableName
from dbanon.formats.policies import draft, parse
from dbanon.formats.policy_validation import floor_problems
from dbanon.formats.suggestions import propose, suggest

FEW = ColumnStats(1000, 0, 12)


def suggestion(name, kind=ColumnKind.CATEGORY, stats=FEW, *, key=(), **changes):
    column = ColumnInfo(name, kind.value, kind.value, kind, **changes)
    info = TableInfo(1, TableName("public", "t"), "r", (column,), primary_key=key)
    [(rule, reason)] = suggest(info, {} if stats is None else {name: stats})
    assert rule == ColumnRule(name, rule.role)
    assert reason
    return rule.role, reason


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("name", Role.IDENTIFIER),
        ("first_name", Role.IDENTIFIER),
        ("LastName", Role.IDENTIFIER),
        ("e_mail", Role.IDENTIFIER),
        ("patientPhone", Role.IDENTIFIER),
        ("SSN", Role.IDENTIFIER),
        ("home address", Role.IDENTIFIER),
        ("doctor_id", Role.QUASI),
        ("age", Role.QUASI),
        ("sex", Role.QUASI),
        ("birth_year", Role.QUASI),
        ("ZIP", Role.QUASI),
        ("postCode", Role.QUASI),
        ("native-country", Role.QUASI),
        ("country_name", Role.QUASI),
        ("marital-status", Role.QUASI),
        ("sample_yr", Role.QUASI),
        ("diagnosis", Role.SENSITIVE),
        ("icd10", Role.SENSITIVE),
        ("salary-class", Role.SENSITIVE),
        ("chapter", Role.SENSITIVE),
        ("usage", Role.QUASI),
        ("tournament", Role.QUASI),
        ("名前", Role.QUASI),
    ],
)
def test_a_name_tells_the_role(name, role):
    assert role == suggestion(name)[0]


def test_a_number_of_a_person_is_no_place_though_it_is_named_after_one():
    every_row = ColumnStats(1000, 0, 1000)
    assert Role.IDENTIFIER == suggestion("State ID", stats=every_row)[0]
    assert Role.QUASI == suggestion("state_id", stats=FEW)[0]
    assert Role.QUASI == suggestion("postcode", stats=every_row)[0]


@pytest.mark.parametrize("role", Role)
def test_a_comment_wins_over_everything(role):
    found = suggestion(
        "id", key=("id",), comment=f"The key. DBANON: {role.value.title()}; see wiki"
    )
    assert (role, "its comment says so") == found


def test_a_comment_that_says_something_else_is_no_role():
    assert suggestion("sex", comment="dbanon: quasimodo")[0] is Role.QUASI
    assert "its comment says so" != suggestion("sex", comment="dbanon: quasimodo")[1]


def test_keys_are_identifiers():
    assert suggestion("age", key=("age",)) == (Role.IDENTIFIER, "part of the key")
    assert suggestion("age", identity=True) == (Role.IDENTIFIER, "numbered by the database")


@pytest.mark.parametrize(
    "column",
    [
        {"kind": ColumnKind.OTHER},
        {"user_defined": True},
        {"has_equality": False},
    ],
)
def test_what_cannot_be_generalized_is_not_published(column):
    assert suggestion("diagnosis", **column)[0] is Role.IDENTIFIER


@pytest.mark.parametrize("kind", [ColumnKind.DATE, ColumnKind.TIMESTAMP, ColumnKind.TIMESTAMPTZ])
def test_dates_are_quasi_even_those_of_deaths(kind):
    assert suggestion("death", kind)[0] is Role.QUASI


def test_free_text_is_an_identifier_even_when_it_is_a_diagnosis():
    nearly_unique = ColumnStats(1000, 200, 780)
    assert suggestion("remarks", stats=nearly_unique)[0] is Role.IDENTIFIER
    assert suggestion("diagnosis", stats=nearly_unique)[0] is Role.IDENTIFIER
    assert suggestion("diagnosis", stats=ColumnStats(1000, 200, 700))[0] is Role.SENSITIVE


def test_numbers_that_all_differ_are_identifiers_and_others_quasi():
    assert suggestion("score", ColumnKind.INTEGER, ColumnStats(9, 1, 8))[0] is Role.IDENTIFIER
    assert suggestion("score", ColumnKind.INTEGER, ColumnStats(900, 0, 899))[0] is Role.QUASI
    assert suggestion("level", ColumnKind.FLOAT, ColumnStats(9, 0, 9))[0] is Role.QUASI


@pytest.mark.parametrize("stats", [None, ColumnStats(0, 0, 0), ColumnStats(5, 5, 0)])
def test_an_empty_or_uncounted_column_is_judged_by_name_and_type(stats):
    assert suggestion("colour", stats=stats)[0] is Role.QUASI


@given(
    st.text(min_size=1),
    st.sampled_from(ColumnKind),
    st.booleans(),
    st.builds(ColumnStats, st.integers(0, 99), st.integers(0, 99), st.integers(0, 99)),
)
def test_nothing_is_insensitive_unless_a_comment_says_so(name, kind, user_defined, stats):
    assert suggestion(name, kind, stats, user_defined=user_defined)[0] is not Role.INSENSITIVE


def test_a_draft_is_a_policy_that_gives_its_reasons():
    table = TableName("public", "t")
    suggested = [
        (ColumnRule("id", Role.IDENTIFIER), "part of the key"),
        (ColumnRule("a\n= b", Role.SENSITIVE), "its comment says so"),
    ]
    expected = """\
table = "public.t"

[models]
k = 5
l = 2

# part of the key
[columns.id]
role = "identifier"

# its comment says so
[columns."a\\n= b"]
role = "sensitive"
"""
    info = TableInfo(1, table, "r", (), primary_key=("id",))
    assert expected == draft(info, suggested)
    assert [rule for rule, _ in suggested] == list(parse(expected).columns)
    assert "l = " not in draft(info, suggested[:1])
    keyless = replace(info, primary_key=())
    assert 'key = [\n    "id",\n]' in draft(keyless, suggested, key=("id",))
    assert list(parse(draft(keyless, suggested)).columns) == list(parse(expected).columns)


def drafted(*columns):
    """Return the draft for columns of (name, kind), and the policy that it is."""
    found = tuple(ColumnInfo(name, kind.value, kind.value, kind) for name, kind in columns)
    info = TableInfo(1, TableName("public", "t"), "r", found, primary_key=())
    suggested = suggest(info, {})
    proposals = {
        rule.column: propose(info.column(rule.column), None)
        for rule, _ in suggested
        if rule.role is Role.QUASI
    }
    text = draft(info, suggested, proposals=proposals)
    policy = parse(text)
    live = {rule.column: rule.recoding for rule in policy.columns if rule.role is Role.QUASI}
    assert live == {name: proposal.recoding for name, proposal in proposals.items()}
    return text, policy


@pytest.mark.parametrize(
    ("name", "kind", "floor"),
    [
        ("zip", ColumnKind.CATEGORY, 3),
        ("PostCode", ColumnKind.CATEGORY, 3),
        ("dob", ColumnKind.DATE, "year"),
        ("birth_date", ColumnKind.TIMESTAMP, "year"),
        ("birth_year", ColumnKind.INTEGER, None),
        ("admitted", ColumnKind.DATE, None),
        ("city", ColumnKind.CATEGORY, None),
    ],
)
def test_what_finds_persons_by_itself_is_drafted_with_a_floor(name, kind, floor):
    text, policy = drafted((name, kind))
    assert [floor] == [rule.at_least for rule in policy.columns]
    assert (floor is not None) == ("; " in text)


@pytest.mark.parametrize("name", ["zip", "postal_code"])
def test_the_last_digits_of_a_postcode_that_is_a_number_are_drafted_away(name):
    text, policy = drafted((name, ColumnKind.INTEGER))
    (rule,) = policy.columns
    assert (None, 100) == (rule.at_least, rule.bands)
    assert "100 leaves 3 of 5 digits" in text
    assert [] == [*floor_problems(rule, ColumnKind.INTEGER, named="integer")]


def test_of_a_wide_table_what_is_not_named_is_left_out():
    wide = [(f"c{i}", ColumnKind.INTEGER) for i in range(26)]
    text, policy = drafted(*wide)
    assert ("drop", 26) == (policy.rest, len(policy.columns))
    assert "# 26 columns: what is not named is left out" in text
    assert drafted(*wide[:25])[1].rest is None


def roles(table, **columns):
    """Return the role of each column of 10,000 rows, from its type and its distinct values."""
    infos = tuple(ColumnInfo(n, k.value, k.value, k) for n, (k, _) in columns.items())
    info = TableInfo(1, TableName("public", table), "r", infos, primary_key=())
    stats = {name: ColumnStats(10_000, 0, count) for name, (_, count) in columns.items()}
    return {rule.column: rule.role for rule, _ in suggest(info, stats)}


def test_a_table_of_facts_has_sensitive_values_whatever_it_is_called():
    integer, text = ColumnKind.INTEGER, ColumnKind.CATEGORY
    columns = {"concept_id": (integer, 300), "value_coded": (integer, 200)}
    found = roles("facts", **columns, value_text=(text, 3000), site_type=(integer, 4))
    sensitive = {name for name, role in found.items() if role is Role.SENSITIVE}
    assert {"concept_id", "value_coded", "value_text"} == sensitive
    assert Role.SENSITIVE != roles("facts", **columns)["concept_id"]  # one value says nothing


@pytest.mark.parametrize("name", ["autism", "anxiety_level", "has_epilepsy", "smoker"])
def test_an_illness_that_few_words_name_is_sensitive(name):
    assert Role.SENSITIVE == suggestion(name, stats=FEW)[0]


@pytest.mark.parametrize("name", ["comments", "remark", "latitude"])
def test_written_texts_and_written_places_are_identifiers(name):
    assert Role.IDENTIFIER == suggestion(name, stats=ColumnStats(1000, 0, 700))[0]
    assert Role.QUASI == suggestion(name, stats=FEW)[0]


def test_an_outcome_that_refers_to_a_list_is_sensitive():
    found = roles("enrollments", outcome_concept_id=(ColumnKind.INTEGER, 5))
    assert {"outcome_concept_id": Role.SENSITIVE} == found
