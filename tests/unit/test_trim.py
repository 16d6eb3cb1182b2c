import naive
import numpy as np
from builders import encoded, tables_and_requirements
from hypothesis import given
from hypothesis import strategies as st

from dbanon.anonymize.algorithms.mondrian import Mondrian
from dbanon.anonymize.interfaces import Requirement
from dbanon.anonymize.trim import trim
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


def test_rows_left_out_before_count_and_stay_out():
    table = encoded({"x": [0, 0, 0, 0, 0, 60, 100]})
    before = Assignment(np.array([0, 0, 0, 0, 0, 0, -1], np.int32), 1)
    assert before is trim(table, before, Requirement(2), budget=1)
    after = trim(table, before, Requirement(2), budget=2)
    assert [5, 6] == np.flatnonzero(after.group < 0).tolist()
