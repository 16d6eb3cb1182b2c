"""Privacy models from the command line to the proof that an auditor repeats."""

import json
import math
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from tempfile import NamedTemporaryFile

import psycopg
import pytest
from builders import leaf_tree
from selection import exhaustive_after
from tables import make_patients, patients_policy, rows_proved

import dbanon
from dbanon.cli import main
from dbanon.domain.policy import Role
from dbanon.models.registry import MODELS

VERIFY = "SELECT model, sensitive, required, achieved, classes, failing_classes, row_count, verdict"
ASKED = [
    dbanon.ModelSpec("entropy-l-diversity", {"l": 2.5}),
    dbanon.ModelSpec("recursive-l-diversity", {"c": 3, "l": 3}),
    dbanon.ModelSpec("t-closeness", {"t": 0.3, "distance": "hierarchical"}),
    dbanon.ModelSpec("n-t-closeness", {"n": 50, "t": 0.3, "distance": "ordered"}),
    dbanon.ModelSpec("beta-likeness", {"beta": 2, "kind": "enhanced"}),
    dbanon.ModelSpec("delta-disclosure", {"delta": 3.0}),
    dbanon.ModelSpec("alpha-k-anonymity", {"alpha": 0.5}),
    dbanon.ModelSpec("listed-alpha-k-anonymity", {"alpha": 0.4, "listed": ("cancer",)}),
    dbanon.ModelSpec("probabilistic-l-diversity", {"l": 2, "columns": ("disease",)}),
    dbanon.ModelSpec("p-sensitivity", {"p": 3}),
    dbanon.ModelSpec("pd-recursive-l-diversity", {"c": 4, "l": 2, "positive": ("flu",)}),
    dbanon.ModelSpec(
        "npd-recursive-l-diversity",
        {"c": 4, "l": 2, "positive": ("flu",), "share": 0.05, "negative": ("cancer", "asthma")},
    ),
]
DISEASES = leaf_tree(acute=["flu", "gastritis"], chronic=["cancer", "asthma"])


def define(database):
    table = make_patients(database)
    lines = [f"{leaf};{branch};*" for branch, leaves in DISEASES.items() for leaf in leaves]
    with NamedTemporaryFile("w", suffix=".csv") as file:
        file.write("\n".join(lines))
        file.flush()
        dbanon.import_taxonomy("diseases", Path(file.name), settings=database.settings)
    policy = patients_policy(table, k=3, l=2)
    columns = [
        replace(rule, taxonomy="diseases", order=("flu", "gastritis", "asthma", "cancer"))
        if rule.role is Role.SENSITIVE
        else rule
        for rule in policy.columns
    ]
    policy = replace(policy, columns=tuple(columns))
    dbanon.set_policy(table, policy, settings=database.settings)


@pytest.fixture
def patients(copied):
    return copied(define)


@pytest.mark.exhaustive
def test_what_is_published_under_many_models_is_proved_by_an_auditor(patients):
    auditor = patients.role("auditor")
    release = dbanon.publish("patients", models=ASKED, grants=[auditor], settings=patients.settings)
    assert rows_proved(release) == 200
    names = ["k-anonymity", "l-diversity", *(spec.name for spec in ASKED)]
    assert names == [result.model for result in release.checks.results]
    connection = patients.connect_as(auditor)
    rows = connection.execute(f"{VERIFY} FROM dbanon.verify('anon.patients')").fetchall()
    expected = [
        (r.model, r.column, r.required, r.achieved, r.classes, r.failing_classes, r.n_rows)
        for r in release.checks.results
    ]
    assert expected == [row[:7] for row in rows]
    assert {"passed"} == {row[7] for row in rows}
    checked = dbanon.check("anon.patients", settings=patients.settings)
    assert release.checks.results == checked.results
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute("SELECT * FROM dbanon.tally('public.patients', '{age}', 'disease')")


@pytest.mark.exhaustive
def test_a_refresh_asks_for_the_same_models(patients):
    dbanon.publish("patients", models=ASKED, settings=patients.settings)
    (refreshed,) = dbanon.refresh("patients", settings=patients.settings)
    models = {spec.name: spec for spec in refreshed.release.policy.models}
    assert [models[spec.name] for spec in ASKED] == ASKED


