"""Models that count a population, from the policy to the proof."""

import json
import sys

import psycopg
import pytest
from tables import make_patients, rows_proved

import dbanon
from dbanon.cli import main
from dbanon.domain.policy import Role

K_MAP = dbanon.ModelSpec("k-map", {"k": 12})
PRESENCE = dbanon.ModelSpec("delta-presence", {"dmax": 0.5})
LINKED = dbanon.ModelSpec("x-y-anonymity", {"k": 3, "x": ("age",), "y": ("disease",)})


def define_patients(database):
    table = make_patients(database, rows=200)
    database.execute(
        "CREATE TABLE public.people AS SELECT age, sex, born FROM public.patients"
        " UNION ALL SELECT age + d, sex, born + d FROM public.patients, generate_series(1, 2) AS d"
    )
    columns = (
        dbanon.ColumnRule("id", Role.IDENTIFIER),
        dbanon.ColumnRule("age", Role.QUASI, snap=5),
        dbanon.ColumnRule("sex", Role.QUASI, taxonomy="sexes"),
        dbanon.ColumnRule("born", Role.QUASI),
        dbanon.ColumnRule("weight", Role.IDENTIFIER),
        dbanon.ColumnRule("disease", Role.SENSITIVE),
        dbanon.ColumnRule("note", Role.IDENTIFIER),
    )
    policy = dbanon.Policy(
        table, columns, (dbanon.ModelSpec("k-anonymity", {"k": 2}),), algorithm="mondrian"
    )
    dbanon.derive_taxonomy("sexes", "sex", table=table, kind="flat", settings=database.settings)
    dbanon.set_policy(table, policy, settings=database.settings)


@pytest.fixture
def patients(copied):
    """200 patients, and 600 people of whom they are a part."""
    return copied(define_patients)


def publish(database, *models, **options):
    return dbanon.publish(
        "patients",
        models=models,
        population="public.people",
        settings=database.settings,
        **options,
    )


@pytest.mark.exhaustive
def test_what_counts_a_population_is_proved_where_it_can_be_read(patients):
    auditor = patients.role("auditor")
    release = publish(patients, K_MAP, PRESENCE, grants=[auditor])
    assert rows_proved(release) == 200
    found = {result.model: result for result in release.checks.results}
    assert found["k-map"].achieved >= 12
    assert found["delta-presence"].achieved <= 0.5
    assert found["k-anonymity"].achieved < 12
    checked = dbanon.check("anon.patients", settings=patients.settings)
    assert release.checks.results == checked.results
    connection = patients.connect_as(auditor)
    rows = connection.execute(
        "SELECT model, required, verdict FROM dbanon.verify('anon.patients')"
    ).fetchall()
    assert [
        ("k-anonymity", 2, "passed"),
        ("k-map", 12, "not checked"),
        ("delta-presence", 0.5, "not checked"),
    ] == rows
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute(
            "SELECT * FROM dbanon.check_k_map('anon.patients', '{age}', 'public.people', 2)"
        )


@pytest.mark.exhaustive
def test_x_and_y_are_proved_by_an_auditor(patients):
    auditor = patients.role("auditor")
    release = dbanon.publish(
        "patients", models=[LINKED], grants=[auditor], settings=patients.settings
    )
    result = release.checks.results[-1]
    assert ("x-y-anonymity", "disease", 3, "passed") == (
        result.model,
        result.column,
        result.required,
        result.verdict,
    )
    rows = patients.connect_as(auditor).execute(
        "SELECT model, sensitive, required, achieved, verdict FROM dbanon.verify('anon.patients')"
    )
    assert ("x-y-anonymity", "disease", 3, result.achieved, "passed") == rows.fetchall()[-1]


