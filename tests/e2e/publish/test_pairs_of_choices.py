"""Every two choices of a policy and its publication together: refused in words, or proved."""

from contextlib import suppress
from dataclasses import replace

import pytest
from selection import pairs

import dbanon
from dbanon.domain.policy import MaskingStep, Role

TABLE = dbanon.TableName("public", "visits")
K = 4
COLUMNS = (
    dbanon.ColumnRule("id", Role.IDENTIFIER),
    dbanon.ColumnRule("person", Role.IDENTIFIER),
    dbanon.ColumnRule("age", Role.QUASI),
    dbanon.ColumnRule("sex", Role.QUASI),
    dbanon.ColumnRule("disease", Role.SENSITIVE),
)
KINDS = ("table", "view")
PERSONS = (
    {},
    {"subject": "person"},
    {"subject": "person", "rows_per_subject": "group"},
    {"subject": "person", "rows_per_subject": 1},
)
MODELS = (
    (("l-diversity", {"l": 2}),),
    (("entropy-l-diversity", {"l": 1.5}),),
    (("t-closeness", {"t": 0.5}),),
    (("alpha-k-anonymity", {"alpha": 0.7}),),
)
RECODINGS = ("interval", "bounds", "set", "mean", "global")
ROWS = ({}, {"sample": 0.8}, {"max_suppressed": 0.1}, {"rest": "drop"})
SHOWN = (
    {},
    {"labels": True},
    {"masking": (MaskingStep("rank-swapping", ("age",), {"percent": 10}),)},
    {"pseudonym": "reader_id"},
)
LATER = ({}, {"erase_within": "30d"}, {"refresh": "independent"}, {"withdraw_share": 0.8})
REFUSALS = (dbanon.ConfigError, dbanon.PolicyError, dbanon.Unsatisfiable)


def make_visits(database):
    """Make one to three visits of each of 120 persons, who have one disease each."""
    database.execute(
        "CREATE TABLE public.visits (id int PRIMARY KEY, person int NOT NULL, age int NOT NULL,"
        " sex text NOT NULL, disease text NOT NULL);"
        "INSERT INTO public.visits"
        " SELECT row_number() OVER (), p, 20 + p * 7 % 60, (ARRAY['F', 'M'])[1 + p % 2],"
        " (ARRAY['a', 'b', 'c'])[1 + p % 3]"
        " FROM generate_series(1, 120) AS p, generate_series(1, 1 + p % 3) AS v"
    )


@pytest.fixture
def visits(copied):
    return copied(make_visits)


def smallest(database):
    """Return how many rows the smallest class has, as a reader counts them."""
    with database.connect() as connection:
        found = connection.execute("SELECT * FROM anon.visits LIMIT 0").description
        names = [f'"{each.name}"' for each in found if each.name not in {"disease", "reader_id"}]
        counted = f"SELECT count(*) AS n FROM anon.visits GROUP BY {', '.join(names)}"
        return connection.execute(f"SELECT min(n) FROM ({counted}) AS c").fetchone()[0]


def is_proved(database):
    """Tell whether the database proves the release, and a reader counts k rows in each class."""
    report = dbanon.check("anon.visits", settings=database.settings)
    return report.passed and smallest(database) >= K


@pytest.mark.parametrize(
    ("kind", "persons", "models", "recoding", "rows", "shown", "later"),
    pairs(KINDS, PERSONS, MODELS, RECODINGS, ROWS, SHOWN, LATER),
)
def test_two_choices_together(visits, *, kind, persons, models, recoding, rows, shown, later):
    specs = [dbanon.ModelSpec("k-anonymity", {"k": K})]
    specs += [dbanon.ModelSpec(name, params) for name, params in models]
    columns = [replace(c, recoding=recoding) if c.column == "age" else c for c in COLUMNS]
    chosen = {"algorithm": "mondrian", **persons, **rows, **shown, **later}
    policy = dbanon.Policy(TABLE, tuple(columns), tuple(specs), **chosen)
    refusal = None
    try:
        dbanon.set_policy(TABLE, policy, settings=visits.settings)
        dbanon.publish(TABLE, kind=kind, grants=["public"], settings=visits.settings)
    except REFUSALS as error:
        refusal = error
    if refusal is not None:
        assert refusal.hint, refusal
        assert [(0,)] == visits.execute("SELECT count(*)::int FROM dbanon.release WHERE served")
        return
    assert is_proved(visits)
    visits.execute(
        "DELETE FROM public.visits WHERE person < 6;"
        "INSERT INTO public.visits SELECT id + 1000, person + 1000, age, sex, disease"
        " FROM public.visits WHERE person < 60"
    )
    with suppress(dbanon.CheckFailed):  # then release 1 is served on
        dbanon.refresh(TABLE, settings=visits.settings)
    assert is_proved(visits)
