"""Every warning that a command prints is one line of at most 100 characters, with its code."""

import ast
from pathlib import Path

import pytest

import dbanon
from dbanon.db.rights import Reach
from dbanon.domain.notices import NOTICES, Notice, Topic
from dbanon.domain.policy import ColumnRule, MaskingStep, ModelSpec, Policy, Role
from dbanon.domain.policy_warning import EXPLANATIONS, Code, Contents, PolicyWarning
from dbanon.domain.release import Against, CellResult, CheckResult, Composition, Exposure, Verdict
from dbanon.domain.table import ColumnInfo, ColumnKind, TableInfo, TableName
from dbanon.formats.policy_warnings import _LOOKS, _about, policy_warnings, repeated, unknown
from dbanon.formats.suggestions import Persons

TABLE, PEOPLE = TableName("public", "hospital_visits"), TableName("public", "hospital_persons")
LONG, ZIP, WARD = "admission_source_id", "residence_postalcode", "department_of_origin"
MANY = 1_017_660
RULE = ColumnRule(LONG, Role.INSENSITIVE)
K1, L1, L3 = (
    ModelSpec("k-anonymity", {"k": 1}),
    ModelSpec("l-diversity", {"l": 1}),
    ModelSpec("l-diversity", {"l": 3}),
)
PERSONS = Persons(LONG, "its name", is_sure=True, n_rows=MANY, n_values=101_766)


def policy(*rules, models=(L3,), table=TABLE, **more):
    return Policy(table, rules, models, **more)


def of_table(*rules, models=(L3,), **more):
    info = TableInfo(
        1,
        TABLE,
        "r",
        tuple(ColumnInfo(r.column, "text", "text", ColumnKind.CATEGORY) for r in rules),
        ("id",),
    )
    facts = {name: more.pop(name) for name in ("persons", "rows") if name in more}
    return policy_warnings(
        policy(*rules, models=models, **more),
        info,
        contents={LONG: Contents(MANY, MANY, MANY)},
        unique=[(LONG,), (LONG, ZIP, WARD)],
        complete=True,
        **facts,
    )


def of_policies():
    """Yield a warning of each code, with long names and large figures."""
    sensitive = [ColumnRule(name, Role.SENSITIVE) for name in (LONG, ZIP, WARD, "diagnosis")]
    years = [str(i % 60) for i in range(200)]
    yield from of_table(*sensitive, models=(K1, L1))
    yield from of_table(*sensitive, persons=PERSONS)
    yield from of_table(*sensitive, persons=Persons(LONG, "its name", is_sure=False))
    yield from of_table(
        RULE,
        *(ColumnRule(name, Role.QUASI) for name in (ZIP, WARD, "diagnosis")),
        rows=dict.fromkeys((LONG, ZIP, WARD, "diagnosis"), years),
    )
    yield from of_table(ColumnRule("patient_email_address", Role.INSENSITIVE))
    yield from of_table(ColumnRule(ZIP, Role.QUASI), anatomy=True, pseudonym=LONG)
    listed = ModelSpec("listed-alpha-k-anonymity", {"alpha": 0.2, "listed": ("a", "b")})
    yield from unknown(policy(*sensitive, models=(listed,)), {name: ["c"] for name in (LONG, ZIP)})
    other = policy(ColumnRule(LONG, Role.SENSITIVE), table=PEOPLE)
    yield from repeated(policy(RULE), [other])
    yield from (_about(RULE, code, why) for code, why in _LOOKS.items())
    masked = policy(RULE, masking=(MaskingStep("individual-ranking", (LONG,), {}),))
    from dbanon.formats.policy_warnings import _of_masking, _of_values

    yield from _of_masking(RULE, masked)
    yield from _of_values(RULE, Contents(MANY, MANY), is_key=False)
    reason = f'column {LONG} is new: rest = "drop" leaves it out'
    yield PolicyWarning(Code.NEW_COLUMN, LONG, reason)
    reason = f"version {MANY} of policy default of {TABLE} is not approved"
    yield PolicyWarning(Code.NOT_APPROVED, None, reason)
    reason = f"options change the approved policy default of {TABLE}"
    yield PolicyWarning(Code.NOT_APPROVED, None, reason)


