import numpy as np
import pytest
from builders import encoded, policy_of
from hypothesis import given, settings
from hypothesis import strategies as st
from selection import at_depth

from dbanon.anonymization.outcome import published_values
from dbanon.anonymization.problem import Problem, solve
from dbanon.domain.assignment import Assignment
from dbanon.domain.errors import PolicyError, Unsatisfiable
from dbanon.domain.outcomes import Stages
from dbanon.domain.policy import ModelSpec
from dbanon.models.registry import model_of

ROWS = st.lists(
    st.tuples(
        st.integers(0, 5), st.sampled_from("uv"), st.sampled_from("abc"), st.sampled_from("mn")
    ),
    min_size=2,
    max_size=24,
)
SPECS = [
    {"k": 3, "y": ("s",)},
    {"k": 4, "y": ("s", "t")},
    {"k": 2, "x": ("age",), "y": ("s",)},
    {"k": 2, "x": ("age", "t"), "y": ("s",)},
    {"k": 2, "x": ("t",), "y": ("s",)},
    {"k": 2, "x": ("s",), "y": ("age", "t")},
]


def table_of(rows):
    ages, sexes, s, t = zip(*rows, strict=True)
    return encoded({"age": ages, "sex": sexes}, {"s": list(s), "t": list(t)})


def publish(table, params, *, k=1):
    policy = policy_of(["age", "sex"], ["s", "t"], k=k, algorithm="mondrian")
    models = (policy.models[0], ModelSpec("x-y-anonymity", params))
    object.__setattr__(policy, "models", models)
    return solve(Problem(table, policy), seed=0, stages=Stages())


def linked(outcome, rows, params):
    """Return the fewest values of y that what is published links to a value of x."""
    shown = []
    for row, group in zip(rows, outcome.assignment.group.tolist(), strict=True):
        values = {c.name: c.labels[c.index[group]] for c in outcome.values.columns}
        shown.append(values | {"s": row[2], "t": row[3]})
    x = params.get("x", ("age", "sex"))
    found = {}
    for row in shown:
        key = tuple(row[name] for name in x)
        found.setdefault(key, set()).add(tuple(row[name] for name in params["y"]))
    return min(map(len, found.values()))


@settings(max_examples=at_depth(60))
@given(ROWS, st.sampled_from(SPECS))
def test_what_is_published_links_x_to_k_values_of_y(rows, params):
    table = table_of(rows)
    try:
        outcome = publish(table, params)
    except Unsatisfiable:
        searched = "s" in params["y"] and params.get("x") != ("t",)
        one = Assignment(np.zeros(len(rows), np.int32), 1)
        model = model_of(ModelSpec("x-y-anonymity", params))
        possible = model.holds(table, one.group, published_values(table, one))
        assert not (searched and possible)
        return
    assert linked(outcome, rows, params) >= params["k"]


def test_k_of_y_is_out_of_reach_where_too_few_values_are():
    rows = [(1, "u", "a", "m"), (2, "v", "b", "m"), (3, "v", "b", "n")]
    message = r"s has 2 different values: \(X, Y\)-anonymity with k = 3 is impossible"
    with pytest.raises(Unsatisfiable, match=message):
        publish(table_of(rows), {"k": 3, "y": ("s",)})
    with pytest.raises(Unsatisfiable, match="s has 1 different values with some value of x"):
        publish(table_of(rows), {"k": 2, "x": ("age", "t"), "y": ("s",)})


def test_what_merging_does_not_help_is_refused_when_it_does_not_hold():
    table = table_of([(age, "u", s, "m") for age in (1, 2) for s in "ab"])
    params = {"k": 2, "x": ("s",), "y": ("age",)}
    assert publish(table, params).loss.n_classes == 2
    with pytest.raises(Unsatisfiable, match="k = 2 is not met by groups of 'mondrian'"):
        publish(table, params, k=4)


def test_a_column_that_is_not_published_is_refused():
    with pytest.raises(PolicyError, match="person is neither a quasi-identifier nor"):
        publish(table_of([(1, "u", "a", "m")]), {"k": 1, "y": ("person",)})
    with pytest.raises(PolicyError, match="y shares a column with x"):
        publish(table_of([(1, "u", "a", "m")]), {"k": 1, "x": ("s",), "y": ("s",)})


def test_quasi_identifiers_that_are_all_in_y_leave_none_for_x():
    with pytest.raises(PolicyError, match="leaves none for x"):
        publish(table_of([(1, "u", "a", "m")] * 2), {"k": 1, "y": ("age", "sex")})
