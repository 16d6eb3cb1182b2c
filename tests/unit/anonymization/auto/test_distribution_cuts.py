from dataclasses import replace

import naive
import numpy as np
import pytest
from builders import encoded, policy_of
from compiled import called
from hypothesis import given
from hypothesis import strategies as st

from dbanon.anonymization.adjusting import repair
from dbanon.anonymization.auto.distribution_cuts import (
    cut_large,
    is_pressed,
    recut,
    shares_of,
    start_by_shares,
)
from dbanon.anonymization.auto.space import make_space, total_cost
from dbanon.anonymization.auto.start import start_quickly
from dbanon.anonymization.interfaces import Requirement
from dbanon.anonymization.problem import Problem, solve
from dbanon.domain.assignment import Assignment
from dbanon.domain.outcomes import Stages
from dbanon.domain.policy import ModelSpec
from dbanon.kernels.auto.distribution_cuts import _sort
from dbanon.models.demands import achieved, demands_of, wholes

SPECS = [
    ModelSpec("t-closeness", {"t": 0.2}),
    ModelSpec("t-closeness", {"t": 0.1, "distance": "ordered"}),
    ModelSpec("n-t-closeness", {"n": 20, "t": 0.2}),
    ModelSpec("beta-likeness", {"beta": 0.5}),
    ModelSpec("delta-disclosure", {"delta": 1.0}),
    ModelSpec("entropy-l-diversity", {"l": 1.8}),
    ModelSpec("recursive-l-diversity", {"c": 2.0, "l": 2}),
    ModelSpec("alpha-k-anonymity", {"alpha": 0.6}),
]


