import naive
import numpy as np
from builders import encoded, tables_and_requirements
from hypothesis import given
from hypothesis import strategies as st

from dbanon.anonymization.adjusting.resize import resize
from dbanon.anonymization.interfaces import Requirement


def grouped(table, clusters, requirement):
    return resize(table, np.array(clusters), requirement).group.tolist()


@given(tables_and_requirements(weights=(1.0, 0.25)), st.data(), st.sampled_from([0.0, 0.2, 0.6]))
def test_any_clusters_become_groups_that_meet_the_requirement(drawn, data, share):
    table, k, l = drawn
    numbers = st.lists(st.integers(-2, 6), min_size=table.n_rows, max_size=table.n_rows)
    clusters = np.array(data.draw(numbers))
    assignment = resize(table, clusters, Requirement(k, l, share))
    gone = assignment.group < 0
    assert gone.sum() <= share * table.n_rows
    assert (clusters[gone] < 0).all()
    assert list(range(assignment.n_groups)) == sorted(set(assignment.group[~gone].tolist()))
    for rows in naive.members(assignment):
        assert len(rows) >= k
        assert naive.is_diverse(table, rows, l)
        assert len(rows) < 2 * k or l > 1 or naive.cost(table, rows) == 0


def test_groups_that_are_large_enough_and_not_too_large_stay():
    table = encoded({"x": [1, 9, 2, 8, 3, 7]})
    assert [0, 1, 0, 1, 0, 1] == grouped(table, [4, 7, 4, 7, 4, 7], Requirement(3))


def test_a_small_cluster_is_dissolved_row_by_row():
    table = encoded({"x": [0, 1, 9, 10, 2, 8]})
    assert [0, 0, 1, 1, 0, 1] == grouped(table, [0, 0, 1, 1, 2, 2], Requirement(3))
    assert [0, 0, 1, 1, 0, 1] == grouped(table, [0, 0, 1, 1, 2, 3], Requirement(2))


def test_the_smallest_cluster_goes_first_and_can_make_another_large_enough():
    table = encoded({"x": [0, 1, 10, 11, 12, 2]})
    assert [0, 0, 1, 1, 1, 0] == grouped(table, [0, 0, 1, 1, 1, 2], Requirement(3))


def test_a_large_cluster_is_cut_where_that_gains_most():
    table = encoded({"x": [0, 10, 1, 11, 2, 12]})
    assert [0, 1, 0, 1, 0, 1] == grouped(table, [5] * 6, Requirement(3))


def test_noise_joins_the_nearest_cluster_or_is_left_out_where_that_is_cheaper():
    table = encoded({"x": [0, 1, 2, 50, 51, 52, 100, 3]})
    clusters = [0, 0, 0, 1, 1, 1, -1, -1]
    assert [0, 0, 0, 1, 1, 1, 1, 0] == grouped(table, clusters, Requirement(3, 1))
    spared = grouped(table, clusters, Requirement(3, 1, 0.25))
    assert [0, 0, 0, 1, 1, 1, -1, 0] == spared


def test_the_dearest_noise_is_left_out_first():
    table = encoded({"x": [0, 1, 2, 3, 60, 100]})
    clusters = [0, 0, 0, 0, -1, -1]
    assert [0, 0, 0, 0, 0, -1] == grouped(table, clusters, Requirement(5, 1, 0.2))
    assert [0, 0, 0, 0, -1, -1] == grouped(table, clusters, Requirement(4, 1, 0.4))


def test_noise_that_the_requirement_needs_stays():
    table = encoded({"x": [0, 1, 2, 3, 100]}, {"disease": ["flu"] * 4 + ["cold"]})
    clusters = [0, 0, 0, 0, -1]
    assert [0] * 5 == grouped(table, clusters, Requirement(2, 2, 0.5))
    assert [0] * 5 == grouped(table, clusters, Requirement(5, 1, 0.5))


def test_noise_alone_is_one_cluster():
    table = encoded({"x": [0, 1, 10, 11]})
    assert [0, 0, 1, 1] == grouped(table, [-1] * 4, Requirement(2, 1, 0.5))
