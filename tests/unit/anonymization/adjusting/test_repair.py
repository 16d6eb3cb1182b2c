import naive
import numpy as np
import pytest
from builders import encoded, tables_and_requirements
from hypothesis import given
from hypothesis import strategies as st

from dbanon.anonymization.adjusting.repair import repair
from dbanon.anonymization.interfaces import Requirement
from dbanon.domain.assignment import Assignment
from dbanon.domain.errors import Unsatisfiable

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
