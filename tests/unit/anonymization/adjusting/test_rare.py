import naive
import numpy as np
import pytest
from builders import encoded, policy_of, tables_and_requirements
from hypothesis import given
from hypothesis import strategies as st

from dbanon.anonymization.adjusting.repair import leave_rare
from dbanon.anonymization.algorithms.partitioning.mondrian import Mondrian
from dbanon.anonymization.interfaces import Requirement
from dbanon.anonymization.problem import Problem, solve
from dbanon.domain.assignment import Assignment
from dbanon.domain.outcomes import Stages

RARE = {"x": {"rare": "suppress"}}


def left_out(table, groups, k=2, *, budget, l=1):
    assignment = Assignment(np.array(groups, np.int32), max(groups) + 1)
    after = leave_rare(table, assignment, Requirement(k, l), budget=budget)
    kept = after.group[after.group >= 0]
    assert sorted(set(kept.tolist())) == list(range(after.n_groups))
    return np.flatnonzero(after.group < 0).tolist()


def test_a_row_that_makes_its_group_wide_goes_before_a_group():
    table = encoded({"x": [0, 0, 100, 40, 50, 60, 70]}, rules=RARE)
    groups = [0, 0, 0, 1, 1, 2, 2]
    assert [2] == left_out(table, groups, budget=1)
    assert [2, 3, 4] == left_out(table, groups, budget=3)


def test_the_widest_groups_go_as_far_as_the_budget_does():
    table = encoded({"x": [0, 0, 10, 30, 40, 80, 100, 100]}, rules=RARE)
    groups = [0, 0, 1, 1, 2, 2, 3, 3]
    assert [] == left_out(table, groups, budget=1)
    assert [4, 5] == left_out(table, groups, budget=3)
    assert [2, 3, 4, 5] == left_out(table, groups, budget=8)  # the others lose nothing


def test_only_columns_that_say_so_count():
    columns = {"x": [0, 0, 50, 60], "y": [0, 100, 5, 5]}
    assert [2, 3] == left_out(encoded(columns, rules=RARE), [0, 0, 1, 1], budget=2)
    assert [0, 1] == left_out(
        encoded(columns, rules={"y": {"rare": "suppress"}}), [0, 0, 1, 1], budget=2
    )
    assert [] == left_out(encoded(columns), [0, 0, 1, 1], budget=2)


def test_one_group_stays():
    table = encoded({"x": [0, 100, 0, 99]}, rules=RARE)
    assert [0, 1] == left_out(table, [0, 0, 1, 1], budget=4)


def test_a_final_assignment_stays():
    table = encoded({"x": [0, 100, 5, 5]}, rules=RARE)
    assignment = Assignment(np.array([0, 0, 1, 1], np.int32), 2, final=True)
    assert assignment is leave_rare(table, assignment, Requirement(2), budget=4)


@given(tables_and_requirements(names=("integer", "letter")), st.integers(0, 9))
def test_groups_keep_what_is_required(drawn, budget):
    table, k, l = drawn
    for column in table.quasi:
        object.__setattr__(column.rule, "rare", "suppress")
    before = Mondrian().assign(table, Requirement(k, l), seed=0)
    after = leave_rare(table, before, Requirement(k, l), budget=budget)
    assert after.n_suppressed <= budget
    for rows in naive.members(after):
        assert len(rows) >= k
        assert naive.is_diverse(table, rows, l)


@pytest.mark.parametrize("algorithm", ["mondrian", "auto"])
def test_a_budget_of_a_twentieth_is_spent_on_what_is_rare(algorithm):
    """Without the key the same table leaves nobody out."""
    columns = {"x": [*range(20, 96), 1000, 2000, 5000, 9000], "y": [*range(80)]}
    losses = []
    for rules in ({}, RARE):
        table = encoded(columns, rules=rules)
        policy = policy_of(columns, k=4, rules=rules, algorithm=algorithm, max_suppressed=0.05)
        outcome = solve(Problem(table, policy), seed=0, stages=Stages())
        shown = outcome.assignment.group >= 0
        column = outcome.values.columns[0]
        losses.append(float(column.loss[column.index[outcome.assignment.group[shown]]].mean()))
        losses.append(outcome.assignment.n_suppressed)
    assert (0, 4) == (losses[1], losses[3])
    assert losses[2] < losses[0] / 3
