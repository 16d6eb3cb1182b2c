"""The bottom-up and the top-down algorithm of Xu et al."""

from fractions import Fraction
from itertools import permutations
from math import ceil, log2

import naive
import numpy as np
import pytest
from builders import LETTERS, encoded, tables_and_requirements
from hypothesis import given
from hypothesis import strategies as st
from naive import greedy

from dbanon.anonymization.algorithms.partitioning.mondrian import BottomUp, TopDown, split
from dbanon.anonymization.interfaces import Requirement
from dbanon.anonymization.loss.costs import weighted_costs
from dbanon.domain.errors import PolicyError, Unsatisfiable
from dbanon.kernels.boxes.costs import box_costs

POINTS = [(10, 60), (20, 70), (20, 50), (50, 20), (50, 10), (60, 15)]
AGES = [24, 25, 30, 30, 32, 32]
ZIPS = [53712, 53711, 53711, 53711, 53712, 53713]


def points_table(points):
    return encoded({"x": [x for x, _ in points], "y": [y for _, y in points]})


def uncertainty(table, groups):
    """Return the sum over rows of the widths of what is published of them."""
    widths = [
        len(rows) * int(np.ptp(column.values[column.codes[rows]]))
        for rows in groups
        for column in table.quasi
    ]
    return sum(widths)


def penalty(table, groups):
    return sum(len(rows) * naive.cost(table, rows) for rows in groups)


@pytest.mark.parametrize(
    ("groups", "widths", "loss"),
    [
        ([[0, 4, 5], [1, 2, 3]], 42, Fraction(51, 8)),
        ([[0, 1, 2], [3, 4, 5]], 33, Fraction(15, 2)),
    ],
)
def test_global_and_local_recoding_rank_differently_by_width_and_by_penalty(groups, widths, loss):
    table = encoded({"age": AGES, "zip": ZIPS})
    assert widths == uncertainty(table, groups)
    assert float(loss) == pytest.approx(penalty(table, groups))


def test_the_least_width_and_penalty_of_any_3_partition_are_the_known_ones():
    table = encoded({"age": AGES, "zip": ZIPS})
    partitions = list(greedy.partitions(list(range(6)), 3))
    assert 33 == min(uncertainty(table, groups) for groups in partitions)
    assert 51 / 8 == pytest.approx(min(penalty(table, groups) for groups in partitions))


def test_three_rows_a_group_lose_less_than_two():
    table = points_table(POINTS)
    pairs, triples = [[0, 1], [2, 3], [4, 5]], [[0, 1, 2], [3, 4, 5]]
    assert (190, 150) == (uncertainty(table, pairs), uncertainty(table, triples))
    assert (7 / 2, 27 / 10) == pytest.approx((penalty(table, pairs), penalty(table, triples)))
    partitions = list(greedy.partitions(list(range(6)), 2))
    assert 150 == min(uncertainty(table, groups) for groups in partitions)
    assert 27 / 10 == pytest.approx(min(penalty(table, groups) for groups in partitions))


@pytest.mark.exhaustive
def test_bottom_up_finds_the_best_groups_in_every_order_of_the_rows():
    for order in permutations(range(6)):
        table = points_table([POINTS[i] for i in order])
        groups = naive.members(BottomUp().assign(table, Requirement(2), seed=0))
        assert [[0, 1, 2], [3, 4, 5]] == sorted(sorted(order[row] for row in g) for g in groups)


@pytest.mark.parametrize("k", [2, 3])
def test_top_down_finds_the_best_groups_with_every_seed(k):
    table = points_table(POINTS)
    for seed in range(300):
        groups = naive.members(TopDown().assign(table, Requirement(k), seed=seed))
        assert [[0, 1, 2], [3, 4, 5]] == groups


def path_length(taxonomy, a, b):
    chains = [naive.ancestors(taxonomy, taxonomy.labels.index(label)) for label in (a, b)]
    common = next(node for node in chains[0] if node in chains[1])
    return sum(chain.index(common) for chain in chains)


