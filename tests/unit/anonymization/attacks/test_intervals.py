import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive.attacks import binomial_interval

from dbanon.anonymization.attacks.scenario import interval


@given(st.integers(1, 30).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_it_is_where_so_few_or_so_many_are_right_once_in_forty(counts):
    right, tried = counts
    assert binomial_interval(right, tried) == pytest.approx(interval(right, tried), abs=1e-9)


def test_it_is_that_of_the_tables():
    # Clopper and Pearson: 3 of 10, and the rule of three at none of n.
    assert pytest.approx((0.0667, 0.6525), abs=1e-4) == interval(3, 10)
    low, high = interval(0, 100)
    assert low == 0.0
    assert 1 - 0.025 ** (1 / 100) == pytest.approx(high)


def test_sums_of_chances_lie_between_counts():
    lower, middle, upper = (interval(right, 10) for right in (3, 3.5, 4))
    assert lower[0] < middle[0] < upper[0]
    assert lower[1] < middle[1] < upper[1]


@pytest.mark.parametrize(("right", "tried"), [(1, 0), (-1, 3), (4, 3), (math.nan, 3)])
def test_nobody_is_right_more_often_than_tried(right, tried):
    with pytest.raises(ValueError, match="more often"):
        interval(right, tried)
