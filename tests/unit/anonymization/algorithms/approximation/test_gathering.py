"""Gather, gather-outliers and cellular: clusters around centers."""

import naive
import numpy as np
import pytest
from builders import encoded, policy_of, tables
from hypothesis import given
from naive import graphs
from selection import exhaustive_after

from dbanon.anonymization.algorithms.approximation.gather import (
    Cellular,
    Clusters,
    Gather,
    GatherOutliers,
    best_centers,
    cellular,
    gather,
    gather_most,
    raise_prices,
    regroup,
)
from dbanon.anonymization.distances.rows import pairwise
from dbanon.anonymization.interfaces import Requirement
from dbanon.anonymization.problem import Problem, solve
from dbanon.domain.errors import PolicyError, Unsatisfiable
from dbanon.domain.outcomes import Stages

LINE = [0, 1, 2, 10, 11, 12, 13]
TIE = 1e-9


def apart(points):
    points = np.array(points, np.float64)
    return np.abs(points[:, None] - points)


def members(clusters):
    return [np.flatnonzero(clusters.group == g).tolist() for g in range(len(clusters.center))]


def instances(seed, k, most=9):
    """Return the distances of points of a plane, many of them equal."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(k, most + 1))
    points = rng.integers(0, int(rng.choice([4, 12, 40])), (n, 2))
    return np.abs(points[:, None] - points).sum(axis=2).astype(np.float64)


# Known numbers


def test_a_center_keeps_more_than_suppression():
    rows = ["0111", "1011", "1101", "1110", "1111"]
    table = encoded({f"c{i}": list(column) for i, column in enumerate(zip(*rows, strict=True))})
    distances = pairwise(table, "hamming")
    group = np.zeros(5, np.int32)
    center = best_centers(distances, group, 1)
    assert [4] == center.tolist()
    assert (20, 4) == (graphs.stars(rows, range(5)), distances[4].sum())
    assert 1 == graphs.gather_radius(distances, Clusters(group, center))


def test_the_costs_of_three_clusters_are_known():
    points, group = [], []
    for number, (size, radius) in enumerate([(50, 10), (20, 5), (8, 3)]):
        points += [1000 * number, *[1000 * number + radius] * (size - 1)]
        group += [number] * size
    clusters = Clusters(np.array(group, np.int32), np.array([0, 50, 70]))
    distances = apart(points)
    assert [10, 5, 3] == graphs.radii(distances, clusters)
    assert (10, 624) == (
        graphs.gather_radius(distances, clusters),
        graphs.cellular_cost(distances, clusters),
    )


def test_attached_groups_are_regrouped():
    distances = apart(range(15))
    kept, attached = range(6), [[6, 7], [8, 9, 10], [11, 12, 13, 14]]
    found = regroup(distances, kept, attached, k=5)
    assert [[0, 1, 2, 3, 4], [6, 7, 8, 9, 10], [11, 12, 13, 14, 5]] == found
    assert [[0, 1, 2, 3, 4, 11]] == regroup(distances, range(5), [[11]], k=5)


def test_points_on_a_line_gather_at_the_known_radius():
    distances = apart(LINE)
    assert 2 == graphs.least_radius(distances.tolist(), 3)
    clusters = gather(distances, 3)
    assert [[0, 1, 2], [3, 4, 5, 6]] == members(clusters)
    assert [0, 3] == clusters.center.tolist()
    assert 3 == graphs.gather_radius(distances, clusters)


def test_points_on_a_line_have_the_known_cellular_cost():
    distances = apart(LINE)
    assert 11 == graphs.least_cellular_cost(distances.tolist(), 3)
    clusters = cellular(distances, 3)
    assert 11 == graphs.cellular_cost(distances, clusters)
    assert [[0, 1, 2], [3, 4, 5, 6]] == members(clusters)


def test_an_outlier_is_dear():
    distances = apart([*LINE, 100])
    assert 87 == graphs.least_radius(distances.tolist(), 3)
    assert 88 == graphs.gather_radius(distances, gather(distances, 3))
    assert 301 == graphs.least_cellular_cost(distances.tolist(), 3)
    assert 301 <= graphs.cellular_cost(distances, cellular(distances, 3)) <= 6 * 301


def test_an_outlier_can_be_left_out():
    distances = apart([*LINE, 100])
    clusters = gather_most(distances, 3, n_kept=7)
    assert [[0, 1, 2], [3, 4, 5, 6]] == members(clusters)
    assert 3 == graphs.gather_radius(distances, clusters)


def test_a_row_beyond_twice_the_threshold_is_left_out_though_three_times_would_reach_it():
    distances = apart([0, 1, 2, 5.5, 50, 51, 52])
    assert 1 == graphs.least_radius(distances.tolist(), 3, left_out=1)
    assert [[0, 1, 2], [4, 5, 6]] == members(gather_most(distances, 3, n_kept=6))
    distances = apart([0, 1, 2, 4, 50, 51, 52])
    assert [[0, 1, 2, 3], [4, 5, 6]] == members(gather_most(distances, 3, n_kept=6))


# Bounds


@pytest.mark.parametrize("seed", exhaustive_after(12, range(60)))
@pytest.mark.parametrize("k", [2, 3])
def test_gather_keeps_its_bound(seed, k):
    distances = instances(seed, k)
    clusters = gather(distances, k)
    assert k <= np.bincount(clusters.group).min()
    optimum = graphs.least_radius(distances.tolist(), k)
    assert graphs.gather_radius(distances, clusters) <= 2 * optimum + TIE


@pytest.mark.parametrize("seed", exhaustive_after(8, range(40)))
@pytest.mark.parametrize(("k", "left_out"), [(2, 0), (2, 2), (3, 1)])
def test_gather_with_outliers_keeps_its_bound(seed, k, left_out):
    distances = instances(seed, k, most=8)
    n = len(distances)
    clusters = gather_most(distances, k, n_kept=max(1, n - left_out))
    assert k <= np.bincount(clusters.group[clusters.group >= 0]).min()
    assert (clusters.group < 0).sum() <= left_out
    optimum = graphs.least_radius(distances.tolist(), k, left_out=left_out)
    assert graphs.gather_radius(distances, clusters) <= 4 * optimum + TIE


@pytest.mark.parametrize("seed", exhaustive_after(12, range(60)))
@pytest.mark.parametrize("k", [2, 3, 4])
def test_cellular_keeps_its_bound(seed, k):
    distances = instances(seed, k)
    clusters = cellular(distances, k)
    assert k <= np.bincount(clusters.group).min()
    optimum = graphs.least_cellular_cost(distances.tolist(), k)
    assert optimum - TIE <= graphs.cellular_cost(distances, clusters) <= 6 * optimum + TIE


@pytest.mark.parametrize("seed", range(10))
def test_groups_of_equal_rows_cost_nothing_when_one_row_is_enough(seed):
    distances = instances(seed, 1, most=30)
    found = gather(distances, 1), gather_most(distances, 1, n_kept=len(distances))
    for clusters in (*found, cellular(distances, 1)):
        assert 0 == graphs.gather_radius(distances, clusters)


@pytest.mark.parametrize("seed", exhaustive_after(8, range(30)))
@pytest.mark.parametrize("k", [2, 3])
def test_prices_rise_until_every_row_is_in_a_paid_ball(seed, k):
    distances = instances(seed, k, most=30)
    paid, tight = raise_prices(distances, k)
    followers = [row for ball in tight for row in ball.rows]
    assert list(range(len(distances))) == sorted(followers)
    for center, radius in [(c, r) for c in range(len(distances)) for r in distances[c]]:
        inside = distances[center] <= radius
        if inside.sum() >= k:
            assert np.maximum(0, paid[inside] - radius).sum() <= k * radius + TIE
    for ball in tight:
        inside = distances[ball.center] <= ball.radius
        given = np.maximum(0, paid[inside] - ball.radius).sum()
        assert k * ball.radius == pytest.approx(given)
        assert all(inside[ball.rows])


@pytest.mark.parametrize("seed", exhaustive_after(8, range(20)))
def test_rows_go_to_the_nearest_center_that_does_not_need_another(seed):
    distances = instances(seed, 2, most=30)
    clusters = gather(distances, 2)
    sizes = np.bincount(clusters.group)
    for row, group in enumerate(clusters.group.tolist()):
        if sizes[group] > 2:
            assert distances[clusters.center[group], row] == distances[clusters.center, row].min()


# Tables


@given(tables(weights=(1.0, 0.25)))
def test_distances_are_those_of_the_values_of_two_rows(table):
    values, changes = pairwise(table), pairwise(table, "hamming")
    for a in range(table.n_rows):
        for b in range(table.n_rows):
            codes = [(column, column.codes[[a, b]].tolist()) for column in table.quasi]
            by_value = sum(naive.cost_of_codes(c, pair, by_height=True) for c, pair in codes)
            by_change = sum(c.rule.weight for c, pair in codes if len(set(pair)) > 1)
            assert (by_value, by_change) == pytest.approx((values[a, b], changes[a, b]))


def outliers(columns, share, sensitive=None, *, l=1, **parameters):
    table = encoded(columns, sensitive)
    requirement = Requirement(3, l, share)
    found = GatherOutliers(**parameters).assign(table, requirement, seed=0)
    return np.flatnonzero(found.group < 0).tolist()


@pytest.mark.parametrize(
    ("share", "eps", "expected"),
    [(0.125, None, [7]), (0.0, None, []), (0.0, 0.125, []), (0.5, 0.125, [7]), (0.5, 0.124, [])],
)
def test_no_more_rows_are_left_out_than_policy_and_parameter_allow(share, eps, expected):
    assert expected == outliers({"x": [*LINE, 100]}, share, eps=eps)


def test_the_fraction_is_read_as_it_is_written():
    columns = {"x": [*range(71), *[1000 * 3**i for i in range(1, 30)]]}
    assert 0.29 * 100 < 29
    assert list(range(71, 100)) == outliers(columns, 0.29)


def test_a_fraction_out_of_range_is_refused():
    with pytest.raises(PolicyError, match=r"eps = 1\.5"):
        outliers({"x": LINE}, 0.5, eps=1.5)


def test_an_outlier_that_the_diversity_needs_stays():
    columns = {"x": [*LINE, 100]}
    assert [] == outliers(columns, 0.125, {"disease": ["flu"] * 7 + ["cold"]}, l=2)
    assert [7] == outliers(columns, 0.125, {"disease": ["flu", "cold"] * 4}, l=2)


def test_what_is_left_out_counts_towards_the_budget():
    table = encoded({"x": [*LINE, 60, 100]})
    policy = policy_of(["x"], k=3, algorithm="gather-outliers", max_suppressed=0.2)
    outcome = solve(Problem(table, policy), seed=0, stages=Stages())
    assert 1 == outcome.loss.n_suppressed == outcome.assignment.n_suppressed


@pytest.mark.parametrize("algorithm", [Gather, GatherOutliers, Cellular])
def test_the_distance_has_a_name(algorithm):
    table = encoded({"x": [0, 1, 10, 11, 50, 50], "y": [0, 1, 0, 1, 100, 100]})
    by_value = algorithm(distance="manhattan").assign(table, Requirement(2), seed=0)
    by_change = algorithm(distance="hamming").assign(table, Requirement(2), seed=0)
    assert [[0, 1], [2, 3], [4, 5]] == sorted(naive.members(by_value))
    assert [[0, 2], [1, 3], [4, 5]] == sorted(naive.members(by_change))
    with pytest.raises(PolicyError, match="euclid"):
        algorithm(distance="euclid").assign(table, Requirement(2), seed=0)


@pytest.mark.parametrize("algorithm", [Gather, GatherOutliers, Cellular])
def test_a_large_table_is_refused(algorithm):
    table = encoded({"x": [1] * (algorithm.MAX_ROWS + 1)})
    with pytest.raises(Unsatisfiable, match="at most"):
        algorithm().assign(table, Requirement(2), seed=0)