def test_a_check_says_what_it_could_not_prove(patients):
    auditor = patients.role("auditor")
    publish(patients, K_MAP, grants=[auditor])
    settings = dbanon.Settings(dsn=patients.dsn_as(auditor))
    with pytest.raises(dbanon.CheckFailed, match="k-map was not checked") as caught:
        dbanon.check("anon.patients", settings=settings)
    assert ["passed", "not checked"] == [r.verdict for r in caught.value.report.results]
    patients.execute("DELETE FROM public.people WHERE age > 40")
    with pytest.raises(dbanon.CheckFailed, match="k-map requires 12, the worst class has"):
        dbanon.check("anon.patients", settings=patients.settings)
    patients.execute(
        "ALTER TABLE public.people RENAME TO a; CREATE VIEW public.people AS SELECT * FROM public.a"
    )
    with pytest.raises(dbanon.CheckFailed, match="k-map was not checked"):
        dbanon.check("anon.patients", settings=patients.settings)
    patients.execute("DROP VIEW public.people")
    with pytest.raises(dbanon.CheckFailed, match="k-map was not checked"):
        dbanon.check("anon.patients", settings=patients.settings)


@pytest.mark.exhaustive
def test_a_refresh_sees_a_population_that_changed(patients):
    publish(patients, K_MAP)
    (same,) = dbanon.refresh("patients", if_changed=True, settings=patients.settings)
    assert not same.changed
    patients.execute("INSERT INTO public.people SELECT * FROM public.people LIMIT 1")
    (other,) = dbanon.refresh("patients", if_changed=True, settings=patients.settings)
    assert other.changed
    assert rows_proved(other.release) == 200


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("ALTER TABLE public.people DROP COLUMN born", "it has no column born"),
        ("ALTER TABLE public.people ALTER age TYPE bigint", "age is of type bigint, not integer"),
        ("DELETE FROM public.people WHERE age > 30", "rows, fewer than the 200 of public.patients"),
        ("ALTER TABLE public.people ENABLE ROW LEVEL SECURITY", "row-level security"),
        (
            "ALTER TABLE public.people RENAME TO a; CREATE VIEW people AS SELECT * FROM public.a",
            "it is no table",
        ),
    ],
)
def test_a_table_that_is_no_population_is_refused(patients, change, message):
    patients.execute(change)
    with pytest.raises(dbanon.PolicyError, match=message):
        publish(patients, K_MAP)


def test_a_table_is_not_its_own_population(patients):
    with pytest.raises(dbanon.PolicyError, match="it is the table itself"):
        dbanon.publish(
            "patients", models=[K_MAP], population="public.patients", settings=patients.settings
        )


def test_a_population_that_cannot_be_read_is_refused(patients):
    with patients.admin() as connection:
        connection.execute("CREATE TABLE public.secret AS SELECT age, sex, born FROM public.people")
    with pytest.raises(dbanon.NotPermitted, match=r"may not read public\.secret"):
        dbanon.publish(
            "patients", models=[K_MAP], population="public.secret", settings=patients.settings
        )


def test_a_live_view_is_refused(patients):
    for spec in (K_MAP, PRESENCE, LINKED):
        with pytest.raises(dbanon.ConfigError, match="a live view cannot keep"):
            publish(patients, spec, kind="view")


@pytest.mark.parametrize(
    ("words", "models"),
    [
        (["k-map:k=9"], [{"name": "k-map", "params": {"k": 9}}]),
        (
            ["delta-presence:dmax=0.6,dmin=0"],
            [{"name": "delta-presence", "params": {"dmin": 0, "dmax": 0.6}}],
        ),
        (
            ["x-y-anonymity:k=2,y=disease,x=age,x=sex"],
            [{"name": "x-y-anonymity", "params": {"k": 2, "x": ["age", "sex"], "y": ["disease"]}}],
        ),
    ],
)
def test_the_command_line_asks_for_them(patients, monkeypatch, capsys, words, models):
    monkeypatch.setenv("DBANON_DSN", patients.dsn)
    words = [
        *(f"--model={word}" for word in words),
        "--population",
        "public.people",
        "--subject",
        "id",
        "--json",
    ]
    monkeypatch.setattr(sys, "argv", ["dbanon", "publish", "patients", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    policy = json.loads(capsys.readouterr().out)["policy"]
    assert policy["models"][1:] == models
    assert "id" == policy["subject"]
