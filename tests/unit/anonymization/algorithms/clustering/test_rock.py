from itertools import combinations

import naive
import numpy as np
import pytest
from builders import encoded
from hypothesis import given
from hypothesis import strategies as st
from naive import clustering

from dbanon.anonymization.algorithms.clustering.hierarchical import Rock, linked_clusters, links
from dbanon.anonymization.interfaces import Requirement
from dbanon.domain.errors import PolicyError

# The baskets of the paper (figure 1): threes of 1 to 5, and threes of 1, 2, 6 and 7
BASKETS = [
    *map(frozenset, combinations([1, 2, 3, 4, 5], 3)),
    *map(frozenset, [(1, 2, 6), (1, 2, 7), (1, 6, 7), (2, 6, 7)]),
]


def alike(least):
    """Return which baskets are neighbours by their Jaccard coefficient."""
    return np.array(
        [[a != b and len(a & b) / len(a | b) >= least for b in BASKETS] for a in BASKETS]
    )


def test_baskets_have_the_links_of_the_paper():
    common = links(alike(0.5))
    place = {basket: i for i, basket in enumerate(BASKETS)}
    of = [
        place[frozenset(basket)]
        for basket in [(1, 2, 6), (1, 2, 7), (1, 2, 3), (1, 6, 7), (1, 3, 4)]
    ]
    assert 5 == common[of[0], of[1]]
    assert 3 == common[of[0], of[2]]
    assert [2, 2] == common[of[3], of[:2]].tolist()
    assert 0 == common[of[3], of[4]]


@st.composite
def graphs(draw):
    n = draw(st.integers(1, 10))
    seed, density = draw(st.integers(0, 1000)), draw(st.sampled_from([0.2, 0.5, 0.9]))
    upper = np.triu(np.random.default_rng(seed).random((n, n)) < density, 1)
    return upper | upper.T


@given(graphs(), st.integers(1, 6), st.sampled_from([0.2, 0.5, 0.8]))
def test_clusters_and_links_equal_their_naive_twins(neighbours, k, least):
    expected = clustering.links([set(np.flatnonzero(row)) for row in neighbours])
    common = links(neighbours)
    assert expected == common.tolist()
    exponent = 1 + 2 * (1 - least) / (1 + least)
    found = linked_clusters(common, k, exponent=exponent)
    groups = [np.flatnonzero(found == a).tolist() for a in sorted(set(found[found >= 0]))]
    assert sorted(clustering.linked_clusters(expected, k, exponent)) == sorted(groups)
    assert all(min(rows) == found[rows[0]] for rows in groups)


def test_categories_that_go_together_are_found_and_strangers_are_left_out():
    rows = [("a", "b", "c", str(i)) for i in range(4)]
    rows += [("A", "B", "C", str(i)) for i in range(4)]
    table = encoded(dict(zip("wxyz", zip(*rows, ("a", "b", "C", "9"), strict=True), strict=True)))
    found = Rock().assign(table, Requirement(4, 1, 0.2), seed=0)
    assert [[0, 1, 2, 3], [4, 5, 6, 7]] == sorted(naive.members(found))
    assert -1 == found.group[8]


def test_a_column_of_no_weight_makes_no_neighbours():
    columns = {"a": list("xxxyyy"), "b": list("uvwuvw")}
    table = encoded(columns, rules={"b": {"weight": 0.0}})
    assert [[0, 1, 2], [3, 4, 5]] == sorted(
        naive.members(Rock().assign(table, Requirement(3), seed=0))
    )


@pytest.mark.parametrize("similarity", [0.0, 1.0, float("nan")])
def test_a_similarity_that_links_all_rows_or_none_is_refused(similarity):
    with pytest.raises(PolicyError, match="is not between 0 and"):
        Rock(similarity).assign(encoded({"x": [1, 2]}), Requirement(2), seed=0)
