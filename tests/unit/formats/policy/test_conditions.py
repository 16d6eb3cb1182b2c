import json
from dataclasses import replace

import pytest

from dbanon.domain.errors import PolicyError
from dbanon.domain.policy import Comparison, Condition
from dbanon.domain.table import ColumnInfo, ColumnKind, TableInfo, TableName
from dbanon.formats.policies import condition_violations, dump, from_document, parse, to_document

COLUMN = '\n[columns.age]\nrole = "quasi"\n'


def read(text):
    return parse(f'table = "t"\nwhere = [{text}]\n{COLUMN}')


def problems_of(text):
    with pytest.raises(PolicyError) as caught:
        read(text)
    return [line.strip() for line in str(caught.value).splitlines()[1:]]


def test_conditions_read_like_this_and_are_given_back():
    policy = read(
        '{ column = "age", is = ">=", value = 18 },'
        '{ column = "born", is = "<", value = 2000-01-01 },'
        '{ column = "ward", is = "in", value = ["A", ""] },'
        '{ column = "x y", is = "is not null" },'
        '{ column = "age", is = "between", value = [1.5, 90] },'
        '{ column = "b", is = "=", value = true }'
    )
    assert (
        Condition("age", Comparison.AT_LEAST, 18),
        Condition("born", Comparison.BELOW, "2000-01-01"),
        Condition("ward", Comparison.IN, ("A", "")),
        Condition("x y", Comparison.IS_NOT_NULL),
        Condition("age", Comparison.BETWEEN, (1.5, 90)),
        Condition("b", Comparison.EQUAL, True),  # noqa: FBT003 - a value like the others
    ) == policy.where
    assert policy == parse(dump(policy))
    assert policy == from_document(json.loads(json.dumps(to_document(policy))))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{ column = "age" }', "where[0].is: is missing"),
        ('{ is = "is null" }', "where[0].column: is missing"),
        ('{ column = "age", is = "~", value = "1" }', "where[0].is: is none of"),
        ('{ column = "age", is = "= 1 OR 1", value = 1 }', "where[0].is: is none of"),
        ('{ column = "age", is = "=" }', "where[0].value: is missing"),
        ('{ column = "age", is = "=", value = [1] }', "where[0].value: must be a string"),
        ('{ column = "age", is = "<", value = inf }', "where[0].value: must be a finite number"),
        ('{ column = "age", is = "in", value = [] }', "where[0].value: in takes a list"),
        ('{ column = "age", is = "in", value = 1 }', "where[0].value: in takes a list"),
        ('{ column = "age", is = "between", value = [1] }', "between takes two values"),
        ('{ column = "age", is = "is null", value = 1 }', "where[0].value: is null takes none"),
        ('{ column = "age", is = "=", value = 1, or = 2 }', "where[0].or: unknown key"),
        ("", "where: is empty"),
    ],
)
def test_what_is_no_condition_is_refused_by_its_path(text, problem):
    assert any(problem in found for found in problems_of(text)), problems_of(text)


def column(name, kind, base, **changes):
    return ColumnInfo(name, base, base, kind, **changes)


INFO = TableInfo(
    1,
    TableName("public", "t"),
    "r",
    (
        column("age", ColumnKind.INTEGER, "int4"),
        column("born", ColumnKind.DATE, "date"),
        column("seen", ColumnKind.TIMESTAMPTZ, "timestamptz"),
        column("left", ColumnKind.TIMESTAMP, "timestamp"),
        column("ward", ColumnKind.CATEGORY, "text"),
        column("alive", ColumnKind.BOOLEAN, "bool"),
        column("notes", ColumnKind.OTHER, "jsonb"),
        column("mood", ColumnKind.OTHER, "mood", user_defined=True),
    ),
    primary_key=(),
)


@pytest.mark.parametrize(
    "text",
    [
        '{ column = "age", is = "=", value = "18" }',
        '{ column = "age", is = "in", value = [18, true] }',
        '{ column = "born", is = "<", value = "yesterday" }',
        '{ column = "born", is = "<", value = "2020-W01-1" }',
        '{ column = "born", is = "<", value = 2000 }',
        '{ column = "seen", is = "<", value = 2020-01-01T00:00:00 }',
        '{ column = "left", is = "<", value = 2020-01-01T00:00:00Z }',
        '{ column = "ward", is = "<", value = "B" }',
        '{ column = "ward", is = "=", value = 1 }',
        '{ column = "alive", is = "=", value = "true" }',
        '{ column = "notes", is = "=", value = "{}" }',
        '{ column = "mood", is = "is null" }',
        '{ column = "agee", is = "is null" }',
    ],
)
def test_a_condition_that_no_value_of_the_column_could_be_asked_is_refused(text):
    (found,) = condition_violations(read(text), INFO)
    assert found.startswith("where: column ")


def test_conditions_that_fit():
    policy = read(
        '{ column = "age", is = "<", value = 18.5 },'
        '{ column = "born", is = "=", value = 2020-01-31 },'
        '{ column = "seen", is = "<", value = 2020-01-01T00:00:00+01:00 },'
        '{ column = "left", is = ">", value = 2020-01-01 },'
        '{ column = "alive", is = "=", value = false },'
        '{ column = "ward", is = "<>", value = "B" },'
        '{ column = "notes", is = "is null" }'
    )
    assert [] == list(condition_violations(policy, INFO))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), "a\x00b"])
@pytest.mark.parametrize("name", ["age", "share", "ward"])
def test_what_no_document_can_hold_is_refused_in_words_of_its_own(name, value):
    columns = (
        column("age", ColumnKind.INTEGER, "int4"),
        column("share", ColumnKind.FLOAT, "float8"),
        column("ward", ColumnKind.CATEGORY, "text"),
    )
    info = TableInfo(1, TableName("public", "t"), "r", columns, primary_key=())
    policy = replace(read('{column = "age", is = "=", value = 1}'), where=())
    for condition in (
        Condition(name, Comparison.EQUAL, value),
        Condition(name, Comparison.IN, ("x", value)),
    ):
        (found,) = condition_violations(replace(policy, where=(condition,)), info)
        assert found == (
            f"where: column {name} is compared with NaN, an infinite number or a text with a NUL"
            " character"
        )
