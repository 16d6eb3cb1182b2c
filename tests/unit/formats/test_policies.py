import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbanon.domain.errors import PolicyError
from dbanon.domain.policy import PERIODS, ColumnRule, ModelSpec, Policy, Role
from dbanon.domain.table import TableName
from dbanon.formats.policies import Known, dump, from_document, parse, to_document

HOSTILE = st.sampled_from(['a"b', "a.b", "a b", "a\nb", "é", "''", "\\", "columns", "]", "\x1b[0m"])
NAMES = HOSTILE | st.text(min_size=1, max_size=8).filter(lambda text: "\x00" not in text)
TEXTS = st.lists(NAMES, min_size=1, max_size=3).map(tuple)
POSITIVE = st.floats(min_value=0, exclude_min=True, allow_infinity=False)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
INTEGERS = st.integers(1 - 2**63, 2**63 - 1)


@st.composite
def rules(draw, column):
    role = draw(st.sampled_from(Role))
    allow = draw(st.sampled_from([(), ("near-unique: a\n", "unique-index:b")]))
    if role is not Role.QUASI:
        return ColumnRule(column, role, allow=allow)
    return ColumnRule(
        column,
        role,
        recoding=draw(st.none() | NAMES),
        taxonomy=draw(st.none() | NAMES),
        weight=draw(POSITIVE),
        snap=draw(st.none() | POSITIVE),
        digits=draw(st.none() | st.integers(0, 20)),
        at_least=draw(st.none() | st.integers(1, 20) | st.sampled_from(PERIODS)),
        bands=draw(st.none() | POSITIVE),
        top=draw(st.none() | FINITE),
        bottom=draw(st.none() | FINITE),
        keep=draw(st.booleans()),
        rare=draw(st.none() | st.just("suppress")),
        pooled=draw(st.none() | TEXTS),
        order=draw(st.none() | st.lists(NAMES | st.just(""), min_size=1, unique=True).map(tuple)),
        allow=allow,
    )


@st.composite
def policies(draw):
    columns = draw(st.lists(NAMES, min_size=1, max_size=6, unique=True))
    level = st.integers(1, 1000)
    models = draw(
        st.permutations(
            [
                ModelSpec("k-anonymity", {"k": draw(level)}),
                ModelSpec("l-diversity", {"l": draw(level)}),
                ModelSpec("t-closeness", {"t": draw(st.floats(0, 1)), "distance": "ordered"}),
                ModelSpec("entropy-l-diversity", {"l": draw(level), "columns": draw(TEXTS)}),
                ModelSpec(draw(NAMES.map("x{}".format)), {"p": draw(level), "q": draw(level)}),
            ]
        )
    )
    values = st.booleans() | INTEGERS | st.floats(allow_nan=False, allow_infinity=False) | NAMES
    return Policy(
        table=TableName(draw(st.none() | NAMES), draw(NAMES)),
        columns=tuple(draw(rules(column)) for column in columns),
        models=tuple(models[: draw(st.integers(0, 5))]),
        algorithm=draw(NAMES),
        params=draw(st.dictionaries(NAMES, values, max_size=4)),
        subject=draw(st.none() | NAMES),
        population=draw(st.none() | st.builds(TableName, NAMES, NAMES)),
        max_suppressed=draw(st.floats(0, 1, exclude_max=True)),
        block=draw(st.none() | st.integers(1, 2**40)),
        class_label=draw(st.none() | NAMES),
        allow=draw(st.sampled_from([(), ('k-of-one: why: "so"', "no-diversity:x")])),
        rest=draw(st.none() | st.just("drop")),
        erase_within=draw(st.none() | st.integers(1, 9999).map("{}d".format)),
        budget=draw(st.none() | st.floats(1e-6, 1e6)),
        pseudonym=draw(st.none() | NAMES),
        name=draw(st.from_regex(r"[a-z][a-z0-9_-]{0,39}", fullmatch=True)),
    )


def problems_of(read):
    with pytest.raises(PolicyError) as caught:
        read()
    return [line.strip() for line in str(caught.value).splitlines()[1:]]


