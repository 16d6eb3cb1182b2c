import naive
import numpy as np
from builders import encoded, policy_of, tables_and_requirements
from hypothesis import given
from hypothesis import strategies as st
from naive import models as defined

from dbanon.anonymization.adjusting.enforce import enforce
from dbanon.anonymization.interfaces import Requirement
from dbanon.domain.assignment import Assignment
from dbanon.domain.policy import ModelSpec
from dbanon.domain.progress import Stages
from dbanon.models.demands import demands_of


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
