import naive
import numpy as np
import pytest
from builders import encoded
from hypothesis import example, given
from hypothesis import strategies as st
from naive import clustering

from dbanon.anonymization.algorithms.clustering.hierarchical import (
    Chameleon,
    bisected,
    divided,
    merged,
    nearest_graph,
)
from dbanon.anonymization.interfaces import Requirement
from dbanon.domain.errors import PolicyError


@st.composite
def graphs(draw):
    """Draw the weights of edges, no two the same, of which some may be missing."""
    n, seed = draw(st.integers(1, 10)), draw(st.integers(0, 1000))
    random, density = np.random.default_rng(seed), draw(st.sampled_from([0.3, 0.6, 1.0]))
    upper = np.triu(random.random((n, n)) * (random.random((n, n)) < density), 1)
    return upper + upper.T


def sets(found):
    return sorted(np.flatnonzero(found == a).tolist() for a in set(found.tolist()))


def test_rows_have_edges_to_the_nearest_of_each():
    apart = np.abs(np.subtract.outer([0.0, 1.0, 3.0, 9.0], [0.0, 1.0, 3.0, 9.0]))
    mean = (1 + 2 + 6) / 3
    expected = np.zeros((4, 4))
    for (i, j), away in {(0, 1): 1, (1, 2): 2, (2, 3): 6}.items():
        expected[i, j] = expected[j, i] = 1 / (1 + away / mean)
    assert expected == pytest.approx(nearest_graph(apart, 1))
    assert 6 == np.count_nonzero(np.triu(nearest_graph(apart, 10)))
    assert [[0, 1], [1, 0]] == nearest_graph(np.zeros((2, 2)), 5).tolist()


def with_edges(n, edges):
    weights = np.zeros((n, n))
    for (i, j), weight in edges.items():
        weights[i, j] = weights[j, i] = weight
    return weights


# Sides of three and of five rows that the same edges leave: their mean cuts are equal.
EDGES = {(0, 1): 0.69281813, (2, 7): 0.09264071, (4, 6): 0.86540081}
EDGES |= {(4, 7): 0.49644305, (5, 6): 0.66366864, (6, 7): 0.55830915}


@given(graphs(), st.integers(1, 4))
@example(with_edges(8, EDGES), 3)
def test_a_side_is_that_of_its_naive_twin(weights, least):
    if len(weights) < 2 * least:
        return
    expected = clustering.bisected(weights.tolist(), list(range(len(weights))), least)
    found = np.flatnonzero(bisected(weights, least=least)).tolist()
    assert expected == found
    assert least <= len(found) <= len(weights) - least


@given(graphs(), st.integers(1, 4))
def test_parts_are_those_of_their_naive_twin(weights, least):
    parts = [rows.tolist() for rows in divided(weights, least=least)]
    assert sorted(clustering.divided(weights.tolist(), list(range(len(weights))), least)) == parts
    assert all(least <= len(rows) < 2 * least for rows in parts if len(weights) >= least)


@given(graphs(), st.integers(1, 8), st.integers(2, 3), st.sampled_from([0.0, 1.0, 2.0]))
def test_parts_merge_as_those_of_their_naive_twin(weights, k, least, power):
    parts = divided(weights, least=least)
    expected = clustering.chameleon(weights.tolist(), [p.tolist() for p in parts], k, power)
    assert expected == sets(merged(weights, parts, k, closeness=power))


def test_chains_are_found_that_no_mean_tells_apart():
    columns = {"x": [*range(8), *range(8)], "y": [0] * 8 + [7] * 8}
    table = encoded(columns)
    found = Chameleon(neighbours=2).assign(table, Requirement(8), seed=0)
    assert [[*range(8)], [*range(8, 16)]] == sorted(naive.members(found))


def test_neighbours_and_closeness_can_be_given():
    random = np.random.default_rng(1)
    table = encoded({name: random.integers(0, 100, 200).tolist() for name in "xy"})
    tried = [Chameleon(), Chameleon(neighbours=2), Chameleon(closeness=0.0)]
    found = [method.assign(table, Requirement(9), seed=0).group.tolist() for method in tried]
    assert 3 == len(set(map(tuple, found)))


def test_a_graph_without_edges_is_refused():
    with pytest.raises(PolicyError, match="a graph of 0 neighbours has no edges"):
        Chameleon(neighbours=0).assign(encoded({"x": [1, 2]}), Requirement(2), seed=0)