def test_a_promise_that_does_not_hold_fails(patients):
    dbanon.publish("patients", models=ASKED[:3], settings=patients.settings)
    connection = patients.connect()
    comment = connection.execute("SELECT dbanon.promise('anon.patients')").fetchone()[0]
    for model in comment["models"]:
        model["params"] |= {"l": 50} if "l" in model["params"] else {}
        model["params"] |= {"t": 0.0001} if "t" in model["params"] else {}
    connection.execute(
        psycopg.sql.SQL("COMMENT ON VIEW anon.patients IS {}").format(
            psycopg.sql.Literal(f"dbanon: {json.dumps(comment)}")
        )
    )
    rows = connection.execute(f"{VERIFY} FROM dbanon.verify('anon.patients')").fetchall()
    assert [row[7] for row in rows] == ["passed", "failed", "failed", "failed", "failed"]
    with pytest.raises(dbanon.CheckFailed, match="entropy-l-diversity of disease requires 50"):
        dbanon.check("anon.patients", settings=patients.settings)
    (entry,) = dbanon.list_verifications(1, settings=patients.settings)
    achieved = {result.model: result.achieved for result in entry.results}
    assert math.inf in achieved.values()


@pytest.mark.parametrize(
    "comment",
    ["", "hello", 'dbanon: {"models": []}', 'dbanon: {"models": [{"name": "drop table"}]}'],
)
def test_a_relation_without_a_promise_is_not_verified(database, comment):
    connection = database.connect()
    connection.execute("CREATE TABLE public.plain (a int)")
    connection.execute(
        psycopg.sql.SQL("COMMENT ON TABLE public.plain IS {}").format(psycopg.sql.Literal(comment))
    )
    with pytest.raises(psycopg.errors.InvalidParameterValue):
        connection.execute("SELECT * FROM dbanon.verify('public.plain')")


def test_every_model_can_be_verified_by_name(database):
    connection = database.connect()
    connection.execute("CREATE TABLE public.plain (q int, s int)")
    samples = {int: 2, float: 0.5, tuple: ["a"]}
    for name, kind in MODELS.items():
        params = {
            p: samples[parameter.kind]
            for p, parameter in kind.parameters().items()
            if parameter.kind is not str
        }
        params |= {"l": 2} if "l" in params else {}
        params |= {"x": ["q"], "y": ["s"]} if "y" in params else {}
        row = connection.execute(
            "SELECT * FROM dbanon.verify_model('public.plain', %s, '{q}', 's', %s, NULL)",
            (name, psycopg.types.json.Jsonb(params)),
        ).fetchone()
        assert row[1:] == (None, 0, 0, 0, "not checked"), name


K = """('k-anonymity', NULL, '{"k": 3}'::jsonb, 3, 3, 9, 0, 200, 'passed')"""
L = """('l-diversity', 'disease', '{"l": 2}', 2, 2, 9, 0, 200, 'passed')"""
ANSWERS = {
    "all": (f"VALUES {K}, {L}", True),
    "nothing": (f"VALUES {K}, {L} LIMIT 0", False),
    "a model less": (f"VALUES {K}", False),
    "a model twice": (f"VALUES {K}, {K}, {L}", False),
    "another k": (f"VALUES {K.replace('3', '1')}, {L}", False),
    "no verdict": (f"VALUES {K[:-9]} NULL), {L}", False),
    "nothing required": (f"VALUES {K.replace('3, 3,', 'NULL::int, 3,')}, {L}", False),
    "less required": (f"VALUES {K.replace('3, 3,', '1, 1,')}, {L}", False),
    "no class": (f"VALUES {K.replace('3, 3, 9, 0, 200', '3, NULL::int, 0, 0, 0')}, {L}", False),
    "a class that fails": (f"VALUES {K.replace('9, 0,', '9, 4,')}, {L}", False),
    "another column": (f"VALUES {K}, {L.replace('disease', 'age')}", False),
}


@pytest.mark.parametrize("answer", exhaustive_after(4, ANSWERS))
def test_an_answer_about_less_than_the_promise_publishes_nothing(patients, answer):
    rows, is_enough = ANSWERS[answer]
    classes = dbanon.plan("patients", settings=patients.settings).loss.n_classes
    rows = rows.replace("9, ", f"{classes}, ")
    result = "model text, sensitive text, parameters jsonb, required float8, achieved float8,"
    result += " classes bigint, failing_classes bigint, row_count bigint, verdict text"
    patients.execute(
        "DROP FUNCTION dbanon.verify;"
        f"CREATE FUNCTION dbanon.verify(relation regclass) RETURNS TABLE ({result})"
        f" LANGUAGE sql AS $$ {rows} $$"
    )
    with nullcontext() if is_enough else pytest.raises(dbanon.DatabaseError, match="not answer"):
        dbanon.publish("patients", settings=patients.settings)
    assert [(is_enough,)] == patients.execute("SELECT to_regclass('anon.patients') IS NOT NULL")


@pytest.mark.parametrize("c", [1e16, 1e300])
def test_a_number_is_what_it_is_however_it_is_written(patients, c):
    factor = dbanon.ModelSpec("recursive-l-diversity", {"c": c, "l": 2})
    release = dbanon.publish("patients", models=[factor], settings=patients.settings)
    assert rows_proved(release) == 200


