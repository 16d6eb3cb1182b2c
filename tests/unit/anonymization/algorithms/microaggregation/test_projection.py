from fractions import Fraction

import naive
import numpy as np
import pytest
from builders import encoded, tables_and_requirements
from hypothesis import given
from hypothesis import strategies as st
from naive import lattice

from dbanon.anonymization.algorithms.microaggregation.microaggregation import Projection, Univariate
from dbanon.anonymization.interfaces import Requirement
from dbanon.anonymization.masking.microaggregation import individual_ranking
from dbanon.domain.errors import PolicyError
from dbanon.kernels.points.microaggregation import least_error_blocks

RANKED = [(1, 50), (2, 10), (10, 40), (11, 20), (12, 30), (20, 60)]
PAIRS = {"x": [x for x, _ in RANKED], "y": [y for _, y in RANKED]}


def groups_of(algorithm, columns, k, l=1, **changes):
    table = encoded(columns, **changes)
    return naive.members(algorithm.assign(table, Requirement(k, l), seed=0))


def blocks_of(algorithm, x, k):
    """Return the values of each group, in rising order."""
    return sorted(sorted(x[row] for row in rows) for rows in groups_of(algorithm, {"x": x}, k))


GOLDEN = [
    ([1, 2, 10, 11, 12, 20, 21], 2, [[1, 2], [10, 11, 12], [20, 21]], 3, Fraction(149, 3)),
    (
        [1, 2, 3, 10, 11, 12, 13, 30, 31, 32],
        3,
        [[1, 2, 3], [10, 11, 12, 13], [30, 31, 32]],
        9,
        249,
    ),
]


@pytest.mark.parametrize(("x", "k", "expected", "least", "fixed"), GOLDEN)
def test_blocks_of_variable_size_lose_least(x, k, expected, least, fixed):
    for algorithm in (Univariate(), Univariate("x"), Projection(), Projection("principal")):
        assert expected == blocks_of(algorithm, x, k)
    assert least == sum(map(lattice.error, expected))
    of_size_k = blocks_of(Projection(blocks="fixed"), x, k)
    assert [k] * (len(of_size_k) - 1) == [len(block) for block in of_size_k[:-1]]
    assert fixed == sum(map(lattice.error, of_size_k))


def test_the_order_of_the_rows_does_not_matter():
    found = blocks_of(Univariate(), [5, 1, 9, 2, 8, 3, 40, 41], 2)
    assert [[1, 2], [3, 5], [8, 9], [40, 41]] == found
    assert Fraction(7, 2) == sum(map(lattice.error, found))


@given(st.lists(st.integers(0, 9), min_size=1, max_size=12), st.integers(1, 4))
def test_the_kernel_finds_the_earliest_of_the_best_cuts(values, k):
    values = sorted(values)
    k = min(k, len(values))
    block, n_blocks = least_error_blocks(np.array(values, np.float64), k)
    ends = np.cumsum(np.bincount(block)).tolist()
    assert lattice.least_error_cut(values, k) == tuple(ends)
    assert n_blocks == len(ends)


def test_a_distant_value_does_not_blur_the_others():
    x = [0.0, 1e-6, 2.0, 2.000001, 4.0, 4.000001, 5.0, 1e12, 1e12 + 1]
    block, _ = least_error_blocks(np.array(x), 2)
    assert [0, 0, 1, 1, 2, 2, 2, 3, 3] == block.tolist()


def test_the_sum_of_z_scores_orders_the_rows():
    assert [[1, 3], [0, 4], [2, 5]] == groups_of(Projection(blocks="fixed"), PAIRS, 2)
    order = [rows[0] for rows in groups_of(Projection(), PAIRS, 1)]
    assert [2, 4, 1, 5, 3, 6] == [row + 1 for row in order]


def test_the_principal_component_is_the_axis_of_greatest_variance():
    x, y = [0, 1, 2, 3, 4, 5], [5, 4, 3, 2, 1, 0]
    columns = {"x": x, "y": y, "noise": [0, 1, 0, 0, 1, 0]}
    along_the_diagonal = [[0, 1], [2, 3], [4, 5]]
    assert along_the_diagonal == sorted(groups_of(Projection("principal"), columns, 2))
    # the greatest loading is positive: the groups come in the order of the first column
    assert along_the_diagonal == groups_of(Projection("principal", "fixed"), columns, 2)


def test_one_column_may_be_the_axis():
    by_y = [[1, 3], [4, 2], [0, 5]]
    expected = [sorted(rows) for rows in by_y]
    assert expected == groups_of(Projection("y", "fixed"), PAIRS, 2)
    assert expected == groups_of(Univariate("y"), PAIRS, 2)


def test_null_lies_apart():
    assert [[0, 1], [2, 3]] == groups_of(Univariate(), {"x": [7, 9, None, None]}, 2)
    assert [[0, 2], [1, 3]] == groups_of(Univariate(), {"x": [4, None, 4, None]}, 2)


@pytest.mark.parametrize("n", [3, 5, 6, 8, 9, 10, 11, 12])
@pytest.mark.parametrize("blocks", ["optimal", "fixed"])
def test_groups_have_k_to_2k_minus_1_rows(n, blocks):
    for x in ([1] * n, list(range(n))):
        sizes = [len(rows) for rows in groups_of(Projection(blocks=blocks), {"x": x}, 3)]
        assert 3 <= min(sizes) <= max(sizes) <= 5


@given(
    tables_and_requirements(weights=(1.0, 0.0, 4.0)),
    st.sampled_from(["z-sum", "principal"]),
    st.sampled_from(["optimal", "fixed"]),
)
def test_every_axis_makes_groups_that_meet_the_requirement(drawn, axis, blocks):
    table, k, l = drawn
    for chosen in (axis, table.quasi[-1].name):
        assignment = Projection(chosen, blocks).assign(table, Requirement(k, l), seed=0)
        groups = naive.members(assignment)
        assert list(range(table.n_rows)) == sorted(row for rows in groups for row in rows)
        assert all(len(rows) >= k and naive.is_diverse(table, rows, l) for rows in groups)
        assert l > 1 or all(len(rows) <= 2 * k - 1 for rows in groups)


@pytest.mark.parametrize(
    ("algorithm", "message", "hint"),
    [
        (Projection("z"), "z is no quasi-identifier", "choose one of x, y"),
        (Univariate("z"), "z is no quasi-identifier", "choose one of x, y"),
        (Projection(blocks="huge"), "no blocks 'huge'", "choose one of optimal, fixed"),
    ],
)
def test_a_parameter_that_means_nothing_is_refused(algorithm, message, hint):
    with pytest.raises(PolicyError, match=message) as caught:
        algorithm.assign(encoded(PAIRS), Requirement(2), seed=0)
    assert hint == caught.value.hint


def test_individual_ranking_masks_but_does_not_anonymize():
    masked = individual_ranking(np.array(RANKED, np.float64), 2)
    expected = [(1.5, 55), (1.5, 15), (10.5, 35), (10.5, 15), (16, 35), (16, 55)]
    assert expected == [tuple(row) for row in masked.tolist()]
    assert 1 == np.unique(masked, axis=0, return_counts=True)[1].min()


def test_individual_ranking_keeps_null_and_means():
    values = np.array([[1.0, np.nan], [4.0, np.nan], [7.0, 2.0], [np.nan, np.nan], [0.0, np.nan]])
    masked = individual_ranking(values, 3)
    assert np.isnan(values).tolist() == np.isnan(masked).tolist()
    assert [3.0, 3.0, 3.0, 3.0] == masked[[0, 1, 2, 4], 0].tolist()
    assert 2.0 == masked[2, 1]
