import naive
import numpy as np
from builders import encoded, tables_and_requirements
from hypothesis import given
from hypothesis import strategies as st

from dbanon.anonymize.interfaces import Requirement
from dbanon.anonymize.repair import repair
from dbanon.domain.assignment import Assignment


def assigned(groups):
    ids = sorted(set(groups))
    return Assignment(np.array([ids.index(g) for g in groups], np.int32), len(ids))


@given(tables_and_requirements(), st.data())
def test_it_equals_its_naive_twin(drawn, data):
    table, k, l = drawn
    before = assigned(
        data.draw(st.lists(st.integers(0, 5), min_size=table.n_rows, max_size=table.n_rows))
    )
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


def test_rows_left_out_stay_out():
    table = encoded({"x": [1, 9, 1, 2, 9]}, {"disease": ["flu", "flu", "flu", "cold", "flu"]})
    before = Assignment(np.array([0, -1, 0, 1, -1], np.int32), 2)
    after = repair(table, before, Requirement(1, 2))
    assert ([0, -1, 0, 0, -1], 1) == (after.group.tolist(), after.n_groups)
