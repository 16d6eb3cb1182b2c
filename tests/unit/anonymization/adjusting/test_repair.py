import naive
import numpy as np
import pytest
from builders import encoded, policy_of, tables_and_requirements
from hypothesis import given
from hypothesis import strategies as st
from naive import models as defined

from dbanon.anonymization.adjusting.repair import enforce, repair
from dbanon.anonymization.interfaces import Requirement
from dbanon.domain.assignment import Assignment
from dbanon.domain.errors import Unsatisfiable
from dbanon.domain.outcomes import Stages
from dbanon.domain.policy import ModelSpec
from dbanon.models.demands import demands_of

# Table A of Machanavajjhala et al.: classes {1-4}, {5-8}, {9-12}
HOSPITAL = encoded(
    {
        "zip": [13053, 13068, 13068, 13053, 14853, 14853, 14850, 14850, 13053, 13053, 13068, 13068],
        "age": [28, 29, 21, 23, 50, 55, 47, 49, 31, 37, 36, 35],
    },
    {
        "condition": ["heart"] * 2
        + ["viral"] * 2
        + ["cancer", "heart", "viral", "viral"]
        + ["cancer"] * 4
    },
)


def assigned(groups):
    ids = sorted(set(groups) - {-1})
    return Assignment(np.array([ids.index(g) if g >= 0 else -1 for g in groups]), len(ids))


def assigned_at_random(table, data):
    groups = st.lists(st.integers(0, 5), min_size=table.n_rows, max_size=table.n_rows)
    return assigned(data.draw(groups))


@given(tables_and_requirements(), st.data())
def test_it_equals_its_naive_twin(drawn, data):
    table, k, l = drawn
    before = assigned_at_random(table, data)
    after = repair(table, before, Requirement(k, l))
    assert naive.merge_groups(table, naive.members(before), l) == naive.members(after)


@given(tables_and_requirements())
def test_every_group_is_diverse_afterwards(drawn):
    table, k, l = drawn
    singletons = Assignment(np.arange(table.n_rows, dtype=np.int32), table.n_rows)
    groups = naive.members(repair(table, singletons, Requirement(k, l)))
    assert all(naive.is_diverse(table, rows, l) for rows in groups)
    assert list(range(table.n_rows)) == sorted(row for rows in groups for row in rows)


def test_the_nearest_partner_that_helps_is_chosen():
    table = encoded(
        {"x": [1, 1, 2, 2, 9, 9]}, {"disease": ["flu", "flu", "flu", "flu", "flu", "cold"]}
    )
    merged = repair(table, assigned([0, 0, 1, 1, 2, 2]), Requirement(2, 2))
    assert [[0, 1, 2, 3, 4, 5]] == naive.members(merged)
    near = encoded({"x": [1, 1, 2, 2, 9, 9]}, {"disease": ["a", "a", "b", "b", "a", "b"]})
    merged = repair(near, assigned([0, 0, 1, 1, 2, 2]), Requirement(2, 2))
    assert [[0, 1, 2, 3], [4, 5]] == naive.members(merged)


def test_diverse_groups_are_left_alone():
    table = encoded({"x": [1, 2]}, {"disease": ["flu", "cold"]})
    before = assigned([0, 1])
    assert before is repair(table, before, Requirement(1, 1))


def test_a_homogeneous_class_joins_its_nearest_neighbour():
    repaired = repair(HOSPITAL, assigned([0] * 4 + [1] * 4 + [2] * 4), Requirement(4, 3))
    assert [[0, 1, 2, 3, 8, 9, 10, 11], [4, 5, 6, 7]] == naive.members(repaired)


def test_suppressed_rows_stay_suppressed():
    table = encoded({"x": [1, 1, 2, 2, 9]}, {"disease": ["a", "a", "b", "b", "a"]})
    before = assigned([0, 0, 1, 1, -1])
    assert [0, 0, 0, 0, -1] == repair(table, before, Requirement(2, 2)).group.tolist()


def test_what_no_group_can_meet_is_refused():
    table = encoded({"x": [1, 2, 3]}, {"disease": ["flu", "flu", "cold"]})
    with pytest.raises(Unsatisfiable, match="asked of sensitive column disease") as caught:
        repair(table, assigned([0, 0, 1]), Requirement(1, 3))
    assert "ask for less, or allow more rows to be left out" == caught.value.hint
    with pytest.raises(Unsatisfiable, match="asked of sensitive column disease"):
        repair(table, assigned([0, 0, -1]), Requirement(1, 2))


