"""Models that count a population, from the policy to the proof."""

import psycopg
import pytest
from tables import make_patients

import dbanon
from dbanon.domain.policy import Role

K_MAP = dbanon.ModelSpec("k-map", {"k": 12})
PRESENCE = dbanon.ModelSpec("delta-presence", {"dmax": 0.5})
LINKED = dbanon.ModelSpec("x-y-anonymity", {"k": 3, "x": ("age",), "y": ("disease", "sex")})


@pytest.fixture
def patients(database):
    """200 patients, and 600 people of whom they are a part."""
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
    return database


def publish(database, *models, **options):
    return dbanon.publish(
        "patients",
        models=models,
        population="public.people",
        settings=database.settings,
        **options,
    )


def test_what_counts_a_population_is_proved_where_it_can_be_read(patients):
    auditor = patients.role("auditor")
    release = publish(patients, K_MAP, PRESENCE, grants=[auditor])
    assert release.checks.passed
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
