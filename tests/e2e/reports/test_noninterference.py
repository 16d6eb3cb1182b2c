"""No report depends on values of persons who are not in a release, if they are fewer than k."""

import json
import re

import numpy as np
import pytest

import dbanon
from dbanon.domain.policy import K_ANONYMITY, ColumnRule, ModelSpec, Policy, Role
from dbanon.domain.table import TableName

pytestmark = pytest.mark.one_server

TABLE = TableName("public", "clinic")
ROLES = {
    "outer_key": Role.IDENTIFIER,
    "age": Role.QUASI,
    "zip": Role.QUASI,
    "disease": Role.SENSITIVE,
    "wage": Role.SENSITIVE,
}
ROWS = 150
FRESH = {"new_series": True, "recipients_changed": True}


def make_clinic(database):
    """Publish a table without one person, whose quasi-identifiers no class covers.

    The key has the name of a column of what hashes it.
    """
    drawn = np.random.default_rng(3)
    wages, diseases = drawn.integers(20, 140, ROWS), drawn.choice([*"ABC"], ROWS, p=[0.6, 0.3, 0.1])
    columns = [drawn.integers(20, 50, ROWS), drawn.integers(1000, 1010, ROWS), diseases, wages]
    rows = zip(range(ROWS), *(column.tolist() for column in columns), strict=True)
    database.execute(
        "CREATE TABLE clinic (outer_key int PRIMARY KEY, age int, zip int, disease text, wage int)"
    )
    for row in [*rows, (1000, 99, 9999, "A", 30)]:
        database.execute("INSERT INTO clinic VALUES (%s, %s, %s, %s, %s)", row)
    rules = tuple(ColumnRule(*each) for each in ROLES.items())
    models = (ModelSpec(K_ANONYMITY, {"k": 5}),)
    policy = Policy(table=TABLE, columns=rules, models=models, max_suppressed=0.05)
    dbanon.set_policy(TABLE, policy, settings=database.settings)
    dbanon.publish(TABLE, settings=database.settings)


def change(database, number, values):
    database.execute(f"UPDATE clinic SET {values} WHERE outer_key IN ({number})")


VALUES = [
    "disease = 'A', wage = 900",
    "disease = 'B', wage = 19",
    "disease = 'C', wage = 100000",
    "disease = 'D', wage = 75",
]
ELSEWHERE = [f"age = {age}, zip = 9{age:03}, {VALUES[age % 4]}" for age in (81, 500)]
OF_THE_NEXT = (
    "wage = (SELECT wage FROM clinic AS c WHERE c.outer_key = 7 + (clinic.outer_key - 6) % 3)"
)
LIKE = "(age, zip) = (SELECT age, zip FROM clinic WHERE outer_key = {})"
AMONG_OTHERS = [f"age = 30, zip = 1003, {one}" for one in VALUES]
CASES = {
    "who is left out, and no class covers": (1000, [*VALUES[2:], *ELSEWHERE], True),
    "who is left out, and others hide": (1000, AMONG_OTHERS[2:], True),
    "who has other values now": (7, VALUES, False),
    "who is nowhere now": (7, ELSEWHERE, True),
    "who is elsewhere now": (7, [LIKE.format(one) for one in (21, 30)], False),
    "who have the values of each other": ("7, 8, 9", [OF_THE_NEXT] * 2, False),
}


@pytest.mark.parametrize("who", CASES)
def test_a_report_does_not_depend_on_the_values_of_one(copied, run, monkeypatch, who):
    database = copied(make_clinic)
    monkeypatch.setenv("DBANON_DSN", database.dsn)
    number, changes, is_told = CASES[who]
    found = []
    for values in changes:
        change(database, number, values)
        found.append(json.loads(run("report", "anon.clinic", "--json").out))
    if "no class covers" in who:
        database.execute("DELETE FROM clinic WHERE outer_key = 1000")
        found.append(json.loads(run("report", "anon.clinic", "--json").out))
    assert [found[0]] * len(found) == found
    utility = found[0]["utility"]
    assert is_told == bool(utility["queries"]) == bool(utility["classifications"])
    assert is_told != bool(utility["not_told"])
    assert is_told == any(one["column"] for one in found[0]["risk"]["attacks"])


