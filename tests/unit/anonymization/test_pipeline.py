from dataclasses import replace

import numpy as np
import pytest
from builders import encoded, policy_of

from dbanon.anonymization import outcome as outcomes
from dbanon.anonymization import registry
from dbanon.anonymization.adjusting import repair
from dbanon.anonymization.algorithms.partitioning import mondrian
from dbanon.anonymization.problem import Problem, solve
from dbanon.domain.assignment import Assignment
from dbanon.domain.errors import DbanonError, PolicyError, Unsatisfiable
from dbanon.domain.outcomes import Stages
from dbanon.domain.policy import ModelSpec
from dbanon.domain.table import ColumnKind

PEOPLE = {"age": [20, 21, 22, 60, 61, 62], "sex": ["f", "f", "m", "m", "m", "f"]}
DISEASES = {"disease": ["flu", "cold", "flu", "flu", "flu", "cold"]}


def outcome(table, **changes):
    names = [column.name for column in table.quasi]
    return solve(
        Problem(table, policy_of(names, table.sensitive_names, **changes)), seed=1, stages=Stages()
    )


def test_an_outcome_is_a_partition_with_values_and_loss():
    result = outcome(encoded(PEOPLE, DISEASES), k=3, l=2)
    assert [3, 3] == np.bincount(result.assignment.group).tolist()
    assert ["interval", "label"] == [column.recoding for column in result.values.columns]
    assert (6, 0, 2, 3) == (
        result.loss.n_rows,
        result.loss.n_suppressed,
        result.loss.n_classes,
        result.loss.smallest_class,
    )
    of_numbers = {*(f"il{i}" for i in range(1, 6)), "il-overall", "il1s"}  # no column has any
    assert set(registry.METRICS) == set(result.loss.metrics) | of_numbers


def test_stages_are_measured():
    stages = Stages()
    solve(Problem(encoded(PEOPLE), policy_of(PEOPLE, k=2)), seed=1, stages=stages)
    assert ["cluster", "recode"] == [name for name in stages.seconds if name != "compile"]


@pytest.mark.parametrize("algorithm", registry.ALGORITHMS)
def test_every_algorithm_can_be_named(algorithm):
    result = outcome(encoded(PEOPLE, DISEASES), k=2, l=2, algorithm=algorithm)
    assert result.loss.smallest_class >= 2


@pytest.mark.parametrize(
    ("changes", "message", "hint"),
    [
        ({"algorithm": "magic"}, "no algorithm 'magic'", "mondrian, mondrian-relaxed, mdav"),
        (
            {"algorithm": "mondrian", "params": {"depth": 3}},
            "no parameter of mondrian 'depth'",
            "it has none",
        ),
        ({"rules": {"age": {"recoding": "blur"}}}, "no recoding 'blur'", "interval"),
        (
            {"rules": {"age": {"recoding": "label"}}},
            "age: recoding label needs a",
            "interval",
        ),
        ({"rules": {"sex": {"recoding": "mean"}}}, "sex: recoding mean needs an", "label"),
        ({"rules": {"sex": {"weight": -1.0}}}, "sex: a weight", "leave"),
        ({"rules": {"sex": {"weight": 1e308}}}, "sex: a weight is a number from 0 to", "leave"),
        ({"k": 0}, "k must be at least 1", "takes k"),
        ({"l": 0}, "l must be at least 1", "takes l"),
        ({"max_suppressed": 1.0}, "max_suppressed = 1.0", "0.02"),
        ({"l": 2}, "distinct 2-diversity but names no sensitive column", "sensitive"),
    ],
)
def test_what_the_policy_has_wrong_is_told_with_the_choices(changes, message, hint):
    table = encoded(PEOPLE, rules=changes.get("rules"))
    with pytest.raises(PolicyError, match=message) as caught:
        outcome(table, **changes)
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    "model", [ModelSpec("x-closeness", {"t": 1}), ModelSpec("k-anonymity", {"m": 1})]
)
def test_a_model_that_is_unknown_or_lacks_its_parameter_is_refused(model):
    policy = policy_of(PEOPLE)
    object.__setattr__(policy, "models", (*policy.models, model))
    with pytest.raises(PolicyError, match=model.name):
        solve(Problem(encoded(PEOPLE), policy), seed=1, stages=Stages())


def test_a_policy_without_quasi_identifiers_is_refused():
    with pytest.raises(PolicyError, match="no quasi-identifier"):
        outcome(encoded({}, DISEASES))


@pytest.mark.parametrize(
    ("columns", "k", "message"),
    [({"age": []}, 2, "0 rows, fewer than k = 2"), ({"age": [1]}, 2, "1 rows, fewer than k = 2")],
)
def test_too_few_rows_are_unsatisfiable(columns, k, message):
    with pytest.raises(Unsatisfiable, match=message):
        outcome(encoded(columns), k=k)


def test_an_empty_table_is_unsatisfiable_even_without_k():
    policy = policy_of(["age"])
    object.__setattr__(policy, "models", ())
    with pytest.raises(Unsatisfiable, match="0 rows"):
        solve(Problem(encoded({"age": []}), policy), seed=1, stages=Stages())


def test_too_few_sensitive_values_are_unsatisfiable():
    with pytest.raises(Unsatisfiable, match="disease has 2 distinct values, fewer than l = 3"):
        outcome(encoded(PEOPLE, DISEASES), l=3)


@pytest.mark.parametrize(("share", "most"), [(0.0, 0), (0.16, 0), (0.17, 1), (0.5, 3)])
def test_suppression_stays_within_the_budget(share, most):
    table = encoded({"x": [0, 0, 0, 0, 0, 100]})
    result = outcome(table, k=3, max_suppressed=share)
    assert min(most, 1) == result.assignment.n_suppressed == result.loss.n_suppressed


