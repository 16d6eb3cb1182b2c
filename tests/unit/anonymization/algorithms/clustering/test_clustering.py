import sys

import naive
import numpy as np
import pytest
from builders import encoded, tables
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import clustering, lattice
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import squareform
from selection import at_depth
from sklearn.cluster import OPTICS

from dbanon.anonymization.algorithms.clustering.density import Dbscan, Denclue, Optics, ordering
from dbanon.anonymization.algorithms.clustering.hierarchical import (
    LINKAGES,
    Agglomerative,
    Birch,
    Chameleon,
    Divisive,
    Rock,
    entries,
    smallest_unions,
    split,
)
from dbanon.anonymization.algorithms.clustering.partitional import (
    Clarans,
    KMeans,
    KMedoids,
    swapped,
    wandered,
)
from dbanon.anonymization.distances.rows import pairwise
from dbanon.anonymization.interfaces import Requirement
from dbanon.domain.errors import PolicyError, Unsatisfiable

METHODS = [
    KMeans,
    KMedoids,
    Clarans,
    Agglomerative,
    Divisive,
    Dbscan,
    Optics,
    Denclue,
    Birch,
    Rock,
    Chameleon,
]
# three clouds, far apart
CLOUDS = encoded(
    {
        "x": [0, 1, 2, 1, 50, 51, 52, 51, 98, 99, 100, 99],
        "y": ["a"] * 4 + ["b"] * 4 + ["a"] * 4,
    }
)


def distances_without_ties(n, seed):
    points = np.random.default_rng(seed).random((n, 2))
    return np.abs(points[:, None] - points[None]).sum(axis=2)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("k", [3, 4])
def test_clouds_are_found(method, k):
    groups = naive.members(method().assign(CLOUDS, Requirement(k), seed=1))
    assert [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]] == sorted(groups)


@pytest.mark.parametrize("method", METHODS)
def test_a_large_table_is_refused(method):
    table = encoded({"x": list(range(method.MAX_ROWS + 1))})
    with pytest.raises(Unsatisfiable, match=f"at most {method.MAX_ROWS:,} rows"):
        method().assign(table, Requirement(3), seed=0)


@pytest.mark.parametrize("name", LINKAGES)
def test_every_linkage_finds_clouds(name):
    groups = naive.members(Agglomerative(name).assign(CLOUDS, Requirement(3), seed=1))
    assert [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]] == sorted(groups)


def test_an_unknown_linkage_is_refused_with_the_choices():
    with pytest.raises(PolicyError, match="no linkage 'ward'") as caught:
        Agglomerative("ward").assign(CLOUDS, Requirement(3), seed=0)
    assert "choose one of single, complete, average, centroid" == caught.value.hint


def test_a_steepness_that_is_no_share_is_refused():
    with pytest.raises(PolicyError, match="a steepness of 5 is not between 0 and 1"):
        Optics(steepness=5).assign(CLOUDS, Requirement(3), seed=0)


@pytest.mark.parametrize("name", ["single", "complete", "average"])
@given(st.integers(1, 12), st.integers(2, 5), st.integers(0, 1000))
def test_clusters_are_the_smallest_unions_of_k_rows(name, n, k, seed):
    apart = distances_without_ties(n, seed)
    merges = linkage(squareform(apart, checks=False), name) if n > 1 else np.empty((0, 4))
    found = smallest_unions(merges, k)
    groups = {frozenset(np.flatnonzero(found == a).tolist()) for a in set(found[found >= 0])}
    assert clustering.smallest_unions(apart.tolist(), name, k) == groups


def test_unions_of_one_row_are_rows():
    assert [0, 1, 2] == smallest_unions(linkage([1.0, 2.0, 3.0], "single"), 1).tolist()


@given(tables(max_sensitive=0), st.integers(1, 4))
def test_splinters_equal_their_naive_twin(table, k):
    apart = pairwise(table)
    rows = np.arange(table.n_rows)
    if len(rows) < max(2 * k, 2):
        return
    (rest, rest_totals), (gone, totals) = split(apart, rows, apart.sum(axis=1), k=k)
    assert rows.tolist() == sorted([*rest.tolist(), *gone.tolist()])
    assert min(len(rest), len(gone)) >= k
    assert apart[np.ix_(rest, rest)].sum(axis=1) == pytest.approx(rest_totals, abs=1e-9)
    assert apart[np.ix_(gone, gone)].sum(axis=1) == pytest.approx(totals, abs=1e-9)


@given(st.integers(4, 14), st.integers(1, 2), st.integers(0, 1000))
def test_the_splinter_is_that_of_its_naive_twin(n, k, seed):
    apart = distances_without_ties(n, seed)
    _, (gone, _) = split(apart, np.arange(n), apart.sum(axis=1), k=k)
    assert sorted(clustering.splinter(apart.tolist(), range(n), k)) == gone.tolist()


@given(st.integers(2, 4), st.integers(1, 4))
def test_divided_groups_have_k_to_2k_minus_1_rows(k, times):
    table = encoded({"x": [row**2 for row in range(k * times + k - 1)]})
    sizes = np.bincount(Divisive().assign(table, Requirement(k), seed=0).group)
    assert k <= sizes.min() <= sizes.max() <= 2 * k - 1


