"""Columns that are kept: every class has one value of each."""

import numpy as np
import pytest
from builders import encoded, policy_of
from hypothesis import given, settings
from hypothesis import strategies as st

from dbanon.anonymization.loss.metrics import publication
from dbanon.anonymization.outcome import certify, published_values
from dbanon.anonymization.problem import Problem, solve
from dbanon.domain.assignment import Assignment
from dbanon.domain.errors import PolicyError, Unsatisfiable
from dbanon.domain.outcomes import Stages
from dbanon.domain.policy import ModelSpec

KEPT = {"sex": {"keep": True}}


def outcome_of(columns, sensitive=None, *, rules=KEPT, k=2, l=1, seed=0, **changes):
    table = encoded(columns, sensitive, rules=rules)
    policy = policy_of(columns, sensitive or (), k=k, l=l, rules=rules, **changes)
    return solve(Problem(table, policy), seed=seed, stages=Stages())


def shown(outcome, column):
    """Return the published value of each row, "left out" where there is none."""
    values = outcome.values.columns[column]
    labels = [*values.labels, "left out"]
    return [labels[values.index[g]] if g >= 0 else "left out" for g in outcome.assignment.group]


@pytest.mark.parametrize("algorithm", ["auto", "mondrian", "mdav"])
def test_a_kept_column_is_published_as_it_is(algorithm):
    sex = ["f", "m"] * 6 + [None, None]
    ages = [*range(30, 42), 50, 60]
    outcome = outcome_of({"age": ages, "sex": sex}, algorithm=algorithm)
    assert sex == shown(outcome, 1)
    assert outcome.loss.columns["sex"] == 0
    assert outcome.values.columns[1].recoding == "mode"
    assert outcome.loss.smallest_class >= 2


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.sampled_from(["f", "m", None]), st.integers(0, 9)),
        min_size=4,
        max_size=30,
    ),
    st.integers(1, 3),
    st.sampled_from([0.0, 0.1, 0.5]),
)
def test_rows_stay_within_what_they_keep(rows, k, allowed):
    year, sex, age = (list(column) for column in zip(*rows, strict=True))
    rules = {"year": {"keep": True}, "sex": {"keep": True}}
    sizes = {
        pair: list(zip(year, sex, strict=True)).count(pair) for pair in zip(year, sex, strict=True)
    }
    lost = sum(size for size in sizes.values() if size < k)
    columns = {"year": year, "sex": sex, "age": age}
    possible = lost <= allowed * len(rows) and lost < len(rows) and len(rows) >= k
    if not possible:
        with pytest.raises(Unsatisfiable):
            outcome_of(columns, rules=rules, k=k, max_suppressed=allowed, algorithm="mondrian")
        return
    outcome = outcome_of(columns, rules=rules, k=k, max_suppressed=allowed, algorithm="mondrian")
    for i, pair in enumerate(zip(shown(outcome, 0), shown(outcome, 1), strict=True)):
        assert pair in {(str(year[i]), sex[i]), ("left out", "left out")}
        if sizes[year[i], sex[i]] < k:
            assert "left out" in pair
    assert outcome.assignment.n_suppressed <= allowed * len(rows)
    assert outcome.loss.smallest_class >= k


def test_what_cannot_be_kept_is_counted():
    columns = {"age": [1, 2, 3, 4, 5], "sex": ["f", "f", "f", "f", "m"]}
    with pytest.raises(Unsatisfiable, match="1 of 5 rows cannot keep their values of sex"):
        outcome_of(columns)
    outcome = outcome_of(columns, max_suppressed=0.2)
    assert ["f", "f", "f", "f", "left out"] == shown(outcome, 1)


def test_a_value_without_diversity_cannot_be_kept():
    columns = {"age": [1, 2, 3, 4], "sex": ["f", "f", "m", "m"]}
    with pytest.raises(Unsatisfiable, match="2 of 4 rows cannot keep their values of sex"):
        outcome_of(columns, {"disease": ["flu", "gout", "flu", "flu"]}, l=2)


def test_the_budget_is_that_of_all_rows():
    columns = {"age": [*range(20)], "sex": ["f"] * 10 + ["m"] * 9 + ["d"]}
    outcome = outcome_of(columns, max_suppressed=0.15, algorithm="mondrian")
    assert 1 <= outcome.assignment.n_suppressed <= 3


@pytest.mark.parametrize(
    "spec",
    [
        ModelSpec("t-closeness", {"t": 0.9}),
        ModelSpec("k-map", {"k": 3}),
        ModelSpec("delta-presence", {"dmax": 0.5}),
    ],
)
def test_what_compares_a_class_with_others_does_not_go_with_it(spec):
    columns, sensitive = {"age": [1, 2, 3, 4], "sex": [*"ffmm"]}, {"disease": [*"abab"]}
    table, policy = (
        encoded(columns, sensitive, rules=KEPT),
        policy_of(columns, sensitive, rules=KEPT),
    )
    policy = type(policy)(policy.table, policy.columns, (*policy.models, spec))
    with pytest.raises(PolicyError, match="looks beyond a class"):
        solve(Problem(table, policy), seed=0, stages=Stages())


def test_persons_keep_it_too():
    columns = {"age": [1, 1, 2, 2, 3, 4], "sex": ["f", "f", "f", "m", "m", "m"]}
    table, policy = encoded(columns, rules=KEPT), policy_of(columns, rules=KEPT)
    subjects = np.array([0, 0, 1, 2, 3, 3], np.int32)
    table.quasi[0].codes[5] = table.quasi[0].codes[4]
    outcome = solve(Problem(table, policy, subjects), seed=0, stages=Stages())
    assert ["f", "f", "f", "m", "m", "m"] == shown(outcome, 1)


def test_no_class_is_certified_that_mixes_what_is_kept():
    columns = {"age": [1, 2], "sex": ["f", "m"]}
    table, policy = encoded(columns, rules=KEPT), policy_of(columns, rules=KEPT)
    assignment = Assignment(np.zeros(2, np.int32), 1)
    found = publication(table, assignment, published_values(table, assignment), k=2)
    with pytest.raises(Unsatisfiable, match="agree in sex"):
        certify(found, policy, None, budget=0)