@pytest.mark.exhaustive
@given(policies())
def test_toml_gives_the_policy_back(policy):
    again = parse(dump(policy))
    assert policy == again
    assert policy.columns == again.columns
    assert list(policy.params) == list(again.params)


@pytest.mark.exhaustive
@given(policies())
def test_a_document_gives_the_policy_back_even_when_keys_are_sorted(policy):
    stored = json.loads(json.dumps(to_document(policy), sort_keys=True, allow_nan=False))
    assert policy == from_document(stored)


def test_a_policy_reads_like_this():
    policy = Policy(
        TableName("public", "patients"),
        (
            ColumnRule("patient_id", Role.IDENTIFIER),
            ColumnRule("age", Role.QUASI, recoding="interval", snap=5.0, weight=0.5),
        ),
        models=(ModelSpec("k-anonymity", {"k": 5}), ModelSpec("l-diversity", {"l": 3})),
        subject="patient_id",
        max_suppressed=0.01,
        params={"strict": True},
    )
    expected = """\
table = "public.patients"
algorithm = "auto"
subject = "patient_id"
max_suppressed = 0.01

[models]
k = 5
l = 3

[params]
strict = true

[columns.patient_id]
role = "identifier"

[columns.age]
role = "quasi"
recoding = "interval"
weight = 0.5
snap = 5
"""
    assert expected == dump(policy)
    assert policy == parse("\ufeff" + expected)


def test_what_is_not_said_has_its_default():
    policy = parse('table = "t"\n[columns.a]\nrole = "quasi"')
    assert Policy(TableName(None, "t"), (ColumnRule("a", Role.QUASI),)) == policy


WRONG = """
table = "a.b.c"
algoritm = "mondrian"
algorithm = "mondrain"
max_suppressed = 1
subject = 5
[models]
k = true
l = 0
tt = 1
[models.l-diversity]
l = 2
m = 3
[params]
far = inf
many = [1]
fine = true
[columns.age]
role = "Quasi"
recodin = "interval"
[columns.height]
role = "quasi"
recoding = "intervl"
weight = 0
snap = -1
digits = -1
[columns."a b\\n"]
recoding = "mean"
weight = nan
snap = true
digits = 1.5
[columns.name]
role = "identifier"
taxonomy = "t"
"""


