import os

import numpy as np
import pytest
from builders import encoded, read_numbers, tables_and_requirements
from hypothesis import given
from hypothesis import strategies as st
from naive import cost_of_codes, members
from naive.microaggregation import error, v_mdav

from dbanon.anonymization import threads
from dbanon.anonymization.algorithms.microaggregation import microaggregation
from dbanon.anonymization.algorithms.microaggregation.microaggregation import (
    MOST_NODES,
    Mdav,
    Microaggregation,
    VMdav,
    mdav_points,
)
from dbanon.anonymization.interfaces import Requirement
from dbanon.domain.assignment import Assignment
from dbanon.domain.errors import PolicyError
from dbanon.kernels.points.mdav import LEAF
from dbanon.kernels.points.mdav import v_mdav as compiled

GRID = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=6, max_size=60)


def loss(table, assignment):
    """Return 100 SSE / SST."""
    points = mdav_points(table)
    size = np.bincount(assignment.group)
    inside = 0.0
    for column in points.T:
        means = np.bincount(assignment.group, column) / size
        inside += ((column - means[assignment.group]) ** 2).sum()
    return 100 * inside / ((points - points.mean(axis=0)) ** 2).sum()


def sizes(assignment):
    return np.bincount(assignment.group).tolist()


@pytest.fixture(scope="module")
def tarragona():
    return encoded(read_numbers("tarragona"))


@pytest.fixture(scope="module")
def census():
    return encoded(read_numbers("census"))


# What a prototype's local search reached, and a percent.
@pytest.mark.parametrize(
    ("name", "k", "reached"),
    [
        ("tarragona", 3, 14.931),
        ("tarragona", 5, 20.750),
        ("census", 3, 5.206),
        ("census", 5, 8.053),
    ],
)
def test_fast_loses_no_more_than_the_reference(request, name, k, reached):
    table = request.getfixturevalue(name)
    assignment = Microaggregation().assign(table, Requirement(k), seed=1)
    assert loss(table, assignment) <= reached * 1.01
    assert k <= min(sizes(assignment)) <= max(sizes(assignment)) <= 2 * k - 1


def test_best_loses_less_than_fast_and_mdav(tarragona):
    found = [
        algorithm.assign(tarragona, Requirement(5), seed=1)
        for algorithm in (
            Microaggregation(effort="best", trials=8),
            Microaggregation(),
            Mdav(),
        )
    ]
    best, fast, mdav = (loss(tarragona, assignment) for assignment in found)
    assert best < fast < mdav
    assert best <= 20.165 * 1.01
    assert 5 <= min(sizes(found[0])) <= max(sizes(found[0])) <= 9


def test_a_time_limit_ends_the_search(tarragona):
    limited = Microaggregation(effort="best", time_limit=0.05)
    assignment = limited.assign(tarragona, Requirement(3), seed=1)
    assert 3 <= min(sizes(assignment)) <= max(sizes(assignment)) <= 5


@pytest.mark.parametrize("effort", ["fast", "best"])
def test_regions_give_the_same_groups_with_any_number_of_threads(monkeypatch, effort):
    monkeypatch.setattr(microaggregation, "REGION", 300)
    rows = np.random.default_rng(0).normal(size=(2_000, 2)).round(3)
    table = encoded({"x": rows[:, 0].tolist(), "y": rows[:, 1].tolist()})
    algorithm = Microaggregation(effort=effort, trials=2)
    found = []
    for count in (1, 3):
        monkeypatch.setattr(threads, "processors", lambda count=count: count)
        found.append(algorithm.assign(table, Requirement(4), seed=5))
    assert found[0].group.tolist() == found[1].group.tolist()
    assert 4 <= min(sizes(found[0])) <= max(sizes(found[0])) <= 7


def test_as_many_threads_as_processors_are_taken():
    assert 1 <= threads.processors() <= os.cpu_count()
    assert [1, 4, 9] == threads.in_threads(lambda x: x * x, [1, 2, 3])


def test_an_unknown_effort_is_refused():
    with pytest.raises(PolicyError, match="no effort 'good'") as caught:
        Microaggregation(effort="good").assign(encoded({"x": [1, 2]}), Requirement(2), seed=0)
    assert "choose one of fast, best" == caught.value.hint


@given(GRID, st.integers(2, 6))
def test_searching_never_loses_more_than_where_it_starts(points, k):
    table = encoded({"x": [x for x, _ in points], "y": [y for _, y in points]})
    rows, mdav = mdav_points(table).tolist(), Mdav().assign(table, Requirement(k), seed=0)
    fast = Microaggregation().assign(table, Requirement(k), seed=0)
    # up to 60 rows are one block, which starts as MDAV
    assert error(rows, members(fast)) <= error(rows, members(mdav)) + 1e-9
    assert k <= min(sizes(fast)) <= max(sizes(fast)) <= 2 * k - 1


@given(tables_and_requirements(max_sensitive=0, weights=(1.0, 4.0)))
def test_points_are_as_far_apart_as_records(drawn):
    table, _, _ = drawn
    points = mdav_points(table)
    for a, b in [(0, -1), (table.n_rows // 2, 0)]:
        expected = 0.0
        for column in table.quasi:
            x, y = column.codes[[a, b]].tolist()
            weight = column.rule.weight
            if column.taxonomy is not None:
                height = cost_of_codes(column, {x, y}, by_height=True) / weight
                expected += weight * height * height
        trees = [c for c in table.quasi if c.taxonomy is not None]
        if len(trees) == len(table.quasi):
            assert expected == pytest.approx(((points[a] - points[b]) ** 2).sum(), abs=1e-9)
        else:
            assert expected <= ((points[a] - points[b]) ** 2).sum() + 1e-9


def test_null_among_numbers_is_the_mean_and_one_apart():
    points = mdav_points(encoded({"x": [1, 3, None]}))
    assert [[-1, 0], [1, 0], [0, 1]] == np.round(points, 12).tolist()


def test_only_the_nodes_that_vary_most_are_coordinates():
    values = [f"v{i}" for i in range(3 * MOST_NODES)] + ["often"] * 50
    points = mdav_points(encoded({"x": values}))
    assert MOST_NODES == points.shape[1]
    assert 50 == (points[:, 0] > 0).sum()


@pytest.mark.parametrize("leaf", [1, LEAF])
@given(
    points=GRID,
    k=st.integers(1, 5),
    gamma=st.sampled_from([0.0, 0.2, 1.0, 1.1, 5.0]),
)
def test_v_mdav_equals_its_naive_twin(leaf, points, k, gamma):
    group, n_groups = compiled(np.array(points, np.float64), k, gamma, leaf)
    assert v_mdav(points, k, gamma) == members(Assignment(group, n_groups))


def test_v_mdav_keeps_a_cluster_together_that_mdav_would_cut():
    table = encoded({"x": [1, 2, 3, 4, 5, 50, 51, 52, 53]})
    assignment = VMdav(gamma=1.1).assign(table, Requirement(4), seed=0)
    assert [[0, 1, 2, 3, 4], [5, 6, 7, 8]] == sorted(members(assignment))