@pytest.mark.parametrize("of", [[], ["--samples", "60"]])
def test_a_report_does_not_depend_on_where_rows_are_read(copied, run, monkeypatch, of):
    database = copied(make_clinic)
    monkeypatch.setenv("DBANON_DSN", database.dsn)
    found = [json.loads(run("report", "anon.clinic", "--json", *of).out)]
    change(database, "3, 60, 90", "wage = wage")
    database.execute("DELETE FROM clinic WHERE outer_key = 1000")
    found.append(json.loads(run("report", "anon.clinic", "--json", *of).out))
    database.execute("CREATE TABLE copied AS SELECT * FROM clinic; TRUNCATE clinic")
    database.execute("INSERT INTO clinic VALUES (1000, 99, 9999, 'A', 30)")
    database.execute("INSERT INTO clinic SELECT * FROM copied ORDER BY wage, disease DESC")
    found.append(json.loads(run("report", "anon.clinic", "--json", *of).out))
    assert [found[0]] * 3 == found
    assert found[0]["utility"]["queries"]
    nobody = {found[n]["risk"]["not_tried"]["membership"] for n in range(3)}
    assert {"fewer than k rows were left out, or none"} == nobody


def test_where_nobody_is_remembered_who_is_new_among_others_is_not_told_of(
    copied, run, monkeypatch
):
    database = copied(make_clinic)
    monkeypatch.setenv("DBANON_DSN", database.dsn)
    dbanon.publish(TABLE, name="live", kind="view", settings=database.settings)
    found = []
    for values in AMONG_OTHERS[2:]:
        change(database, 1000, values)
        found.append(json.loads(run("report", "anon.live", "--json").out))
    assert [found[0]] * len(found) == found
    assert found[0]["utility"]["not_told"]


def test_a_plan_does_not_depend_on_the_values_of_who_would_be_left_out(copied):
    database = copied(make_clinic)
    published = dbanon.report("anon.clinic", settings=database.settings)
    found = []
    for values in VALUES[2:]:
        change(database, 1000, values)
        found.append(dbanon.plan_with_report(TABLE, settings=database.settings)[1])
    first, second = found
    assert (first.risk, first.utility) == (second.risk, second.utility)
    assert published.utility.associations == first.utility.associations
    assert published.utility.queries == first.utility.queries


def test_what_is_not_told_is_said(copied, run, monkeypatch, tmp_path):
    database = copied(make_clinic)
    monkeypatch.setenv("DBANON_DSN", database.dsn)
    change(database, 7, VALUES[3])
    printed = run("report", "anon.clinic", "--html", tmp_path / "page.html").out
    assert "how columns go together, counts and predictions, as fewer rows" in printed
    assert re.search("not tried: re-identification, .*this would tell their values", printed)
    page = (tmp_path / "page.html").read_text("utf-8")
    assert 3 == page.count("Not told, as is said below.")
    assert "not told: who is unique in the source" in page


def test_no_warning_of_a_report_says_what_one_who_is_not_published_has(database):
    make_clinic(database)
    database.execute("UPDATE clinic SET disease = 'd' || age % 3 WHERE outer_key < 1000")
    dbanon.publish(TABLE, name="others", settings=database.settings, **FRESH)
    told = []
    for disease in ("d0", "d1", "d2"):
        change(database, 1000, f"age = 30, zip = 9999, disease = '{disease}'")
        found = dbanon.report("anon.others", settings=database.settings)
        told.append([str(caution.message) for caution in found.warnings])
    assert told[0] == told[1] == told[2]