def alike(n, *, seed=0):
    """Return rows whose sensitive values follow from where they lie."""
    random = np.random.default_rng(seed)
    x, y = random.integers(0, 100, (2, n))
    values = np.where(random.random(n) < 0.8, x // 34, y // 34)
    columns = {"x": x.tolist(), "y": y.tolist(), "z": [f"c{i % 5}" for i in y.tolist()]}
    rules = {"z": {"recoding": "set"}, "s": {"order": ("v1", "v2", "v0")}}
    return encoded(columns, {"s": [f"v{v}" for v in values]}, rules=rules)


def asked(table, *specs, k=3):
    policy = policy_of([column.name for column in table.quasi], table.sensitive_names)
    object.__setattr__(policy, "models", specs)
    return Requirement(k, demands=demands_of(table, policy))


def meets(table, requirement, label):
    rows = np.arange(table.n_rows)
    compared = wholes(table, requirement.demands, rows)
    levels = [
        demand.model.bound.holds(
            achieved(table, demand, rows, label, whole=whole), demand.model.required
        )
        for demand, whole in zip(requirement.demands, compared, strict=True)
    ]
    return np.bincount(label).min() >= requirement.k and all(level.all() for level in levels)


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_cuts_keep_what_is_asked_and_cutting_pairs_anew_lowers_the_loss(spec):
    table = alike(400)
    requirement = asked(table, spec)
    space = make_space(table, requirement, loss="ncp")
    shares = shares_of(space)
    label = start_by_shares(space, shares)
    assert meets(table, requirement, label)
    better = recut(space, label, shares, seed=0, number=0)
    assert meets(table, requirement, better)
    assert total_cost(space, better) <= total_cost(space, label)
    assert better.tolist() == recut(space, label, shares, seed=0, number=0).tolist()


@given(st.integers(1, 40), st.integers(1, 4), st.integers(0, 5), st.sampled_from([0.0, 0.2, 0.5]))
def test_any_few_rows_are_cut(n, k, seed, t):
    table = alike(max(n, k), seed=seed)
    requirement = asked(table, ModelSpec("t-closeness", {"t": t}), k=k)
    space = make_space(table, requirement, loss="ncp")
    assert meets(table, requirement, start_by_shares(space, shares_of(space)))
    assert meets(table, requirement, start_quickly(space))


def test_several_sensitive_columns_are_kept_together():
    random = np.random.default_rng(0)
    values = {name: [f"v{i}" for i in random.integers(0, 3, 200)] for name in ("a", "b")}
    table = encoded({"x": list(range(200))}, values)
    requirement = asked(table, ModelSpec("t-closeness", {"t": 0.2}))
    space = make_space(table, requirement, loss="ncp")
    label = start_by_shares(space, shares_of(space))
    assert meets(table, requirement, label)
    assert label.max() >= 4


def test_too_many_values_are_left_to_others():
    table = encoded({"x": list(range(3000))}, {"s": [str(i) for i in range(3000)]})
    space = make_space(table, asked(table, ModelSpec("t-closeness", {"t": 0.9})), loss="ncp")
    assert shares_of(space) is None


def test_sensitive_values_press_where_neighbours_have_the_same():
    table = alike(400)
    mild = asked(table, ModelSpec("alpha-k-anonymity", {"alpha": 0.99}))
    assert not is_pressed(make_space(table, mild, loss="ncp"))
    tight = asked(table, ModelSpec("t-closeness", {"t": 0.1}))
    assert is_pressed(make_space(table, tight, loss="ncp"))
    counted = asked(table, ModelSpec("p-sensitivity", {"p": 3}))
    assert not is_pressed(make_space(table, counted, loss="ncp"))


def test_a_quick_start_has_small_clusters_where_nothing_else_is_asked():
    space = make_space(alike(100), Requirement(5), loss="ncp")
    label = start_quickly(space)
    sizes = [len(rows) for rows in naive.members(Assignment(label, int(label.max()) + 1))]
    assert 100 == sum(sizes)
    assert 5 <= min(sizes) <= max(sizes) <= 9


def test_a_quick_start_deals_values_where_neighbours_break_a_rule():
    table = alike(400)
    requirement = asked(table, ModelSpec("t-closeness", {"t": 0.1}))
    label = start_quickly(make_space(table, requirement, loss="ncp"))
    assert meets(table, requirement, label)
    assert label.max() >= 4


@pytest.mark.parametrize("calls", [0, 1, 5, 40])
@pytest.mark.parametrize("spec", SPECS[::3], ids=lambda spec: spec.name)
def test_cuts_that_run_out_of_time_keep_what_is_asked(spec, calls):
    table = alike(6_000)
    requirement = asked(table, spec)
    space = make_space(table, requirement, loss="ncp")
    asked_for = iter(range(10**9))
    label = start_by_shares(space, shares_of(space), over=lambda: next(asked_for) >= calls)
    assert meets(table, requirement, label)
    whole = start_by_shares(space, shares_of(space))
    assert label.max() <= whole.max()


def test_cuts_that_run_out_of_time_lose_less_than_dealing_values():
    table = alike(6_000)
    space = make_space(table, asked(table, SPECS[-3]), loss="ncp")
    asked_for = iter(range(10**9))
    cut = start_by_shares(space, shares_of(space), over=lambda: next(asked_for) >= 5)
    assert cut.max() > 0
    assert total_cost(space, cut) < total_cost(space, start_quickly(space))


@pytest.mark.parametrize("effort", ["fast", "balanced"])
@pytest.mark.parametrize(
    "spec",
    [
        ModelSpec("alpha-k-anonymity", {"alpha": 0.7}),
        ModelSpec("entropy-l-diversity", {"l": 2.2}),
    ],
)
def test_a_block_whose_greedy_groups_break_a_rule_is_cut(spec, effort):
    random = np.random.default_rng(1)
    diseases = random.choice(["flu", "cold", "gout", "mumps"], 300, p=[0.62, 0.3, 0.05, 0.03])
    columns = {name: random.integers(0, 10**6, 300).tolist() for name in ("x", "y")}
    table = encoded(columns, {"disease": diseases.tolist()})
    policy = policy_of(columns, ["disease"], k=3)
    policy = replace(policy, models=(*policy.models, spec))
    lost = {
        name: solve(
            Problem(table, replace(policy, algorithm=name, params=params)), seed=0, stages=Stages()
        ).loss.ncp
        for name, params in (("auto", {"effort": effort}), ("mondrian", {}))
    }
    assert lost["auto"] <= 1.5 * lost["mondrian"]


@pytest.mark.parametrize(
    ("spec", "is_cut"),
    [
        (ModelSpec("l-diversity", {"l": 2}), False),
        (ModelSpec("p-sensitivity", {"p": 2}), False),
        (ModelSpec("alpha-k-anonymity", {"alpha": 0.6}), True),
    ],
)
def test_large_clusters_are_cut_unless_distinct_values_suffice(spec, is_cut):
    table = alike(400)
    requirement = asked(table, spec)
    space = make_space(table, requirement, loss="ncp")
    whole = np.zeros(space.n_rows, np.int32)
    label = cut_large(space, whole, over=lambda: False)
    assert meets(table, requirement, label)
    assert is_cut == (label.max() > 30)


def test_searches_whose_rows_mostly_fail_share_the_cuts_that_replace_their_groups(monkeypatch):
    table, cut = alike(400), []
    monkeypatch.setattr(
        repair, "start_by_shares", lambda *given: cut.append(1) or start_by_shares(*given)
    )
    policy = policy_of([column.name for column in table.quasi], table.sensitive_names, k=3)
    strict = ModelSpec("t-closeness", {"t": 0.1})
    policy = replace(policy, models=(policy.models[0], strict))
    stages = Stages()
    problems = [
        Problem(table, replace(policy, algorithm=name)) for name in ("mondrian", "k-member")
    ]
    found = [solve(problem, seed=0, stages=stages).assignment.group for problem in problems]
    assert 1 == len(cut)
    assert [repair.REGROUPED] * 2 == stages.remarks
    assert found[0].tolist() == found[1].tolist()
    solve(replace(problems[0], policy=problems[0].policy.with_k(5)), seed=0, stages=stages)
    assert 2 == len(cut)


@given(st.lists(st.floats(0.0, 9.0)))
def test_numbers_are_sorted(numbers):
    values = np.array(numbers, np.float64)
    called(_sort)(values)
    assert sorted(numbers) == values.tolist()
