"""A microaggregated view of the census data, measured by whoever has it and the table."""

import csv
import gzip
from pathlib import Path

import pytest
from psycopg import sql

import dbanon
from dbanon.domain.policy import ColumnRule, ModelSpec, Policy, Role
from dbanon.domain.table import TableName

CENSUS = Path(__file__).parents[2] / "data" / "census.csv.gz"
TABLE = TableName("public", "census")


def load(database):
    """Load the numbers of the census and return their columns."""
    with gzip.open(CENSUS, "rt") as file:
        header, *rows = csv.reader(file)
    columns = sql.SQL(", ").join(sql.SQL("{} numeric").format(sql.Identifier(c)) for c in header)
    names = sql.SQL(", ").join(map(sql.Identifier, header))
    with database.connect() as connection:
        create = "CREATE TABLE public.census (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, {})"
        connection.execute(sql.SQL(create).format(columns))
        statement = sql.SQL("COPY public.census ({}) FROM STDIN").format(names)
        with connection.cursor().copy(statement) as copy:
            for row in rows:
                copy.write_row(row)
    return header


def test_the_view_loses_what_the_literature_says_of_mdav(database):
    columns = load(database)
    rules = (
        ColumnRule("id", Role.IDENTIFIER),
        *(ColumnRule(column, Role.QUASI, recoding="mean") for column in columns),
    )
    policy = Policy(TABLE, rules, (ModelSpec("k-anonymity", {"k": 5}),))
    dbanon.set_policy(TABLE, policy, settings=database.settings)
    release = dbanon.publish("census", algorithm="mdav", k=5, settings=database.settings)
    lost = " + ".join(
        f"1 - (SELECT var_pop({c}) FROM anon.census) / (SELECT var_pop({c}) FROM public.census)"
        for c in columns
    )
    ((loss,),) = database.execute(f"SELECT 100 * ({lost}) / {len(columns)}")
    assert float(loss) == pytest.approx(9.088435497636, rel=1e-6)
    means = ", ".join(
        f"(SELECT round(avg({c}), 3) FROM anon.census)"
        f" = (SELECT round(avg({c}), 3) FROM public.census)"
        for c in columns
    )
    assert [(True,) * len(columns)] == database.execute(f"SELECT {means}")
    found = release.loss.metrics
    assert found["sse-ratio"] == pytest.approx(9.088435497636, abs=1e-6)
    assert found["il3"] == pytest.approx(0.09088435, abs=1e-6)  # variances lose what is within
    assert found["il2"] == pytest.approx(0, abs=1e-9)
    assert {"il1", "il4", "il5", "il-overall"} <= found.keys()


@pytest.mark.exhaustive
def test_the_variance_of_columns_is_restored_on_demand(database):
    columns = load(database)[:4]
    rules = (
        ColumnRule("id", Role.IDENTIFIER),
        *(
            ColumnRule(column, Role.QUASI, recoding="mean", digits=9, restore_variance=True)
            for column in columns
        ),
    )
    policy = Policy(TABLE, rules, (ModelSpec("k-anonymity", {"k": 5}),), rest="drop")
    dbanon.set_policy(TABLE, policy, settings=database.settings)
    release = dbanon.publish("census", algorithm="mdav", settings=database.settings)
    for column in columns:
        ((mean, variance),) = database.execute(
            f"SELECT (SELECT avg({column}) FROM anon.census) / avg({column}),"
            f" (SELECT var_pop({column}) FROM anon.census) / var_pop({column}) FROM public.census"
        )
        assert (float(mean), float(variance)) == pytest.approx((1, 1), abs=1e-9)
    assert release.loss.metrics["il3"] == pytest.approx(0, abs=1e-9)
    database.execute(f"UPDATE public.census SET {columns[0]} = {columns[0]} + 1 WHERE id < 20")
    (found,) = dbanon.refresh("census", settings=database.settings)
    assert found.growth is None  # all classes are stretched anew
