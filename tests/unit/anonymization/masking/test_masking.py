import numpy as np
import pytest

from dbanon.anonymization.loss.statistics import (
    StatisticalLoss,
    scaled_difference,
    statistical_loss,
)
from dbanon.anonymization.masking.microaggregation import aggregate
from dbanon.domain.assignment import Assignment

NINE = np.array(
    [(1, 1), (2, 1), (1, 2), (10, 10), (11, 10), (10, 11), (5, 5), (6, 5), (5, 6)], np.float64
)
GROUPS = Assignment(np.array([1, 1, 1, 0, 0, 0, 2, 2, 2], np.int32), 3)


def test_nine_points_lose_what_the_reference_says():
    loss = statistical_loss(NINE, aggregate(NINE, GROUPS))
    assert (0.152413, 0, 0.016129, 0.008264, 0.024793) == pytest.approx(tuple(loss), abs=1e-6)
    assert loss.overall == pytest.approx(4.031998, abs=1e-6)
    assert loss.il3 == pytest.approx(4 / 248)


def test_restored_variance_leaves_mean_and_variance_alone():
    masked = aggregate(NINE, GROUPS, restore_variance=True)
    loss = statistical_loss(NINE, masked)
    assert (0.146908, 0, 0, 0.024793, 0.024793) == pytest.approx(tuple(loss), abs=1e-6)
    assert loss.overall == pytest.approx(3.929905, abs=1e-6)
    assert 3 == len(np.unique(masked, axis=0))


@pytest.mark.parametrize(
    ("il1", "il4", "il5", "overall"),
    [
        (0.131, 0.036, 0.007, 3.48),
        (0.174, 0.075, 0.013, 5.24),
        (0.203, 0.129, 0.017, 6.98),
        (0.185, 0.166, 0.020, 7.42),
        (0.907, 0.058, 0.016, 19.62),
        (1.389, 0.134, 0.032, 31.10),
        (1.535, 0.161, 0.039, 34.70),
        (1.564, 0.164, 0.046, 35.48),
    ],
)
def test_the_overall_loss_is_a_hundred_times_the_mean_of_five(il1, il4, il5, overall):
    loss = StatisticalLoss(il1, 0.0, 0.0, il4, il5)
    assert overall == pytest.approx(loss.overall, abs=1e-9)


def test_measures_without_a_denominator_are_unknown():
    constant = np.zeros((4, 2))
    loss = statistical_loss(constant, constant)
    assert StatisticalLoss(None, None, None, None, None) == loss
    assert loss.overall is None
    assert scaled_difference(constant, constant) is None


def test_one_column_has_no_pairs():
    column = np.array([[1.0], [3.0]])
    assert StatisticalLoss(0.0, 0.0, 0.0, None, None) == statistical_loss(column, column)


def test_the_scaled_difference_is_in_deviations_and_skips_constant_columns():
    original = np.array([[0.0, 7.0], [2.0, 7.0]])
    masked = np.array([[1.0, 7.0], [1.0, 7.0]])
    # the deviation is sqrt(2), so that a step of 1 is half of sqrt(2) deviations
    assert scaled_difference(original, masked) == pytest.approx(0.5)


def test_a_constant_column_and_groups_that_cover_all_stay_finite():
    values = np.array([[5.0, 1.0], [5.0, 3.0]])
    whole = Assignment(np.zeros(2, np.int32), 1)
    masked = aggregate(values, whole, restore_variance=True)
    assert [[5.0, 2.0], [5.0, 2.0]] == masked.tolist()
