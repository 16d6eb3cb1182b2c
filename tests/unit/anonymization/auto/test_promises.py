"""What the efforts of `auto` promise each other and other algorithms, on every small table."""

from dataclasses import replace

import numpy as np
import pytest
from builders import encoded, policy_of
from hypothesis import given, settings
from hypothesis import strategies as st
from selection import at_depth, exhaustive_after
from spaces import problems, random_table, table_of

from dbanon.anonymization.auto import algorithm
from dbanon.anonymization.auto.algorithm import Auto
from dbanon.anonymization.auto.plans import EFFORTS
from dbanon.anonymization.auto.space import make_space, total_cost
from dbanon.anonymization.interfaces import Requirement
from dbanon.anonymization.problem import Problem, solve
from dbanon.domain.errors import Unsatisfiable
from dbanon.domain.outcomes import Stages
from dbanon.domain.policy import ModelSpec

PEERS = ("mondrian", "k-member", "full-domain")
CLOSE = (ModelSpec("t-closeness", {"t": 0.4}),)
NONE_OUT = "none left out"


def policy(table, k, *models, l=1, allowed=0.0):
    names = [column.name for column in table.quasi]
    asked = policy_of(names, table.sensitive_names, k=k, l=l, max_suppressed=allowed)
    return replace(asked, models=(*asked.models, *models))


def lost(table, asked, name, *, seed):
    """Return what is lost by an effort or another algorithm, more than all where it fails."""
    way = {"algorithm": "auto", "params": {"effort": name}}
    asked = replace(asked, **(way if name in EFFORTS else {"algorithm": name}))
    try:
        return solve(Problem(table, asked), seed=seed, stages=Stages()).loss.asked
    except Unsatisfiable:
        return 2.0


def broken(table, asked, *, seed):
    """Return each promise that is broken: what loses more, and than what."""
    by = {name: lost(table, asked, name, seed=seed) for name in (*EFFORTS, *PEERS)}
    promised = [("best", "balanced"), ("balanced", "fast"), *(("fast", peer) for peer in PEERS)]
    found = [pair for pair in promised if by[pair[0]] > by[pair[1]] + 1e-9]
    if asked.max_suppressed > 0:
        whole = replace(asked, max_suppressed=0.0)
        without = {effort: lost(table, whole, effort, seed=seed) for effort in EFFORTS}
        found += [(name, NONE_OUT) for name in EFFORTS if by[name] > without[name] + 1e-9]
    return found


@pytest.mark.parametrize(
    ("n", "seed", "k", "models", "allowed"),
    exhaustive_after(
        1,
        [
            (60, 4, 9, (), 0.0),  # balanced lost more than fast
            (40, 0, 4, CLOSE, 0.2),  # the same, as classes were merged for a model
            (24, 29, 5, (), 0.3),  # best lost more than balanced
            (12, 4, 5, (), 0.4),  # fast lost more than Mondrian
            (12, 34, 5, (), 0.4),  # than k-member clustering, and than the full-domain search
            (24, 2, 5, (), 0.3),  # than with no row left out
            (40, 26, 4, CLOSE, 0.2),  # the same by far, as what was left out had to come back
        ],
    ),
)
def test_more_effort_loses_no_more_than_less_or_than_other_algorithms(n, seed, k, models, allowed):
    table = random_table(n, seed=seed)
    assert [] == broken(table, policy(table, k, *models, allowed=allowed), seed=seed)


@pytest.mark.exhaustive
@settings(max_examples=at_depth(10))
@given(problems(most=40), st.sampled_from([(), CLOSE]), st.sampled_from([0.0, 0.1, 0.4]))
def test_any_small_table_is_grouped_as_promised(problem, models, allowed):
    table, k, l = problem
    assert [] == broken(table, policy(table, k, *models, l=l, allowed=allowed), seed=k)


def test_columns_that_all_weigh_nothing_weigh_the_same():
    values = {"integer": [*range(9)] * 4, "letter": [*"abcdef"] * 6}
    found = [
        solve(Problem(table, policy(table, 4)), seed=0, stages=Stages()).assignment.group.tolist()
        for table in (table_of(values, weights=dict.fromkeys(values, w)) for w in (0.0, 1.0))
    ]
    assert found[0] == found[1]


@pytest.mark.parametrize("k", exhaustive_after(1, [2, 5, 25]))
def test_more_effort_costs_no_more_than_less_where_rows_are_many(k, monkeypatch):
    monkeypatch.setattr(algorithm, "SMALL", 100)
    random = np.random.default_rng(k)
    table = encoded({f"q{i}": random.integers(0, 90, 400).tolist() for i in range(3)})
    space = make_space(table, Requirement(k), loss="ncp")
    fast, balanced, best = (
        total_cost(space, Auto(effort=effort).assign(table, Requirement(k), seed=0).group)
        for effort in EFFORTS
    )
    assert best <= balanced <= fast
