import numpy as np
import pytest

from dbanon.anonymization.loss.statistics import statistical_loss
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


def test_a_constant_column_and_groups_that_cover_all_stay_finite():
    values = np.array([[5.0, 1.0], [5.0, 3.0]])
    whole = Assignment(np.zeros(2, np.int32), 1)
    masked = aggregate(values, whole, restore_variance=True)
    assert [[5.0, 2.0], [5.0, 2.0]] == masked.tolist()