def test_a_partner_far_away_is_found_among_many():
    table = encoded({"x": list(range(202))}, {"disease": ["flu", "flu"] * 100 + ["flu", "cold"]})
    pairs = assigned([row // 2 for row in range(202)])
    merged = repair(table, pairs, Requirement(2, 2))
    assert naive.merge_groups(table, naive.members(pairs), 2) == naive.members(merged)
    assert 1 == merged.n_groups


def enforced(table, groups, *specs, k=1):
    policy = policy_of([column.name for column in table.quasi], table.sensitive_names)
    object.__setattr__(policy, "models", specs)
    group = np.array(groups, np.int32)
    before = Assignment(group, int(group.max()) + 1)
    return enforce(table, before, Requirement(k, demands=demands_of(table, policy)))


def test_groups_that_meet_everything_are_left_alone():
    table = encoded({"x": [1, 1, 5, 5]}, {"s": ["a", "b", "a", "b"]})
    after = enforced(table, [0, 0, 1, 1], ModelSpec("t-closeness", {"t": 0}))
    assert [0, 0, 1, 1] == after.group.tolist()


def test_the_cheapest_partner_that_helps_is_taken():
    table = encoded({"x": [1, 1, 2, 2, 9, 9]}, {"s": ["a", "a", "a", "b", "b", "b"]})
    after = enforced(table, [0, 0, 1, 1, 2, 2], ModelSpec("entropy-l-diversity", {"l": 1.9}))
    assert [[0, 1, 4, 5], [2, 3]] == naive.members(after)


def test_rows_that_the_rest_cannot_do_without_come_back():
    table = encoded({"x": [1, 1, 2, 9]}, {"s": ["a", "a", "a", "b"]})
    after = enforced(table, [0, 0, 0, -1], ModelSpec("p-sensitivity", {"p": 2}))
    assert [0, 0, 0, 0] == after.group.tolist()


def test_groups_below_k_are_merged_too():
    table = encoded({"x": [1, 2, 8, 9]}, {"s": ["a", "b", "a", "b"]})
    after = enforced(table, [0, 1, 2, 3], ModelSpec("p-sensitivity", {"p": 1}), k=2)
    assert [[0, 1], [2, 3]] == naive.members(after)


@given(tables_and_requirements(), st.data(), st.sampled_from([0.0, 0.2, 0.5]))
def test_every_group_is_close_afterwards(drawn, data, t):
    table, k, _ = drawn
    n = table.n_rows
    groups = data.draw(st.lists(st.integers(0, 4), min_size=n, max_size=n))
    dense = np.unique(groups, return_inverse=True)[1]
    multi = data.draw(st.sampled_from(["per_attribute", "strict"]))
    asked = ModelSpec("t-closeness", {"t": t})
    diverse = ModelSpec("l-diversity", {"l": 1, "multi": multi})
    after = enforced(table, dense, asked, diverse, k=k)
    if not table.sensitive_names:
        return
    assert (after.group >= 0).all()
    for rows in naive.members(after):
        assert len(rows) >= k
        for column in table.sensitive.T:
            values = column[rows].tolist()
            assert defined.total_variation(values, column.tolist()) <= t + 1e-9


def lined_up(n):
    """Return rows in pairs, each of one value, so that no pair meets anything."""
    values = [["a", "b", "c"][i // 2 % 3] for i in range(n)]
    return encoded({"x": list(range(n)), "y": [i * 7 % 50 for i in range(n)]}, {"s": values})


def test_what_fails_becomes_one_group_once_nobody_waits():
    table = lined_up(60)
    policy = policy_of(["x", "y"], ["s"])
    object.__setattr__(policy, "models", (ModelSpec("t-closeness", {"t": 0.1}),))
    asked = Requirement(2, demands=demands_of(table, policy))
    group = np.array([0, 0, 0, 0, 0, 0, *(i // 2 for i in range(2, 56))], np.int32)
    stages = Stages()
    stages.stopped = True
    after = enforce(table, Assignment(group, 28), asked, stages=stages)
    assert [[0, 1, 2, 3, 4, 5], list(range(6, 60))] == naive.members(after)


def test_groups_are_made_anew_where_that_costs_less_than_merging():
    table = lined_up(240)
    steps = []
    policy = policy_of(["x", "y"], ["s"])
    object.__setattr__(policy, "models", (ModelSpec("t-closeness", {"t": 0.1}),))
    asked = Requirement(2, demands=demands_of(table, policy))
    before = Assignment((np.arange(240) // 2).astype(np.int32), 120)
    after = enforce(table, before, asked, stages=Stages(on_step=steps.append))
    assert ["enforce"] == steps
    for rows in naive.members(after):
        values = table.sensitive[rows, 0].tolist()
        assert defined.total_variation(values, table.sensitive[:, 0].tolist()) <= 0.1 + 1e-9