def test_a_budget_of_29_percent_of_100_rows_is_29_rows(monkeypatch):
    budgets = []
    monkeypatch.setattr(
        repair,
        "trim",
        lambda _table, assignment, _requirement, *, budget: budgets.append(budget) or assignment,
    )
    outcome(encoded({"x": [1] * 100}), max_suppressed=0.29, algorithm="mondrian")
    assert [29] == budgets


@pytest.mark.parametrize("groups", [[0, 1, 2, 3, 4, 5], [0, 0, -1, -1, -1, -1], [-1] * 6])
def test_nothing_is_returned_that_does_not_meet_the_models(monkeypatch, groups):
    broken = Assignment(np.array(groups, np.int32), max(groups) + 1)
    monkeypatch.setattr(mondrian, "cut", lambda *_, **__: broken)
    with pytest.raises(DbanonError, match="do not meet the policy"):
        outcome(encoded(PEOPLE), algorithm="mondrian")


def test_groups_below_l_are_not_returned(monkeypatch):
    groups = Assignment(np.array([0, 0, 0, 1, 1, 2], np.int32), 3)
    monkeypatch.setattr(mondrian, "cut", lambda *_, **__: groups)
    with pytest.raises(DbanonError, match="do not meet"):
        outcome(encoded(PEOPLE, DISEASES), k=1, l=2, algorithm="mondrian")


def test_a_search_that_is_stopped_before_it_found_anything_gives_nothing():
    table = encoded({"x": list(range(50))})
    stages = Stages()
    stages.stopped = True
    with pytest.raises(KeyboardInterrupt):
        solve(Problem(table, policy_of(["x"], algorithm="mondrian")), seed=0, stages=stages)
    found = solve(Problem(table, policy_of(["x"], algorithm="auto")), seed=0, stages=stages)
    assert found.assignment.n_groups > 5
    assert np.bincount(found.assignment.group).min() >= 2


def test_what_takes_large_classes_is_noted():
    heard = []
    table = encoded({"x": list(range(90))}, {"s": ["a"] * 83 + ["b"] * 7})
    asked = (ModelSpec("k-anonymity", {"k": 2}), ModelSpec("entropy-l-diversity", {"l": 1.314}))
    policy = policy_of(["x"], ["s"])
    object.__setattr__(policy, "models", asked)
    solve(Problem(table, policy), seed=0, stages=Stages(on_note=heard.append))
    told = [text for text in heard if "nearly out of reach" in text]
    assert 1 == len(told)
    assert told[0].startswith("entropy 1.314-diversity of s is nearly out of reach")


@pytest.mark.parametrize("k", [1, 2])
def test_a_k_below_what_a_model_takes_does_not_make_few_large_classes(k):
    rng = np.random.default_rng(0)
    people = {"age": rng.integers(18, 90, 400).tolist(), "zip": rng.integers(0, 30, 400).tolist()}
    salary = {"salary": [str(pay) for pay in rng.integers(1000, 9000, 400)]}
    table = encoded(people, salary, kinds={"salary": ColumnKind.INTEGER})
    spread = ModelSpec("k-e-anonymity", {"k": 10, "e": 4000.0})

    def classes(k):
        policy = policy_of(people, salary, k=k, algorithm="mondrian")
        policy = replace(policy, models=(*policy.models, spread))
        return solve(Problem(table, policy), seed=1, stages=Stages()).loss.n_classes

    assert classes(k) == classes(10) > 20


@pytest.mark.parametrize("max_suppressed", [0.0, 0.3])
def test_recodings_are_weighed_by_what_they_would_lose(max_suppressed):
    ages = [20, 21, 22, 60, 61, 62, 90, 20, 22, 61]
    sexes = ["f", "f", "m", "m", "m", "f", "m", "f", "f", "m"]
    own = {"recoding": "interval", "snap": 10}
    columns = {"age": ages, "sex": sexes, "same": ages}
    table = encoded(columns, rules={"age": own, "same": {"top": 60.0}})
    found = outcome(table, k=3, max_suppressed=max_suppressed)
    losses = outcomes.losses_by_recoding(table, found.assignment)
    for column, recoding in (("age", "interval"), ("sex", "label")):
        assert found.loss.columns[column] == pytest.approx(losses[column][recoding])
    rounded = {"interval", "interval-text", "bounds", "center", "global", "suppress"}
    assert rounded == losses["age"].keys()
    assert rounded - {"center"} == losses["same"].keys()
    assert sorted(losses["age"].values()) == [*losses["age"].values()]
    assert losses["age"]["interval"] < 1.0 == losses["age"]["suppress"]


def test_a_value_that_nobody_publishes_is_one_of_its_column_all_the_same():
    table = encoded({"sex": ["f", "m", "f", "m", None]}, rules={"sex": {"recoding": "set"}})
    assignment = Assignment(np.array([0, 0, 1, 1, -1], np.int32), 2)
    losses = outcomes.losses_by_recoding(table, assignment)
    assert losses["sex"]["set"] == pytest.approx((4 * 2 / 3 + 1) / 5)  # NULL is a third value


def test_of_many_classes_some_are_weighed(monkeypatch):
    table = encoded({"age": [*range(100)]})
    found = outcome(table, k=2)
    whole = outcomes.losses_by_recoding(table, found.assignment)
    monkeypatch.setattr(outcomes, "_WEIGHED", 5)
    some = outcomes.losses_by_recoding(table, found.assignment)
    others = ["interval", "interval-text", "bounds", "mean", "median", "mode", "set", "suppress"]
    assert set(others) <= whole["age"].keys() == some["age"].keys()
    assert some["age"]["interval"] == pytest.approx(whole["age"]["interval"], rel=0.5)