@pytest.mark.parametrize(
    ("a", "b", "path", "loss"),
    [("d", "e", 5, Fraction(4, 7)), ("a", "d", 4, Fraction(1)), ("b", "c", 2, Fraction(2, 7))],
)
def test_the_penalty_of_a_pair_counts_leaves_and_not_the_path(a, b, path, loss):
    table = encoded(
        {"letter": [a, b]}, rules={"letter": {"taxonomy": "letters"}}, taxonomies=[LETTERS]
    )
    codes = np.sort(table.quasi[0].codes)[:, None, None]
    assert path == path_length(LETTERS, a, b)
    assert float(loss) == pytest.approx(box_costs(*weighted_costs(table), *codes)[0, 0])


@pytest.mark.exhaustive
@given(tables_and_requirements(weights=(1.0, 0.25)))
def test_bottom_up_equals_its_naive_twin(drawn):
    table, k, _ = drawn
    groups, rounds = greedy.bottom_up(table, k)
    assert groups == naive.members(BottomUp().assign(table, Requirement(k), seed=0))
    assert rounds <= ceil(log2(k))


@given(tables_and_requirements(weights=(1.0, 0.25)), st.integers(1, 4))
def test_top_down_equals_its_naive_twin(drawn, rounds):
    table, k, _ = drawn
    order = np.random.default_rng(7).permutation(table.n_rows).tolist()
    found = naive.members(TopDown(rounds=rounds).assign(table, Requirement(k), seed=7))
    assert greedy.top_down(table, order, k, rounds) == found


@pytest.mark.parametrize("k", [3, 4, 7])
def test_top_down_equals_its_naive_twin_on_scattered_points(k):
    table = points_table(np.random.default_rng(k).integers(0, 1000, (60, 2)).tolist())
    order = np.random.default_rng(7).permutation(60).tolist()
    found = naive.members(TopDown().assign(table, Requirement(k), seed=7))
    assert greedy.top_down(table, order, k, 6) == found


@pytest.mark.parametrize("k", [3, 4, 7])
def test_bottom_up_equals_its_naive_twin_on_scattered_points(k):
    table = points_table(np.random.default_rng(k).integers(0, 1000, (60, 2)).tolist())
    found = naive.members(BottomUp().assign(table, Requirement(k), seed=0))
    assert greedy.bottom_up(table, k)[0] == found


@pytest.mark.parametrize("algorithm", [BottomUp(), TopDown()])
@given(drawn=tables_and_requirements())
def test_groups_have_k_to_2k_minus_1_rows(algorithm, drawn):
    table, k, _ = drawn
    sizes = [len(g) for g in naive.members(algorithm.assign(table, Requirement(k), seed=1))]
    assert k <= min(sizes) <= max(sizes) <= 2 * k - 1


@given(tables_and_requirements(weights=(1.0, 0.25)), st.data())
def test_splitting_equals_its_naive_twin(drawn, data):
    table, k, _ = drawn
    ids = data.draw(st.lists(st.integers(0, 2), min_size=table.n_rows, max_size=table.n_rows))
    groups = [[row for row, g in enumerate(ids) if g == a] for a in sorted(set(ids))]
    found = split(table, np.array(ids), k=k)
    assert greedy.split_all(table, groups, k) == naive.members(found)


@pytest.mark.parametrize("k", [2, 3, 5, 8])
def test_a_group_splits_into_as_many_parts_as_it_has_rows_for(k):
    for n in range(2 * k, 9 * k):
        table = encoded({"x": list(range(n))})
        sizes = np.bincount(split(table, np.zeros(n, np.int64), k=k).group)
        assert n // k == len(sizes)
        assert k <= sizes.min() <= sizes.max() <= 2 * k - 1


def test_a_number_of_rounds_below_1_is_refused():
    with pytest.raises(PolicyError, match="rounds is at least 1"):
        TopDown(rounds=0)


@pytest.mark.parametrize("algorithm", [BottomUp(), TopDown()])
def test_a_large_table_is_refused(algorithm):
    table = encoded({"x": list(range(100_001))})
    with pytest.raises(Unsatisfiable, match="at most 100,000 rows"):
        algorithm.assign(table, Requirement(3), seed=0)
