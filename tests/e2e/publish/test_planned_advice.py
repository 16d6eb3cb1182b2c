"""A plan advises what would lose much less, and by how much."""

import sys

import pytest

import dbanon
from dbanon.cli import main
from dbanon.formats.policies import parse

POLICY = """
table = "public.t"
[models]
k = {k}
{l}
[columns]
id.role = "identifier"
{quasi}
x.role = "sensitive"
"""


def drafted(database, *, x, names, k=3, diverse=True):
    columns = ", ".join(f"abs(hashtext(i || '{name}')) % 97 AS {name}" for name in names)
    database.execute(
        f"CREATE TABLE public.t AS SELECT i AS id, {columns}, {x} AS x"
        " FROM generate_series(1, 400) AS i;"
        "ALTER TABLE public.t ADD PRIMARY KEY (id)"
    )
    quasi = "\n".join(f'{name}.role = "quasi"' for name in names)
    return parse(POLICY.format(k=k, quasi=quasi, l="l = 3" if diverse else ""))


def planned(database, **asked):
    return dbanon.plan("t", draft=drafted(database, **asked), settings=database.settings)


def test_a_model_that_costs_much_is_named_with_its_points(database):
    plan = planned(database, x="'v' || abs(hashtext(i || 'a')) % 97 / 33", names="a")
    words = plan.advice.split()
    assert plan.advice.startswith("distinct 3-diversity of x costs ")
    assert plan.advice.endswith(f" points of NCP: without it {words[-1]}")
    assert float(words[-1].rstrip("%")) < 100 * plan.loss.ncp - 10


def test_columns_without_which_much_less_is_lost_are_named(database):
    plan = planned(database, x="'v' || i % 50", names="abcdef", k=12, diverse=False)
    assert plan.advice.startswith("6 quasi-identifiers for 400 rows: leaving out ")
    assert f" brings {plan.loss.ncp:.0%} to " in plan.advice


def test_what_loses_little_has_no_advice(database):
    assert planned(database, x="'v' || i % 50", names="a").advice is None


@pytest.mark.exhaustive
def test_a_publication_and_a_new_grouping_of_a_refresh_advise_without_another_search(
    database, capsys, monkeypatch
):
    policy = drafted(database, x="'v' || i % 50", names="abcdef", k=40, diverse=False)
    database.execute("UPDATE public.t SET e = 1, f = 1")
    dbanon.set_policy("t", policy, settings=database.settings)
    for words in (["publish", "t"], ["refresh", "t", "--new-series", "--recipients-changed"]):
        monkeypatch.setattr(sys, "argv", ["dbanon", *words, "--dsn", database.dsn])
        with pytest.raises(SystemExit):
            main()
        assert "6 quasi-identifiers for 400 rows: without " in capsys.readouterr().out


def test_unions_of_earlier_classes_say_nothing_about_a_search(database):
    policy = drafted(database, x="'v' || abs(hashtext(i || 'a')) % 97 / 33", names="a")
    dbanon.set_policy("t", policy, settings=database.settings)
    dbanon.publish("t", settings=database.settings)
    database.execute("GRANT SELECT ON anon.t TO public")
    plan = dbanon.plan("t", settings=database.settings)
    assert plan.loss.ncp > 0.2
    assert (False, None) == (plan.sharing is None, plan.advice)
