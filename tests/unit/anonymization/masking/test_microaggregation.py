import numpy as np
import pytest

from dbanon.anonymization.interfaces import Rows
from dbanon.anonymization.loss.metrics import statistical_loss
from dbanon.anonymization.masking.microaggregation import (
    IndividualRanking,
    Microaggregation,
    aggregate,
)
from dbanon.domain.assignment import Assignment
from dbanon.domain.errors import PolicyError

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


def masked_by(method, values):
    values = np.asarray(values, np.float64)
    return method.mask(values, Rows(np.arange(len(values)), None, None))


def sse(before, after):
    return ((before - after) ** 2).sum()


@pytest.mark.parametrize(
    ("values", "k", "error"),
    [
        ([1, 2, 10, 11, 12, 20, 21], 2, 3),
        ([1, 2, 3, 10, 11, 12, 13, 30, 31, 32], 3, 9),
        ([5, 1, 9, 2, 8, 3, 40, 41], 2, 3.5),
    ],
)
@pytest.mark.parametrize("by", ["z-sum", "principal"])
def test_groups_of_one_column_are_optimal(values, k, error, by):
    column = np.array(values, np.float64)[:, None]
    masked = masked_by(Microaggregation(k, by), column)
    assert sse(column, masked) == pytest.approx(error)
    assert np.unique(masked, return_counts=True)[1].min() >= k


def test_groups_of_columns_together_are_those_of_mdav():
    masked = masked_by(Microaggregation(3), NINE)
    assert sse(NINE, masked) == pytest.approx(4)
    assert aggregate(NINE, GROUPS) == pytest.approx(masked)


def test_variance_is_restored_on_demand():
    masked = masked_by(Microaggregation(3, restore_variance=True), NINE)
    assert aggregate(NINE, GROUPS, restore_variance=True) == pytest.approx(masked)


def test_fewer_than_twice_k_rows_are_one_group():
    assert [[4.0], [4.0], [4.0]] == masked_by(Microaggregation(2), [[1], [4], [7]]).tolist()


def test_individual_ranking_groups_no_rows():
    rows = [(1, 50), (2, 10), (10, 40), (11, 20), (12, 30), (20, 60)]
    masked = np.column_stack(
        [masked_by(IndividualRanking(2), [[r[j]] for r in rows]) for j in (0, 1)]
    )
    expected = [(1.5, 55), (1.5, 15), (10.5, 35), (10.5, 15), (16, 35), (16, 55)]
    assert expected == [tuple(row) for row in masked.tolist()]
    assert len({*expected}) == 6


@pytest.mark.parametrize("method", [Microaggregation, IndividualRanking])
def test_groups_of_nobody_are_refused(method):
    with pytest.raises(PolicyError, match="at least 1"):
        method(0)


@pytest.mark.parametrize(
    "method", [Microaggregation(3), Microaggregation(3, by="z-sum"), IndividualRanking(3)]
)
def test_ranks_take_the_lower_median_and_numbers_the_mean(method):
    ranks, numbers = [0, 0, 2, 5, 5, 6, 7], [1, 1, 4, 80, 81, 82, 97]
    values = np.array([ranks, numbers], np.float64).T[::-1]
    rows = Rows(np.arange(7), None, None, frozenset({0}))
    expected = [[0, 2]] * 3 + [[5, 85]] * 4
    assert expected[::-1] == method.mask(values, rows).tolist()