def test_every_problem_is_told_at_once_with_the_path_of_its_key():
    assert [
        "models.tt: unknown key; did you mean t?",
        "table: 'a.b.c' is not a table name: write name or schema.name",
        "algorithm: is none of mdav, mondrian; did you mean mondrian?",
        "subject: must be a string, found an integer",
        "max_suppressed: must be at least 0 and less than 1",
        "params.far: must be a finite number",
        "params.many: must be a string, found a list",
        "models.k: must be an integer",
        "models.l: must be at least 1 and at most 2147483647",
        "models.l-diversity.m: unknown key; l-diversity takes l, columns, multi",
        f"columns.age.role: is none of {', '.join(sorted(Role))}; did you mean quasi?",
        "columns.age.recodin: unknown key; did you mean recoding?",
        "columns.height.recoding: is none of interval, mean; did you mean interval?",
        "columns.height.weight: must be a finite number greater than 0",
        "columns.height.snap: must be a finite number greater than 0",
        "columns.height.digits: must be at least 0, and less than 2^63",
        'columns."a b\\n".role: is missing',
        'columns."a b\\n".weight: must be a finite number greater than 0',
        'columns."a b\\n".snap: must be a number, found a boolean',
        'columns."a b\\n".digits: must be an integer, found a number',
        "columns.name.taxonomy: only a quasi-identifier is recoded",
        "models.l-diversity: is described 2 times",
        "algoritm: unknown key; did you mean algorithm?",
    ] == problems_of(
        lambda: parse(WRONG, Known(algorithms={"mondrian", "mdav"}, recodings={"interval", "mean"}))
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "table: is missing"),
        ("", "columns: is missing"),
        ('table = "t"\n[columns]', "columns: names no column"),
        ('table = "t"\n[columns]\na = "quasi"', "columns.a: must be a table, found a string"),
        ('table = "t"\n[columns.""]\nrole = "quasi"', 'columns."": not the name of a column'),
        ('table = ""', "table: is empty or holds a NUL character"),
        ('subject = "\\u0000"', "subject: is empty or holds a NUL character"),
        ("subject = 2020-01-01", "subject: must be a string, found a date or time"),
        ('population = "people"', "population: must name its schema, as in public.people"),
        ("population = 5", "population: must be a string, found an integer"),
        ("[models.k-map]\nk = 0", "models.k-map.k: must be at least 1 and at most 2147483647"),
        (
            "[models.delta-presence]\ndmin = 0.5\ndmax = 0.1",
            "models.delta-presence.dmin: is greater than dmax",
        ),
        (
            '[models.x-y-anonymity]\nk = 2\nx = ["a"]\ny = ["a"]',
            "models.x-y-anonymity.y: shares a column with x",
        ),
        ("block = 0", "block: must be at least 1, and less than 2^63"),
        ("block = 1.5", "block: must be an integer, found a number"),
        ("max_suppressed = -0.1", "max_suppressed: must be at least 0 and less than 1"),
        (f"max_suppressed = {10**400}", "max_suppressed: is too large"),
        ("params = 5", "params: must be a table, found an integer"),
        ("[params]\na = [1]", "params.a: must be a string, found a list"),
        ("models = 5", "models: must be a table, found an integer"),
        ("[models.k-anonymity]\nl = 2", "models.k-anonymity.l: unknown key; k-anonymity takes k"),
        ("[models.k-anonymity]\nl = 2", "models.k-anonymity.k: is missing"),
        ("[models.t-closeness]\nt = '1'", "models.t-closeness.t: must be a number"),
        (
            "[models.l-diversity]\nl = 2\ncolumns = [1]",
            "models.l-diversity.columns: must be a list of strings",
        ),
        (
            "[models.l-diversty]\nl = 2",
            "models.l-diversty: unknown model; did you mean l-diversity?",
        ),
        ("[models]\nkk = 5", "models.kk: unknown key; did you mean k?"),
    ],
)
def test_a_wrong_key_is_told(text, problem):
    models = {"k-anonymity", "l-diversity"}
    assert problem in problems_of(lambda: parse(text, Known(models=models)))


@pytest.mark.parametrize(
    "text",
    [
        "table =",
        "[columns.a]\n[columns.a]",
        "x = " + "[" * sys.getrecursionlimit() * 2,
        "x = " + "9" * 5000,
    ],
)
def test_what_is_not_toml_is_refused(text):
    with pytest.raises(PolicyError, match=r"not valid TOML|nested too deeply"):
        parse(text)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"columns": []}, "columns: names no column"),
        ({"columns": {}}, "columns: must be a list of tables"),
        ({"columns": [{"role": "quasi"}]}, "columns[0].column: is missing"),
        (
            {"columns": [{"column": "a", "role": "quasi"}, {"column": "a", "role": "identifier"}]},
            "columns.a: is described 2 times",
        ),
        ({"models": [{"params": {"k": 2}}]}, "models[0].name: is missing"),
        (
            {"models": [{"name": "k-anonymity", "params": {"k": 0}}]},
            "models[0].params.k: must be at least 1 and at most 2147483647",
        ),
        (
            {"models": [{"name": "x", "parms": {}}]},
            "models[0].parms: unknown key; did you mean params?",
        ),
        ({"subject": None}, "subject: must not be null"),
        ({"version": 2}, "version: unknown key"),
    ],
)
def test_a_stored_document_is_not_trusted(change, problem):
    document = to_document(Policy(TableName(None, "t"), (ColumnRule("a", Role.QUASI),)))
    assert problem in problems_of(lambda: from_document(document | change))


@pytest.mark.parametrize("key", ["mask", "masking"])
def test_a_column_that_is_to_be_masked_is_pointed_to_the_steps(key):
    text = f'table = "t"\n[columns]\nage = {{ role = "quasi", {key} = "noise" }}\n'
    with pytest.raises(PolicyError) as caught:
        parse(text)
    said = f"columns.age.{key}: is no key of a column: a masking step is a table [[masking]]"
    assert said in str(caught.value)
    assert "unknown key" not in str(caught.value)
