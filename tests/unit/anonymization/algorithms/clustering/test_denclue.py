import naive
import numpy as np
import pytest
from builders import encoded
from hypothesis import given
from hypothesis import strategies as st
from naive import clustering

from dbanon.anonymization.algorithms.clustering.density import (
    Denclue,
    attractors,
    influences,
    joined,
)
from dbanon.anonymization.interfaces import Requirement
from dbanon.domain.errors import PolicyError

WIDTHS = st.sampled_from([0.05, 0.2, 1.0])


@given(st.integers(1, 10), WIDTHS, st.integers(0, 1000))
def test_points_climb_to_the_attractors_of_their_naive_twin(n, sigma, seed):
    random = np.random.default_rng(seed)
    points, weight = random.random((n, 2)), random.integers(1, 4, n)
    rows = np.repeat(points, weight, axis=0).tolist()
    ends = attractors(points, weight, sigma, rounds=100)
    expected = [clustering.attractor(point, rows, sigma) for point in points.tolist()]
    assert np.array(expected) == pytest.approx(ends, abs=1e-6)
    heights = influences(ends, points, sigma) @ weight
    assert [clustering.density(end, rows, sigma) for end in ends.tolist()] == pytest.approx(heights)
    before = influences(points, points, sigma) @ weight
    assert (heights >= before - 1e-9).all()


@given(st.integers(1, 15), WIDTHS, st.integers(0, 1000))
def test_places_are_joined_as_by_their_naive_twin(n, reach, seed):
    places = np.random.default_rng(seed).random((n, 2))
    found = joined(places, reach)
    sets = [np.flatnonzero(found == a).tolist() for a in set(found.tolist())]
    assert clustering.joined(places.tolist(), reach) == sorted(sets)


def test_what_is_far_away_has_no_influence_and_no_width_is_too_small():
    points = np.array([[0.0], [1.0]])
    assert [[1, 0], [0, 1]] == influences(points, points, 1e-300).tolist()


def test_noise_is_left_out_within_the_budget():
    table = encoded({"x": [0, 1, 2, 1, 0, 60, 58, 59, 60, 58, 100]})
    assert [-1] == Denclue().assign(table, Requirement(3, 1, 0.1), seed=0).group[-1:].tolist()
    assert 0 == Denclue().assign(table, Requirement(3), seed=0).n_suppressed


def test_the_width_of_influences_and_the_steps_can_be_given():
    random = np.random.default_rng(1)
    table = encoded({name: random.integers(0, 100, 60).tolist() for name in "xy"})
    tried = [Denclue(), Denclue(sigma=0.05), Denclue(rounds=2)]
    found = [method.assign(table, Requirement(3), seed=0).group.tolist() for method in tried]
    assert 3 == len(set(map(tuple, found)))


def test_equal_rows_are_together_when_most_have_company():
    table = encoded({"x": [1, 1, 1, 5, 5, 5, 9]})
    groups = naive.members(Denclue().assign(table, Requirement(3), seed=0))
    assert [0, 1, 2] in groups or [3, 4, 5] in groups


def test_a_width_below_0_is_refused():
    with pytest.raises(PolicyError, match="a sigma of -1 is no width"):
        Denclue(sigma=-1.0).assign(encoded({"x": [1, 2]}), Requirement(2), seed=0)
