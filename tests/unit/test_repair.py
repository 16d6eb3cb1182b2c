import naive
import numpy as np
import pytest
from builders import encoded, tables_and_requirements
from hypothesis import given
from hypothesis import strategies as st

from dbanon.anonymize.emd import emd_equal, emd_ordered
from dbanon.anonymize.interfaces import Requirement
from dbanon.anonymize.repair import repair, repair_closeness, repair_histograms
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
# Table of Li et al.: classes {1-3}, {4-6}, {7-9}; salaries padded to sort as numbers do
SALARIES = encoded(
    {
        "zip": [47677, 47602, 47678, 47905, 47909, 47906, 47605, 47673, 47607],
        "age": [29, 22, 27, 43, 52, 47, 30, 36, 32],
    },
    {"salary": ["03K", "04K", "05K", "06K", "11K", "08K", "07K", "09K", "10K"]},
)


def assigned(groups):
    ids = sorted(set(groups) - {-1})
    return Assignment(np.array([ids.index(g) if g >= 0 else -1 for g in groups]), len(ids))


def in_threes(n, size=3):
    return Assignment((np.arange(n) // size).astype(np.int32), n // size)


def histogram(table, rows, column=0):
    values = table.sensitive[:, column]
    return np.bincount(values[rows], minlength=int(values.max()) + 1)


def probabilistic(l):
    """Return the model that no value takes more than 1 / l of a class."""
    return lambda counts: counts.max(axis=1) * l <= counts.sum(axis=1)


def assigned_at_random(table, data, least=0):
    groups = st.lists(st.integers(least, 5), min_size=table.n_rows, max_size=table.n_rows)
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
    repaired = repair(HOSPITAL, in_threes(12, 4), Requirement(4, 3))
    assert [[0, 1, 2, 3, 8, 9, 10, 11], [4, 5, 6, 7]] == naive.members(repaired)
    general = repair_histograms(
        HOSPITAL, in_threes(12, 4), Requirement(4, 3), holds=[lambda counts: counts.sum(axis=1) > 0]
    )
    assert repaired.group.tolist() == general.group.tolist()


def test_suppressed_rows_stay_suppressed():
    table = encoded({"x": [1, 1, 2, 2, 9]}, {"disease": ["a", "a", "b", "b", "a"]})
    before = assigned([0, 0, 1, 1, -1])
    assert [0, 0, 0, 0, -1] == repair(table, before, Requirement(2, 2)).group.tolist()
    general = repair_closeness(table, before, Requirement(2, 2), t=1.0)
    assert [0, 0, 0, 0, -1] == general.group.tolist()


def test_what_no_group_can_meet_is_refused():
    table = encoded({"x": [1, 2, 3]}, {"disease": ["flu", "flu", "cold"]})
    with pytest.raises(Unsatisfiable, match="asked of sensitive column disease") as caught:
        repair(table, assigned([0, 0, 1]), Requirement(1, 3))
    assert "ask for less, or allow more rows to be left out" == caught.value.hint
    with pytest.raises(Unsatisfiable, match="asked of sensitive column disease"):
        repair(table, assigned([0, 0, -1]), Requirement(1, 2))
    with pytest.raises(Unsatisfiable, match="asked of sensitive column disease"):
        repair_closeness(table, assigned([0, 0, 1]), Requirement(1, 3), t=1.0)
    with pytest.raises(Unsatisfiable, match="asked of groups"):
        repair_closeness(table, assigned([0, 0, 1]), Requirement(4), t=1.0)


@pytest.mark.parametrize(
    ("t", "groups"),
    [
        (0.375, [[0, 1, 2], [3, 4, 5], [6, 7, 8]]),
        (0.25, [[0, 1, 2, 6, 7, 8], [3, 4, 5]]),
        (1 / 6, [[0, 1, 2, 6, 7, 8], [3, 4, 5]]),
        (0.16, [[0, 1, 2, 3, 4, 5, 6, 7, 8]]),
        (0.0, [[0, 1, 2, 3, 4, 5, 6, 7, 8]]),
    ],
)
def test_classes_of_li_et_al_become_close_in_salary(t, groups):
    repaired = repair_closeness(SALARIES, in_threes(9), Requirement(3), t=t)
    assert groups == naive.members(repaired)


def test_the_alternative_grouping_of_li_et_al_is_a_sixth_close_as_it_is():
    before = assigned([0, 2, 0, 1, 1, 1, 2, 0, 2])
    repaired = repair_closeness(SALARIES, before, Requirement(3), t=1 / 6)
    assert before.group.tolist() == repaired.group.tolist()


@pytest.mark.parametrize(("ground", "emd"), [("equal", emd_equal), ("ordered", emd_ordered)])
@given(drawn=tables_and_requirements(), data=st.data(), t=st.sampled_from([0.0, 0.2, 0.5]))
def test_closeness_equals_its_naive_twin(ground, emd, drawn, data, t):
    table, k, l = drawn
    before = assigned_at_random(table, data)
    after = repair_closeness(table, before, Requirement(k, l), t=t, ground=ground)
    columns = range(table.sensitive.shape[1])
    whole = [histogram(table, slice(None), column) for column in columns]

    def meets(rows):
        far = [emd(histogram(table, rows, i)[None], whole[i])[0] > t + 1e-9 for i in columns]
        return len(rows) >= k and naive.is_diverse(table, rows, l) and not any(far)

    groups = naive.members(after)
    assert naive.merge_until(table, naive.members(before), meets) == groups
    assert all(meets(rows) for rows in groups)


@given(tables_and_requirements(max_sensitive=1), st.data(), st.sampled_from([0.0, 0.3, 0.6]))
def test_rows_of_a_value_too_frequent_are_left_out_within_the_budget(drawn, data, share):
    table, k, l = drawn
    before = assigned_at_random(table, data, least=-1)
    holds = [probabilistic(2)] * table.sensitive.shape[1]
    try:
        after = repair_histograms(table, before, Requirement(k, l, share), holds=holds)
    except Unsatisfiable:
        kept = [row for rows in naive.members(before) for row in rows]
        budget = share * table.n_rows - before.n_suppressed
        if len(kept) >= k and naive.is_diverse(table, kept, l):
            counts = histogram(table, kept)
            most = counts.max()
            too_many = most - (counts.sum() - most)
            assert too_many > min(budget, len(kept) - k) or counts.sum() == most
        return
    assert after.n_suppressed <= max(share * table.n_rows, before.n_suppressed)
    for rows in naive.members(after):
        assert len(rows) >= k
        assert naive.is_diverse(table, rows, l)
        assert all(probabilistic(2)(histogram(table, rows)[None]) for _ in holds)


def test_the_lowest_rows_of_the_most_frequent_value_are_left_out():
    table = encoded({"x": [1, 2, 3, 4, 5]}, {"disease": ["flu", "flu", "flu", "cold", "flu"]})
    one, half = assigned([0] * 5), [probabilistic(2)]
    repaired = repair_histograms(table, one, Requirement(2, 1, 0.6), holds=half)
    assert [-1, -1, -1, 0, 0] == repaired.group.tolist()
    with pytest.raises(Unsatisfiable, match="asked of sensitive column disease"):
        repair_histograms(table, one, Requirement(2, 1, 0.4), holds=half)
    with pytest.raises(Unsatisfiable, match="asked of sensitive column disease"):
        repair_histograms(table, one, Requirement(3, 1, 0.6), holds=half)


def test_a_partner_far_away_is_found_among_many():
    values = ["flu", "flu"] * 100 + ["flu", "cold"]
    table = encoded({"x": list(range(202))}, {"disease": values})
    merged = repair_closeness(table, in_threes(202, 2), Requirement(2, 2), t=1.0)
    expected = naive.merge_groups(table, naive.members(in_threes(202, 2)), 2)
    assert expected == naive.members(merged)
    assert 1 == merged.n_groups
