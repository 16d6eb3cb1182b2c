"""Which columns make rows unique, told before there is a policy."""

import json
import tomllib

import pytest
from tables import make_patients

import dbanon
from dbanon.actions import inspect as inspecting

ALONE = "SELECT count(*) FROM (SELECT FROM {} GROUP BY {} HAVING count(*) = 1) AS alone"


@pytest.fixture
def patients(copied):
    return copied(make_patients)


def counted(database, *columns):
    return database.execute(ALONE.format("public.patients", ", ".join(columns)))[0][0]


def test_sets_are_those_that_sql_counts(patients):
    found = dbanon.inspect("patients", settings=patients.settings)
    rows = {one.columns: one.rows for one in found.unique_sets}
    assert 200 == found.sampled
    assert counted(patients, "born") == rows["born",]
    assert counted(patients, "weight") == rows["weight",]
    (both,) = patients.execute(
        "SELECT count(*) FROM (SELECT count(*) OVER (PARTITION BY age, sex) AS n,"
        " count(*) OVER (PARTITION BY age) AS a, count(*) OVER (PARTITION BY sex) AS s"
        " FROM public.patients) AS q WHERE n = 1 AND a > 1 AND s > 1"
    )[0]
    assert both == rows["age", "sex"]
    assert not any("disease" in columns or "id" in columns for columns in rows)


def test_the_role_has_a_reason_in_numbers(patients, run, monkeypatch):
    monkeypatch.setenv("DBANON_DSN", patients.dsn)
    found = dbanon.inspect("patients", settings=patients.settings)
    reasons = {column.info.name: column.reason for column in found.columns}
    share = counted(patients, "born") / 200
    assert reasons["born"].endswith(f"; alone it makes {share:.0%} of rows unique")
    assert "unique" not in reasons["disease"]
    assert f"alone it makes {share:.0%} of rows unique" in run("policy", "suggest", "patients").out
    shown = run("inspect", "patients").out
    assert "Smallest sets of columns that make rows unique, of 200 rows" in shown
    document = json.loads(run("inspect", "patients", "--json").out)
    assert {"columns": ["born"], "rows": counted(patients, "born"), "share": share} in document[
        "unique_sets"
    ]


def test_numbers_that_are_written_otherwise_are_equal(patients):
    patients.execute(
        "CREATE TABLE public.n (age numeric); INSERT INTO public.n VALUES (1.0), (1.00), (2), (2)"
    )
    assert () == dbanon.inspect("public.n", settings=patients.settings).unique_sets


@pytest.mark.parametrize("relation", ["public.patients", "public.view"])
def test_large_relations_are_sampled(patients, monkeypatch, relation):
    monkeypatch.setattr(inspecting, "MOST_ROWS", 60)
    patients.execute("CREATE VIEW public.view AS SELECT * FROM public.patients")
    found = dbanon.inspect(relation, settings=patients.settings)
    assert 20 < found.sampled < 110
    assert 200 == found.n_rows
    if relation == "public.patients":
        again = dbanon.inspect(relation, settings=patients.settings)
        assert found.unique_sets == again.unique_sets


def test_nothing_makes_nothing_unique(patients):
    patients.execute("DELETE FROM public.patients")
    found = dbanon.inspect("patients", settings=patients.settings)
    assert (0, ()) == (found.sampled, found.unique_sets)


def test_what_is_as_fine_as_persons_are_is_drafted_with_a_floor(database, tmp_path):
    database.execute(
        "CREATE TABLE public.earners (id integer PRIMARY KEY, hired timestamp, income integer,"
        " debt numeric, score double precision);"
        "INSERT INTO public.earners SELECT i, timestamp '2020-01-01' + i * interval '25001 s',"
        " 20000 + 137 * i, i * 1e400, CASE i WHEN 1 THEN 'NaN' ELSE i * 0.01 END"
        " FROM generate_series(1, 300) AS i"
    )
    draft = dbanon.suggest_policy("earners", settings=database.settings)
    columns = tomllib.loads(draft)["columns"]
    floors = {
        name: {key: rule[key] for key in rule if key not in {"role", "recoding"}}
        for name, rule in columns.items()
    }
    assert {"at_least": "day"} == floors["hired"]
    assert {"bands": 2_000} == floors["income"]
    assert {"bands": 0.2} == floors["score"]
    assert {} == floors["debt"]
    (tmp_path / "earners.toml").write_text(draft)
    assert dbanon.check_policy(tmp_path / "earners.toml", settings=database.settings)


def test_of_many_quasi_identifiers_a_small_set_is_proposed(patients, run, monkeypatch):
    monkeypatch.setenv("DBANON_DSN", patients.dsn)
    flags = ", ".join(f"n % {2 + i} AS part{i}" for i in range(20))
    patients.execute(
        f"CREATE TABLE public.wide AS SELECT n AS id, n / 40 AS year, n % 40 AS age, {flags}"
        " FROM generate_series(1, 900) AS n"
    )
    finding = "22 quasi-identifiers: "
    inspected = " ".join(run("inspect", "wide").out.split())
    assert finding in inspected
    assert " of rows unique, all together 100%; decide which" in inspected
    draft = run("policy", "suggest", "wide").out
    assert draft.startswith(f"# {finding}")
    assert [] == [line for line in draft.splitlines() if line.startswith("# recoding")]
    tomllib.loads(draft)


def test_texts_that_few_rows_have_are_read_from_the_rows_that_have_them(database):
    make_patients(database)
    database.execute(
        "CREATE TABLE public.visits AS SELECT id, id % 90 AS age,"
        " CASE WHEN id > 2950 THEN 'Was entered twice, as clerk ' || id % 5 || ' found out.' END"
        " AS void_reason FROM generate_series(1, 3000) AS id"
    )
    inspected = dbanon.inspect("visits", settings=database.settings)
    roles = {
        one.suggestion.column: (one.suggestion.role.value, one.reason) for one in inspected.columns
    }
    assert roles["void_reason"] == ("identifier", "100% of rows look like free text")