@given(st.integers(2, 14), st.data(), st.integers(0, 1000))
def test_no_swap_of_a_medoid_is_left_that_gains(n, data, seed):
    apart = distances_without_ties(n, seed)
    start = data.draw(st.lists(st.integers(0, n - 1), min_size=1, unique=True))
    medoids = swapped(apart, np.array(start), rounds=100).tolist()
    best = clustering.deviation(apart, medoids)
    assert len(start) == len(set(medoids))
    assert best <= clustering.deviation(apart, start) + 1e-9
    for place in range(len(medoids)):
        for row in set(range(n)) - set(medoids):
            other = [*medoids[:place], row, *medoids[place + 1 :]]
            assert clustering.deviation(apart, other) >= best - 1e-8


@given(st.integers(1, 12), st.data(), st.integers(0, 1000))
def test_random_swaps_lead_where_those_of_the_naive_twin_do(n, data, seed):
    apart = distances_without_ties(n, seed)
    asked = {"neighbours": data.draw(st.integers(1, 30))}
    n_medoids = data.draw(st.integers(1, n))
    found = wandered(apart, n_medoids, **asked, random=np.random.default_rng(seed))
    expected = clustering.wandering(
        apart.tolist(), n_medoids, **asked, random=np.random.default_rng(seed)
    )
    assert expected == found.medoids.tolist()
    assert clustering.deviation(apart, expected) == pytest.approx(found.deviation)


def test_the_best_of_several_searches_is_taken():
    random = np.random.default_rng(1)
    table = encoded({name: random.integers(0, 100, 60).tolist() for name in "xy"})
    one, best = (
        naive.members(Clarans(searches, 3).assign(table, Requirement(4), seed=0))
        for searches in (1, 50)
    )
    assert lattice.loss(table, best) < lattice.loss(table, one)


@given(tables(rows=st.integers(2, 12), max_sensitive=0), st.integers(1, 3))
def test_the_order_of_optics_takes_the_nearest_row_each_time(table, k):
    apart = pairwise(table)
    k = min(k, len(apart))
    order, reach, before = ordering(apart, k)
    assert (0, np.inf, -1) == (order[0], reach[0], before[0])
    assert clustering.order_is_reachable(apart.tolist(), order.tolist(), reach.tolist(), k)


@pytest.mark.exhaustive
@settings(max_examples=at_depth(20))
@given(st.integers(3, 20), st.integers(2, 3), st.integers(0, 1000))
def test_the_order_of_optics_is_that_of_scikit_learn(n, k, seed):
    apart = distances_without_ties(n, seed)
    order, reach, before = ordering(apart, k)
    reference = OPTICS(min_samples=k, metric="precomputed").fit(apart)
    assert reference.ordering_.tolist() == order.tolist()
    assert reference.reachability_.tolist() == pytest.approx(reach.tolist())
    assert reference.predecessor_.tolist() == before.tolist()


@given(st.integers(1, 30), st.floats(0.01, 0.5), st.integers(0, 1000))
def test_the_entries_of_birch_are_those_of_their_naive_twin(n, radius, seed):
    points = np.random.default_rng(seed).random((n, 2))
    found = entries(points, radius, branching=n + 2).tolist()
    expected = clustering.entries(points.tolist(), radius)
    assert len(set(zip(found, expected, strict=True))) == len(set(found)) == len(set(expected))


@pytest.mark.exhaustive
@given(st.integers(1, 60), st.integers(2, 4), st.integers(0, 1000))
def test_narrow_entries_of_birch_are_points_however_the_tree_branches(n, branching, seed):
    points = np.random.default_rng(seed).random((n, 2))
    assert n == len(set(entries(points, 1e-6, branching=branching).tolist()))


def test_a_radius_of_birch_can_be_given():
    random = np.random.default_rng(1)
    table = encoded({name: random.integers(0, 100, 60).tolist() for name in "xy"})
    radii = (0.0, 0.05, 10.0)
    groups = [Birch(radius).assign(table, Requirement(3), seed=0).group for radius in radii]
    assert 3 == len({tuple(group.tolist()) for group in groups})


@pytest.mark.parametrize("asked", [{"radius": -1.0}, {"branching": 1}])
def test_a_tree_that_cannot_be_is_refused(asked):
    with pytest.raises(PolicyError, match="no tree has a radius"):
        Birch(**asked).assign(CLOUDS, Requirement(3), seed=0)


def test_noise_is_left_out_within_the_budget():
    table = encoded({"x": [0, 1, 2, 1, 0, 60, 58, 59, 60, 58, 100]})
    assert [-1] == Dbscan().assign(table, Requirement(3, 1, 0.1), seed=0).group[-1:].tolist()
    assert 0 == Dbscan().assign(table, Requirement(3), seed=0).n_suppressed


def test_a_radius_can_be_given():
    table = encoded({"x": [0, 1, 2, 50, 51, 52]})
    one = Dbscan(eps=1.0).assign(table, Requirement(6, 1), seed=0)
    two = Dbscan(eps=0.05).assign(table, Requirement(3, 1), seed=0)
    assert (1, 2) == (one.n_groups, two.n_groups)


def test_batches_and_whole_rounds_of_k_means_find_the_same_clouds(monkeypatch):
    monkeypatch.setattr(sys.modules[KMeans.__module__], "_MOST_PAIRS", 0)
    groups = naive.members(KMeans().assign(CLOUDS, Requirement(3), seed=1))
    assert [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]] == sorted(groups)