def test_a_live_view_keeps_the_models_that_it_promises(patients):
    asked = [spec for spec in ASKED if not MODELS[spec.name].of_whole]
    release = dbanon.publish("patients", models=asked, kind="view", settings=patients.settings)
    assert rows_proved(release) == 200
    patients.execute("UPDATE public.patients SET disease = 'flu' WHERE id % 5 = 0")
    rows = patients.execute("SELECT model, verdict FROM dbanon.verify('anon.patients')")
    assert {spec.name for spec in asked} < {model for model, _ in rows}
    assert {verdict for _, verdict in rows} == {"passed"}
    assert patients.execute("SELECT count(*) < 200 FROM anon.patients") == [(True,)]


def test_what_is_impossible_is_told_with_what_is_possible(patients):
    asked = [dbanon.ModelSpec("entropy-l-diversity", {"l": 6})]
    with pytest.raises(dbanon.Unsatisfiable) as caught:
        dbanon.publish("patients", models=asked, settings=patients.settings)
    text = str(caught.value)
    assert "% of the rows share one value of disease: entropy 6-diversity is impossible" in text
    assert "distinct 5-diversity, or probabilistic l <= " in text


@pytest.mark.parametrize(
    ("words", "models"),
    exhaustive_after(
        1,
        [
            (["entropy-l-diversity:l=3"], {"entropy-l-diversity": {"l": 3}}),
            (["recursive-l-diversity:c=3,l=3"], {"recursive-l-diversity": {"c": 3, "l": 3}}),
            (
                ["t-closeness:t=0.3,distance=ordered", "alpha-k-anonymity:alpha=0.6"],
                {
                    "t-closeness": {"t": 0.3, "distance": "ordered"},
                    "alpha-k-anonymity": {"alpha": 0.6},
                },
            ),
            (
                ["beta-likeness:beta=3,kind=enhanced", "delta-disclosure:delta=4"],
                {
                    "beta-likeness": {"beta": 3, "kind": "enhanced"},
                    "delta-disclosure": {"delta": 4},
                },
            ),
            (
                ["p-sensitivity:p=2,columns=disease"],
                {"p-sensitivity": {"p": 2, "columns": ["disease"]}},
            ),
        ],
    ),
)
def test_the_command_line_asks_for_models(patients, monkeypatch, capsys, words, models):
    monkeypatch.setenv("DBANON_DSN", patients.dsn)
    words = [f"--model={word}" for word in words]
    monkeypatch.setattr(sys, "argv", ["dbanon", "publish", "patients", *words, "--json"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    policy = json.loads(capsys.readouterr().out)["policy"]
    expected = [{"name": name, "params": params} for name, params in models.items()]
    assert policy["models"][2:] == expected


@pytest.mark.parametrize(
    ("word", "problem"),
    [
        ("entropy-l-diversity", "l is missing"),
        ("recursive-l-diversity:l=3", "c is missing"),
        ("t-closeness:t=2", "t must be at least 0 and at most 1"),
        ("t-closeness:t=far", "t must be a number"),
        ("t-closeness:t=0.1,t=0.2", "t must be a number"),
        ("t-closeness:t", "'t' is not PARAM=VALUE"),
        ("t-closeness:t=0.2,distance=far", "distance is none of equal, ordered, hierarchical"),
        ("alpha-k-anonymity:alpha=nan", "alpha must be"),
        ("k-map:k=0", "k must be at least 1"),
        ("delta-presence:dmin=0.1", "dmax is missing"),
        ("delta-presence:dmin=0.5,dmax=0.1", "dmin is greater than dmax"),
        ("x-y-anonymity:k=2", "y is missing"),
        ("x-y-anonymity:k=2,y=a,x=a", "y shares a column with x"),
        ("p-sensitivity:p=2,q=3", "q unknown key"),
        ("t-closenes:t=0.2", "'t-closenes' is no privacy model; choose one of k-anonymity"),
    ],
)
def test_a_model_that_makes_no_sense_is_refused(monkeypatch, capsys, word, problem):
    monkeypatch.setattr(sys, "argv", ["dbanon", "publish", "patients", "--model", word])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    shown = " ".join(capsys.readouterr().err.split())
    assert "Invalid value for '--model'" in shown
    assert problem in shown


def make_visits(database):
    with database.connect() as connection:
        connection.execute(
            "CREATE TABLE public.visits (id int PRIMARY KEY, person text NOT NULL, age int,"
            " disease text)"
        )
        connection.execute(
            "INSERT INTO public.visits"
            " SELECT row_number() OVER (), 'p' || p, 20 + p / 3, (ARRAY['a','b','c'])[1 + p % 3]"
            " FROM generate_series(1, 60) AS p, generate_series(1, 1 + p % 5) AS v"
        )
    columns = (
        dbanon.ColumnRule("id", Role.IDENTIFIER),
        dbanon.ColumnRule("person", Role.IDENTIFIER),
        dbanon.ColumnRule("age", Role.QUASI),
        dbanon.ColumnRule("disease", Role.SENSITIVE),
    )
    models = (
        dbanon.ModelSpec("k-anonymity", {"k": 4}),
        dbanon.ModelSpec("l-diversity", {"l": 3}),
    )
    table = dbanon.TableName("public", "visits")
    policy = dbanon.Policy(table, columns, models, subject="person")
    dbanon.set_policy(table, policy, settings=database.settings)


@pytest.fixture
def visits(copied):
    """One to five visits of each of 60 persons, who have one age and one disease."""
    return copied(make_visits)


@pytest.mark.exhaustive
def test_k_counts_persons_and_all_rows_of_one_share_a_class(visits):
    release = dbanon.publish("visits", keep_assignment=True, settings=visits.settings)
    assert release.loss.n_rows == 180
    by_persons = release.checks.results[-1]
    assert ("k-anonymity", "person", 4) == (
        by_persons.model,
        by_persons.column,
        by_persons.required,
    )
    assert by_persons.achieved >= 4
    assert by_persons.achieved < release.checks.results[0].achieved
    groups = visits.execute(
        "SELECT max(n), sum(rows) FROM (SELECT count(DISTINCT r.group_id) AS n, count(*) AS rows"
        f" FROM public.visits AS v JOIN dbanon_data.rows_{release.id} AS r ON r.k1 = v.id"
        " GROUP BY v.person) AS p"
    )
    assert groups == [(1, 180)]


def test_models_hold_of_persons_as_well_as_of_rows(visits):
    asked = [
        dbanon.ModelSpec("t-closeness", {"t": 0.3}),
        dbanon.ModelSpec("entropy-l-diversity", {"l": 2}),
        dbanon.ModelSpec("recursive-l-diversity", {"c": 3, "l": 2}),
        dbanon.ModelSpec("alpha-k-anonymity", {"alpha": 0.6}),
        dbanon.ModelSpec("beta-likeness", {"beta": 2}),
        dbanon.ModelSpec("x-y-anonymity", {"k": 2, "y": ("disease",)}),
    ]
    release = dbanon.publish("visits", models=asked, settings=visits.settings)
    assert rows_proved(release) == 180
    by_persons = {r.model: r for r in release.checks.results if "person" in (r.column or "")}
    names = {"k-anonymity", "l-diversity", *(spec.name for spec in asked)} - {"x-y-anonymity"}
    assert names == set(by_persons)
    assert {60} == {r.n_rows for r in by_persons.values() if r.model != "k-anonymity"}
    left = visits.execute("SELECT relname FROM pg_class WHERE relname LIKE 'persons%'")
    assert left == []
    checked = dbanon.check("anon.visits", settings=visits.settings)
    assert checked.passed


def test_what_counts_rows_once_is_refused_for_several_rows_a_person(visits):
    asked = [dbanon.ModelSpec("m-uniqueness", {"m": 3})]
    with pytest.raises(dbanon.Unsatisfiable, match="person has several rows of one person"):
        dbanon.publish("visits", models=asked, settings=visits.settings)


def test_a_live_view_counts_persons_too(visits):
    release = dbanon.publish("visits", kind="view", settings=visits.settings)
    assert rows_proved(release) == 180
    visits.execute("DELETE FROM public.visits WHERE person IN ('p1', 'p2', 'p3', 'p4')")
    smallest = visits.execute(
        "SELECT min(n) FROM (SELECT count(DISTINCT v.person) AS n FROM public.visits AS v"
        f" JOIN dbanon_data.rows_{release.id} AS r ON r.k1 = v.id"
        f" JOIN dbanon_data.groups_{release.id} AS g USING (group_id) WHERE g.shown"
        " GROUP BY g.group_id) AS c"
    )
    assert smallest[0][0] >= 4


def test_a_person_with_two_diseases_counts_for_both_or_is_refused(visits):
    visits.execute("UPDATE public.visits SET disease = 'z' WHERE id = 3")
    asked = [
        dbanon.ModelSpec("alpha-k-anonymity", {"alpha": 0.7}),
        dbanon.ModelSpec("probabilistic-l-diversity", {"l": 1.5}),
    ]
    release = dbanon.publish("visits", models=asked, settings=visits.settings)
    assert rows_proved(release) == 180
    found = {r.model for r in release.checks.results if r.column == "disease by person"}
    assert {"l-diversity", *(spec.name for spec in asked)} == found
    asked = [dbanon.ModelSpec("entropy-l-diversity", {"l": 2})]
    with pytest.raises(dbanon.Unsatisfiable, match="1 persons have rows that differ in disease"):
        dbanon.publish("visits", models=asked, settings=visits.settings)
