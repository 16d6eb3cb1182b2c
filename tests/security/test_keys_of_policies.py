"""A key that a policy names is proved of all rows that are read, not of those that are shown."""

from contextlib import suppress

import pytest

import dbanon
from dbanon.domain.policy import (
    K_ANONYMITY,
    ColumnRule,
    Comparison,
    Condition,
    ModelSpec,
    Policy,
    Role,
)
from dbanon.domain.table import TableName

VISITS = TableName("public", "visits")
RULES = (
    ColumnRule("code", Role.IDENTIFIER),
    ColumnRule("age", Role.QUASI),
    ColumnRule("disease", Role.INSENSITIVE),
)
ADULTS = (Condition("age", Comparison.AT_LEAST, 18),)
MODELS = (ModelSpec(K_ANONYMITY, {"k": 5}),)


def shown(database):
    """Return how many rows are published, and how many of them are children."""
    return database.execute(
        "SELECT count(*), count(*) FILTER (WHERE disease ~ 'child') FROM anon.visits"
    )


@pytest.mark.parametrize("relation", ["TABLE", "VIEW", "MATERIALIZED VIEW"])
def test_rows_that_meet_no_condition_are_not_published_by_the_key_of_another(database, relation):
    rows = (
        "SELECT i AS code, 20 + i % 20 AS age, 'adult ' || i % 3 AS disease"
        " FROM generate_series(1, 100) AS i"
        " UNION ALL SELECT i, i % 18, 'child ' || i % 3 FROM generate_series(1, 50) AS i"
    )
    database.execute(f"CREATE {relation} public.visits AS {rows}")
    policy = Policy(VISITS, RULES, MODELS, algorithm="mondrian", key=("code",), where=ADULTS)
    dbanon.set_policy(VISITS, policy, settings=database.settings)
    with suppress(dbanon.PolicyError):  # to refuse the key is as good
        dbanon.publish(VISITS, settings=database.settings)
        assert shown(database) == [(100, 0)]


@pytest.mark.parametrize("relation", ["TABLE", "VIEW", "MATERIALIZED VIEW"])
def test_rows_that_are_left_out_are_not_published_by_the_key_of_another(database, relation):
    """Four rows of odd ages are left out within the budget, and others have their keys."""
    rows = (
        "SELECT i AS code, 20 + i % 20 AS age, 'adult ' || i % 3 AS disease"
        " FROM generate_series(1, 100) AS i"
        " UNION ALL SELECT i, 1000 + i * 1000, 'child ' || i % 3 FROM generate_series(1, 4) AS i"
    )
    database.execute(f"CREATE {relation} public.visits AS {rows}")
    policy = Policy(VISITS, RULES, MODELS, algorithm="mondrian", key=("code",), max_suppressed=0.05)
    dbanon.set_policy(VISITS, policy, settings=database.settings)
    with suppress(dbanon.PolicyError):
        release = dbanon.publish(VISITS, settings=database.settings)
        assert release.loss.n_suppressed == 4
        assert shown(database) == [(100, 0)]
