from fractions import Fraction

import naive
import numpy as np
import pytest
from builders import encoded, read_numbers, tables_and_requirements
from hypothesis import given
from hypothesis import strategies as st

from dbanon.anonymization.algorithms.microaggregation.microaggregation import Mdav
from dbanon.anonymization.interfaces import Requirement
from dbanon.anonymization.loss.metrics import publication, sse_ratio, standardized
from dbanon.anonymization.recodings.interval import Interval
from dbanon.domain.assignment import Assignment, GroupValues
from dbanon.domain.errors import Unsatisfiable
from dbanon.kernels.points.mdav import LEAF, mdav, mdav_tree

POINTS = [(1, 1), (2, 1), (1, 2), (10, 10), (11, 10), (10, 11), (5, 5), (6, 5), (5, 6)]
POINTS += [(20, 1), (21, 2)]
EIA = "utilityid resrevenue ressales comrevenue comsales indrevenue indsales"
EIA += " othrevenue othrsales totrevenue totsales"


def brute(points, k):
    """Run the kernel that compares all pairs on points as they are, without standardizing."""
    points = np.array(points, np.float64)
    none = np.empty((len(points), 0), np.int32), np.empty(0), np.empty((0, 3), np.int64)
    return mdav(points, *none, k)


def raw_groups(points, k, leaf=None):
    """Return the groups of one of the kernels."""
    group, n_groups = (
        brute(points, k) if leaf is None else mdav_tree(np.array(points, np.float64), k, leaf)
    )
    return naive.members(Assignment(group, n_groups))


def squared_error(points, rows):
    chosen = [points[row] for row in rows]
    means = [Fraction(sum(axis), len(chosen)) for axis in zip(*chosen, strict=True)]
    return sum((x - mean) ** 2 for point in chosen for x, mean in zip(point, means, strict=True))


@pytest.mark.parametrize(
    ("n", "expected", "error"),
    [
        (11, [{11, 10, 5}, {1, 2, 3}, {4, 6, 7, 8, 9}], Fraction(512, 3)),
        (9, [{5, 4, 6}, {1, 2, 3}, {7, 8, 9}], Fraction(4)),
        (8, [{6, 4, 5}, {1, 2, 3, 7, 8}], Fraction(602, 15)),
        (6, [{1, 2, 3}, {4, 5, 6}], Fraction(8, 3)),
        (5, [{1, 2, 3, 4, 5}], Fraction(964, 5)),
    ],
)
@pytest.mark.parametrize("leaf", [None, 1, LEAF])
def test_every_branch_makes_the_known_groups(n, expected, error, leaf):
    points = POINTS[:n]
    groups = raw_groups(points, 3, leaf)
    found = sorted(sorted(row + 1 for row in rows) for rows in groups)
    assert sorted(map(sorted, expected)) == found
    assert error == sum(squared_error(points, rows) for rows in groups)


@pytest.mark.parametrize(
    ("name", "columns", "k", "loss"),
    [
        ("tarragona", None, 3, 16.932587622824),
        ("tarragona", None, 4, 19.545962037987),
        ("tarragona", None, 5, 22.461859662645),
        ("tarragona", None, 10, 33.192884768498),
        ("census", None, 3, 5.692186278771),
        ("census", None, 4, 7.494699832556),
        ("census", None, 5, 9.088435497636),
        ("census", None, 10, 14.155930425312),
        ("eia", EIA.split(), 3, 0.482938725309),
        ("eia", EIA.split(), 4, 0.671345140942),
        ("eia", EIA.split(), 5, 1.666675161633),
        ("eia", EIA.split(), 10, 3.839670225247),
    ],
)
def test_reference_data_lose_what_the_literature_says(name, columns, k, loss):
    table = encoded(read_numbers(name, columns))
    assignment = Mdav().assign(table, Requirement(k), seed=0)
    values = GroupValues(
        tuple(Interval().publish(column, assignment) for column in table.quasi),
        assignment.n_groups,
    )
    published = publication(table, assignment, values, k=k)
    assert loss == pytest.approx(sse_ratio(published), abs=1e-6)


@pytest.mark.parametrize("leaf", [None, 1, LEAF])
@pytest.mark.parametrize("n", [3, 5, 6, 8, 9, 10, 11, 12])
def test_equal_records_make_groups_of_k_to_2k_minus_1(n, leaf):
    sizes = [len(rows) for rows in raw_groups([(1, 1)] * n, 3, leaf)]
    assert n == sum(sizes)
    assert 3 <= min(sizes) <= max(sizes) <= 5


@given(tables_and_requirements(max_sensitive=0, weights=(1.0, 4.0)))
def test_it_equals_its_naive_twin(drawn):
    table, k, _ = drawn
    numbers = [c for c in table.quasi if c.taxonomy is None and len(set(c.codes.tolist())) > 1]
    trees = [c for c in table.quasi if c.taxonomy is not None]
    records = list(
        zip(
            np.column_stack([np.empty((table.n_rows, 0)), *map(standardized, numbers)]).tolist(),
            np.column_stack(
                [np.empty((table.n_rows, 0), np.int32), *[c.codes for c in trees]]
            ).tolist(),
            strict=True,
        )
    )

    def code_distance(j, x, y):
        weight = trees[j].rule.weight
        return naive.cost_of_codes(trees[j], {x, y}, by_height=True) / weight * weight**0.5

    found = naive.members(Mdav().assign(table, Requirement(k), seed=0))
    assert naive.mdav(records, k, code_distance) == found


@pytest.mark.parametrize("leaf", [1, LEAF])
@given(
    st.integers(1, 6),
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=6, max_size=120),
)
def test_the_tree_makes_the_groups_of_all_pairs_whatever_the_ties(leaf, k, points):
    assert raw_groups(points, k) == raw_groups(points, k, leaf)


@pytest.mark.parametrize(("d", "k"), [(1, 2), (2, 3), (5, 5), (13, 10)])
def test_the_tree_makes_the_groups_of_all_pairs_among_many(d, k):
    points = np.random.default_rng(d).normal(size=(3_000, d))
    points[1_000:1_500] = points[:500]
    assert brute(points, k)[0].tolist() == mdav_tree(points, k, LEAF)[0].tolist()


def test_standardized_columns_have_mean_0_and_deviation_1_and_null_stays_null():
    scores = standardized(encoded({"x": [1, 2, 3, None]}).quasi[0])
    assert [True] == np.isnan(scores[3:]).tolist()
    assert (0.0, 1.0) == pytest.approx((scores[:3].mean(), scores[:3].std()))


def test_a_large_table_is_refused_with_another_choice():
    table = encoded({"x": [None, *range(50_000)]})
    with pytest.raises(Unsatisfiable, match="at most 50,000 rows") as caught:
        Mdav().assign(table, Requirement(3), seed=0)
    assert "--algorithm auto, or --block 50000" == caught.value.hint
