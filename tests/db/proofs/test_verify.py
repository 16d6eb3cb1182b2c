import json

import psycopg
import pytest
from psycopg import sql
from tables import make_patients, patients_policy

import dbanon

QUASI = ["zip", "age"]
K, L = {"name": "k-anonymity", "params": {"k": 2}}, {"name": "l-diversity", "params": {"l": 2}}
STRICT = {"name": "l-diversity", "params": {"l": 2, "multi": "strict"}}
SECOND = {"name": "l-diversity", "params": {"l": 2, "columns": ["second"]}}
ENTROPY = {"name": "entropy-l-diversity", "params": {"l": 1.5}}


@pytest.fixture
def hospital(database):
    """A relation of two sensitive columns, NULL among the values of both and of a zip code."""
    connection = database.connect()
    connection.execute(
        "CREATE TABLE public.hospital (zip text, age text, first text, second integer);"
        " INSERT INTO public.hospital"
        " SELECT nullif(i % 4, 0)::text, '<30', nullif(i % 3, 0)::text, nullif(i % 5, 0)"
        "   FROM generate_series(1, 40) AS i"
        " UNION ALL SELECT 'single', '>=30', NULL, NULL"
    )
    return connection


@pytest.mark.parametrize("rows", ["", "DELETE FROM public.hospital"])
@pytest.mark.parametrize(
    "models",
    [
        [K],
        [L],
        [K, L],
        [L, ENTROPY, K],
        [K, STRICT],
        [STRICT, K, SECOND],
        [K, SECOND, ENTROPY],
        [{"name": "k-anonymity", "params": {"k": 1}}, L],
        [L, {"name": "k-map", "params": {"k": 2}}],
    ],
)
def test_a_promise_is_verified_as_each_of_its_models_is_alone(hospital, models, rows):
    promise = {"release": 1, "quasi": QUASI, "sensitive": ["first", "second"], "trees": {}}
    comment = sql.SQL("COMMENT ON TABLE public.hospital IS {}")
    hospital.execute(comment.format(f"dbanon: {json.dumps({**promise, 'models': models})}"))
    if rows:
        hospital.execute(rows)
    expected = []
    for model in models:
        columns = model["params"].get("columns", ["first", "second"])
        for column in columns if model is not K and "k" not in model["params"] else [None]:
            others = [name for name in ("first", "second") if name != column]
            quasi = QUASI + others * (model is STRICT)
            row = hospital.execute(
                "SELECT * FROM dbanon.verify_model('public.hospital', %s, %s, %s, %s, NULL)",
                (model["name"], quasi, column, json.dumps(model["params"])),
            ).fetchone()
            expected.append((model["name"], column, model["params"], *row))
    found = hospital.execute("SELECT * FROM dbanon.verify('public.hospital')").fetchall()
    assert sorted(expected, key=str) == sorted(found, key=str)
    hospital.execute("COMMENT ON TABLE public.hospital IS NULL")
    given = (json.dumps({**promise, "models": models}),)
    again = hospital.execute("SELECT * FROM dbanon.verify_promise('public.hospital', %s)", given)
    assert found == again.fetchall()


@pytest.mark.parametrize("promise", [None, "{}", '{"quasi": ["zip"], "models": []}'])
def test_a_promise_of_nothing_is_not_verified(hospital, promise):
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="promise"):
        hospital.execute("SELECT * FROM dbanon.verify_promise('public.hospital', %s)", (promise,))


@pytest.mark.parametrize("l", [1, 3])
def test_a_model_of_values_is_not_checked_without_a_sensitive_column(hospital, database, l):
    with pytest.raises(dbanon.ConfigError, match="l-diversity needs a sensitive column"):
        dbanon.check("public.hospital", quasi=QUASI, k=1, l=l, settings=database.settings)
    given = {"quasi": QUASI, "sensitive": ["second", "first"], "settings": database.settings}
    found = dbanon.check("public.hospital", **given, k=1, l=1).results
    columns = [(result.model, result.column) for result in found]
    of_l = [("l-diversity", "second"), ("l-diversity", "first")]
    assert [("k-anonymity", None), *of_l] == columns
    with pytest.raises(dbanon.CheckFailed, match="k-anonymity requires 2"):
        dbanon.check("public.hospital", **given, k=2)


def test_the_benchmark_measures_a_published_relation(database, monkeypatch, pytestconfig):
    monkeypatch.syspath_prepend(pytestconfig.rootpath / "tests" / "benchmarks")
    monkeypatch.setenv("DBANON_DSN", database.dsn)
    import verify
    from samples import resampled

    table = make_patients(database)
    dbanon.set_policy(table, patients_policy(table), settings=database.settings)
    dbanon.publish(table, settings=database.settings)
    columns = ("age", "sex", "born", "weight", "disease")
    sample = resampled.Sample("patients", columns, intervals=(), protected="disease")
    assert verify.judge(sample, 1) > 0
