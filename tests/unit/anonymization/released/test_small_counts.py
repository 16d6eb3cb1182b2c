"""Counts of the source that may be told."""

from dataclasses import replace

import numpy as np
import pytest
from builders import encoded, grouped, policy_of
from hypothesis import given
from hypothesis import strategies as st

from dbanon.anonymization.released.held import Standing, standing
from dbanon.anonymization.released.small_counts import least_rows, told_rows

K = 5
PUBLISHED, LEAST = st.integers(0, 10**6), st.integers(2, 50)


@given(PUBLISHED, LEAST, st.data())
def test_a_count_that_differs_by_too_few_rows_is_told_as_the_published_one(published, least, data):
    change = data.draw(st.integers(1 - least, least - 1))
    count = max(published + change, 0)  # more rows than are published, or fewer
    assert published == told_rows(count, published=published, least=least)


@given(PUBLISHED, LEAST, st.data())
def test_any_other_count_is_told_in_steps_of_as_many_rows_as_may_be_told(published, least, data):
    count = data.draw(st.integers(0, 10**6).filter(lambda n: abs(n - published) >= least))
    told = told_rows(count, published=published, least=least)
    assert told >= least
    assert told % max(least, round(count / 1000)) == 0


def released_of(left_out, sex="f"):
    """Return a release of two classes, and its policy; those left out are all of one sex."""
    columns = {"sex": ["f"] * 10 + ["m"] * 20 + [sex] * left_out}
    groups = [0] * 10 + [1] * 20 + [-1] * left_out
    policy = policy_of(["sex"], [], k=K)
    return grouped(encoded(columns, {}), groups, policy), policy


def test_it_takes_as_many_rows_as_k_persons_may_have():
    released, policy = released_of(0)
    assert K == least_rows(released, policy)
    persons = np.repeat(np.arange(10, dtype=np.int32), 3)
    assert 3 * K == least_rows(replace(released, persons=persons), policy)


@pytest.mark.parametrize(("left_out", "is_told"), [(0, True), (1, False), (4, False), (5, True)])
def test_few_rows_more_than_a_release_shows_are_not_told_of(left_out, is_told):
    """Nobody remembers who is in it, and any of them may be."""
    released, policy = released_of(left_out)
    assert Standing(None, is_told) == standing(replace(released, classes=None), policy)


@pytest.mark.parametrize("left_out", [1, 4])
def test_few_rows_that_no_class_covers_are_set_aside_also_when_as_many_are_gone(left_out):
    released, policy = released_of(left_out, "x")
    size = released.size + np.array([0, left_out])
    found = standing(replace(released, classes=None, size=size), policy)
    assert not found.is_told
    assert [*range(30)] == found.held.tolist()
