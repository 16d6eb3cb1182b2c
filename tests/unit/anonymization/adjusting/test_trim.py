import naive
import numpy as np
from builders import encoded, tables_and_requirements
from hypothesis import given
from hypothesis import strategies as st

from dbanon.anonymization.adjusting.repair import trim
from dbanon.anonymization.algorithms.partitioning.mondrian import Mondrian
from dbanon.anonymization.interfaces import Requirement
from dbanon.domain.assignment import Assignment


def one_group(n):
    return Assignment(np.zeros(n, np.int32), 1)


@given(tables_and_requirements(weights=(1.0, 0.5)), st.integers(0, 6), st.booleans())
def test_it_equals_its_naive_twin(drawn, budget, whole):
    table, k, l = drawn
    before = Mondrian().assign(table, Requirement(k, l), seed=0)
    before = one_group(table.n_rows) if whole else before
    after = trim(table, before, Requirement(k, l), budget=budget)
    gone = naive.trim(table, naive.members(before), k, l, budget)
    assert sorted(gone) == np.flatnonzero(after.group < 0).tolist()


@given(tables_and_requirements(), st.integers(0, 6))
def test_it_stays_within_the_budget_and_the_requirement(drawn, budget):
    table, k, l = drawn
    after = trim(table, one_group(table.n_rows), Requirement(k, l), budget=budget)
    assert after.n_suppressed <= budget
    for rows in naive.members(after):
        assert len(rows) >= k
        assert naive.is_diverse(table, rows, l)


def test_the_row_that_costs_most_goes_first():
    table = encoded({"x": [0, 0, 0, 0, 0, 60, 100]})
    after = trim(table, one_group(7), Requirement(2), budget=1)
    assert [6] == np.flatnonzero(after.group < 0).tolist()


def test_a_row_that_the_diversity_needs_stays():
    table = encoded({"x": [0, 0, 0, 0, 100]}, {"disease": ["flu"] * 4 + ["cold"]})
    after = trim(table, one_group(5), Requirement(2, 2), budget=1)
    assert 0 == after.n_suppressed


def test_a_row_that_saves_less_than_it_costs_stays():
    table = encoded({"x": [0, 50, 100], "y": [1, 1, 1]})
    assert 0 == trim(table, one_group(3), Requirement(2), budget=3).n_suppressed


def test_rows_left_out_before_count_towards_the_budget():
    table = encoded({"x": [0, 0, 0, 60, 100, 0]})
    before = Assignment(np.array([0, 0, 0, 0, -1, 0], np.int32), 1)
    assert before is trim(table, before, Requirement(2), budget=1)
    after = trim(table, before, Requirement(2), budget=2)
    assert [3, 4] == np.flatnonzero(after.group < 0).tolist()


@given(tables_and_requirements(), st.integers(0, 6), st.integers(1, 6))
def test_rows_that_the_algorithm_left_out_count_and_stay_out(drawn, budget, n_out):
    table, k, _ = drawn
    before = one_group(table.n_rows)
    before.group[: min(n_out, table.n_rows - k)] = -1
    after = trim(table, before, Requirement(k), budget=budget)
    assert after.n_suppressed <= max(budget, before.n_suppressed)
    assert set(np.flatnonzero(before.group < 0)) <= set(np.flatnonzero(after.group < 0))
    assert min(map(len, naive.members(after))) >= k


def test_the_rest_of_the_budget_is_spent():
    table = encoded({"x": [50, 0, 0, 0, 0, 90, 100]})
    before = Assignment(np.array([-1, 0, 0, 0, 0, 0, 0], np.int32), 1)
    assert [0, 6] == np.flatnonzero(
        trim(table, before, Requirement(2), budget=2).group < 0
    ).tolist()


def test_a_final_assignment_is_left_alone():
    table = encoded({"x": [0, 0, 0, 0, 0, 60, 100]})
    before = Assignment(np.zeros(7, np.int32), 1, final=True)
    assert before is trim(table, before, Requirement(2), budget=1)
