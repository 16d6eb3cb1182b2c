import numpy as np
import pytest

from dbanon.anonymization.loss.metrics import (
    StatisticalLoss,
    scaled_difference,
    statistical_loss,
)


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


@pytest.mark.parametrize("factor", [2.0**1000, 2.0**-1000])
def test_the_unit_of_a_column_changes_nothing(factor):
    original = np.array([[1.0, 1.0], [2.0, 5.0], [7.5, 3.0]])
    masked = np.array([[1.5, 1.0], [1.5, 4.0], [7.5, 4.0]])
    unit = np.array([factor, 1.0])
    assert statistical_loss(original, masked) == statistical_loss(original * unit, masked * unit)
    assert scaled_difference(original, masked) == scaled_difference(original * unit, masked * unit)


def test_a_measure_that_no_number_can_hold_is_unknown():
    original, masked = np.array([[1e-300], [1.0]]), np.array([[1e200], [1.0]])
    loss = statistical_loss(original, masked)
    assert (None, None) == (loss.il1, loss.overall)
    assert np.isfinite(loss.il2)


def test_what_is_0_but_for_rounding_is_no_denominator():
    halves = [4.1, 0.3, 7.2, 5.9, 1.1]
    original = np.array([[0.1 * i, x] for i, x in enumerate(halves + halves[::-1])])
    masked = original.copy()
    masked[:2] = masked[:2].mean(axis=0)
    loss = statistical_loss(original, masked)  # a covariance of 0, for the second column mirrors
    assert (None, None) == (loss.il4, loss.il5)
    assert 0 < loss.il3 < 1
    balanced = np.array([[0.1], [0.2], [-0.3]])
    assert statistical_loss(balanced, balanced + 0.1).il2 is None
    constant, other = np.full((7, 1), 0.1), np.full((7, 1), 0.2)
    assert statistical_loss(constant, other).il3 is None
    assert scaled_difference(constant, other) is None
