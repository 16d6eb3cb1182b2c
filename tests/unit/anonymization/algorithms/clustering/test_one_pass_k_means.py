import naive
import numpy as np
import pytest
from builders import LETTERS, encoded, tables_and_requirements
from hypothesis import given
from naive import greedy

from dbanon.anonymization.algorithms.clustering.growth import weighted_heights
from dbanon.anonymization.algorithms.clustering.partitional import OnePassKMeans
from dbanon.anonymization.interfaces import Requirement
from dbanon.domain.assignment import Assignment
from dbanon.domain.errors import Unsatisfiable
from dbanon.kernels.boxes.one_pass import one_pass


def clusters(table, seeds, k):
    """Run the kernel with given seeds, adjusting from the first row on."""
    codes = table.codes
    ordered = np.array([column.taxonomy is None for column in table.quasi])
    rows = np.arange(table.n_rows)
    group = one_pass(codes, ordered, np.array(seeds), rows, rows, *weighted_heights(table), k)
    return naive.members(Assignment(group, len(seeds)))


@given(tables_and_requirements(max_sensitive=0, weights=(1.0, 0.25)))
def test_it_equals_its_naive_twin(drawn):
    table, k, _ = drawn
    rng = np.random.default_rng(9)
    seeds = sorted(rng.choice(table.n_rows, table.n_rows // k, replace=False).tolist())
    order = rng.permutation(table.n_rows).tolist()
    found = naive.members(OnePassKMeans().assign(table, Requirement(k), seed=9))
    assert greedy.one_pass(table, seeds, order, k) == found


@given(tables_and_requirements())
def test_groups_have_k_to_2k_minus_1_rows(drawn):
    table, k, _ = drawn
    sizes = [len(g) for g in naive.members(OnePassKMeans().assign(table, Requirement(k), seed=1))]
    assert k <= min(sizes) <= max(sizes) <= 2 * k - 1
    assert table.n_rows // k == len(sizes)


def test_a_cluster_of_too_many_gives_its_farthest_record_away():
    table = encoded({"x": [0, 1, 2, 3, 20, 30]})
    assert [[0, 1, 2], [3, 4, 5]] == clusters(table, [0, 5], 3)


def test_a_center_follows_its_records():
    table = encoded({"x": [0, 6, 9, 16, 17]})
    assert [[0, 1, 2], [3, 4]] == clusters(table, [0, 3], 2)


def test_the_center_of_a_tree_is_its_most_frequent_value():
    letters = ["e", "e", "f", "b", "b", "f"]
    table = encoded(
        {"letter": letters}, rules={"letter": {"taxonomy": "letters"}}, taxonomies=[LETTERS]
    )
    assert [[0, 1, 2, 5], [3, 4]] == clusters(table, [0, 3], 2)


def test_null_is_as_far_from_a_mean_as_two_values_can_be():
    table = encoded({"x": [0, 10, None, None, 1, 9]})
    assert [[0, 4], [1, 5], [2, 3]] == clusters(table, [0, 1, 2], 2)


def test_a_large_table_is_refused():
    table = encoded({"x": list(range(100_001))})
    with pytest.raises(Unsatisfiable, match="at most 100,000 rows"):
        OnePassKMeans().assign(table, Requirement(3), seed=0)