def of_releases():
    """Yield a warning of each topic that a comparison of releases has."""
    numbers = (101, 102, 103, 104)
    failed = CheckResult("l-diversity", LONG, 3, 1, MANY, MANY, MANY, Verdict.FAILED)
    small = CheckResult("k-anonymity", None, 10, 4, 9, 0, MANY, Verdict.PASSED)
    pair = Against(101, PEOPLE, MANY, MANY, 10, 1, MANY, (Exposure(LONG, 10, MANY, MANY),))
    for listed in (numbers, numbers[:3]):
        found = [CellResult(101, PEOPLE, failed)]
        yield from Composition(
            TABLE, MANY, listed, listed, tuple(found), (pair,), altered=listed
        ).warnings
        yield from Composition(TABLE, MANY, listed, listed, (), (), live=listed).warnings
    cells = (CellResult(101, PEOPLE, small),)
    yield Composition(TABLE, MANY, numbers, (), cells, (), small=MANY).note


def of_commands():
    """Yield a warning as each command builds it."""
    yield Notice(
        Topic.STALE_VALUES, f"anon.{TABLE.name}: 12.3% of rows show former values;"
        " max_stale is 0.05"
    )  # fmt: skip
    pools = f"a refresh publishes new persons by pools of {MANY:,} (10% of rows)"
    yield Notice(Topic.SLOW_REFRESH, pools)
    yield Notice(Topic.TIME_LIMIT, "singling out, linkability and inference: left out")
    yield Reach(LONG, LONG, "sign", "public", LONG).notice
    yield Notice(Topic.REMAINING_ACCESS, f"{LONG} keeps USAGE on anon, for anon.{TABLE.name}")
    yield Notice(Topic.REMAINING_ACCESS, f"{LONG} can still read anon.{TABLE.name}")
    yield Notice(Topic.SET_ASIDE, f"relations that depend on {PEOPLE} are empty from now on")
    yield Notice(Topic.DAMAGED, "the column dbanon.history.relation_schema is gone")
    yield Notice(
        Topic.DAMAGED, f"counts of {TABLE} are refused: dbanon.spending lost their amounts"
    )
    yield Notice(Topic.DAMAGED, f"anon.{TABLE.name} is served, but not in the ledger")
    yield Notice(Topic.DAMAGED, f"the spent budget of {TABLE} is lost: restore dbanon.spending")
    yield Notice(Topic.DAMAGED, f"anon.{TABLE.name} is served, but not in the ledger")
    grant = f"GRANT TEMPORARY ON DATABASE {LONG} TO {LONG}"
    yield Notice(Topic.MISSING_RIGHT, grant)


ALL = [*of_policies(), *of_releases(), *of_commands()]


@pytest.mark.parametrize("found", ALL, ids=[f"{i}-{str(one)[-30:]}" for i, one in enumerate(ALL)])
def test_a_warning_is_a_line_of_at_most_100_characters(found):
    line = f"warning: {found}"
    assert "\n" not in line
    assert len(line) <= 100, line


def test_each_code_is_tried_and_explained():
    tried = {getattr(one, "code", None) or one.topic for one in ALL}
    assert tried == {*Code, *Topic} == {*EXPLANATIONS, *NOTICES}


def test_one_function_prints_all_warnings():
    root = Path(dbanon.__file__).parent
    printing = [
        str(path.relative_to(root))
        for path in root.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and str(node.value).startswith("warning: ")
    ]
    # The other tells that the output itself is lost.
    assert sorted(printing) == ["cli/__init__.py", "cli/terminal/console.py"]
