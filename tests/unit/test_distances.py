import sys
from dataclasses import replace
from fractions import Fraction

import naive
import numpy as np
import pytest
from builders import encoded, leaf_tree, policy_of, tables, tree
from hypothesis import given
from hypothesis import strategies as st

from dbanon.anonymize import value_distances
from dbanon.anonymize.distances import (
    average_link,
    centroid_link,
    complete_link,
    pairwise,
    power_sum,
    single_link,
)
from dbanon.anonymize.pipeline import make_algorithm
from dbanon.anonymize.registry import DISTANCES
from dbanon.anonymize.similarities import bregman, cosine, kullback_leibler, pearson
from dbanon.anonymize.value_distances import edit, eq, ham, log, num, rank, tax, z
from dbanon.domain.errors import PolicyError, Unsatisfiable
from dbanon.domain.stages import Stages

COUNTRIES = tree(
    "countries",
    leaf_tree(
        America={"North": ["USA", "Canada"], "South": ["Brazil", "Mexico"]},
        Asia={"West": ["Iran", "Egypt"], "East": ["India", "Japan"]},
        Europe={"SouthEurope": ["Greece"]},
    ),
)
COUNTRY_NAMES = ["USA", "India", "Canada", "Iran", "Brazil", "Greece"]
PEOPLE = encoded(
    {
        "age": [41, 57, 40, 38, 24, 45],
        "country": COUNTRY_NAMES,
        "job": ["Armed", "Support", "Teacher", "Support", "Doctor", "Salesman"],
    },
    rules={"country": {"taxonomy": "countries"}},
    taxonomies=[COUNTRIES],
)
ROWS = {f"r{i + 1}": i for i in range(6)}


def of_values(distance, column):
    """Return the distances of all pairs of rows in one column."""
    return distance(column, column.codes[:, None], column.codes[None, :])


def test_a_triangle_of_3_and_4():
    steps = np.array([3.0, 4.0])
    powers = [power_sum(steps, weights=[1, 1], order=q).item() for q in (1, 2, 3)]
    assert [7, 25, 91] == powers
    # 100 apart as the range of both columns
    table = encoded({"x": [0, 3, 100], "y": [0, 4, 100]})
    measured = [
        pairwise(table, name)[0, 1] * 100 for name in ("manhattan", "euclidean", "minkowski")
    ]
    assert [7, 5, 91 ** (1 / 3)] == pytest.approx(measured)
    assert 7 == pytest.approx(pairwise(table, "minkowski", order=1)[0, 1] * 100)


def test_five_ordered_values_the_first_and_the_third():
    column = encoded({"x": [10, 20, 70, 80, 90]}).quasi[0]
    assert 2 / 4 == of_values(rank, column)[0, 2]
    assert 2 / 5 == of_values(value_distances.ord, column)[0, 2]
    assert (1.0, 4 / 5) == (
        of_values(rank, column)[0, 4],
        of_values(value_distances.ord, column)[0, 4],
    )


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("r1", "r2", Fraction(82, 33)),
        ("r1", "r3", Fraction(15, 11)),
        ("r2", "r4", Fraction(41, 33)),
        ("r2", "r5", Fraction(3)),
    ],
)
def test_records_of_byun_et_al(a, b, expected):
    for name in ("manhattan", "mixed"):
        assert float(expected) == pytest.approx(pairwise(PEOPLE, name)[ROWS[a], ROWS[b]])


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("India", "USA", Fraction(1)),
        ("India", "Iran", Fraction(2, 3)),
        ("USA", "Canada", Fraction(1, 3)),
        ("USA", "Brazil", Fraction(2, 3)),
    ],
)
def test_countries_of_byun_et_al(a, b, expected):
    apart = of_values(tax, PEOPLE.quasi[1])
    assert float(expected) == pytest.approx(apart[COUNTRY_NAMES.index(a), COUNTRY_NAMES.index(b)])


@given(tables(names=("letter",), max_sensitive=0))
def test_a_taxonomy_gives_an_ultrametric_that_equals_the_naive_height(table):
    column = table.quasi[0]
    apart = of_values(tax, column)
    for i, a in enumerate(column.codes.tolist()):
        for j, b in enumerate(column.codes.tolist()):
            assert naive.cost_of_codes(column, {a, b}, by_height=True) == apart[i, j]
    assert (apart[:, None, :] <= np.maximum(apart[:, :, None], apart[None, :, :])).all()


@pytest.mark.parametrize("distance", [num, z, log, rank, value_distances.ord, eq])
def test_null_is_0_from_null_and_1_from_a_value(distance):
    column = encoded({"x": [1, None, 3, None]}).quasi[0]
    apart = of_values(distance, column)
    assert [1, 0, 1, 0] == apart[1].tolist()
    assert [0, 0, 0, 0] == np.diag(apart).tolist()


def test_null_in_a_taxonomy_and_a_column_of_nulls():
    text = encoded({"x": ["a", None, "b", None]}).quasi[0]
    assert [1, 0, 1, 0] == of_values(tax, text)[1].tolist()
    for distance in (num, z, rank, value_distances.ord, eq):
        empty = encoded({"x": [None, None]}, kinds={"x": PEOPLE.quasi[0].kind}).quasi[0]
        assert [[0, 0], [0, 0]] == of_values(distance, empty).tolist()


@pytest.mark.parametrize("distance", [num, z, log, rank, value_distances.ord, eq])
def test_a_constant_column_is_0_apart(distance):
    assert [[0, 0], [0, 0]] == of_values(distance, encoded({"x": [7, 7]}).quasi[0]).tolist()


def test_range_deviation_and_logarithm_scale_differently():
    column = encoded({"x": [1, 10, 100, 100]}).quasi[0]
    assert [0, 9 / 99, 1, 1] == pytest.approx(of_values(num, column)[0].tolist())
    assert [0, 1 / 2, 1, 1] == pytest.approx(of_values(log, column)[0].tolist())
    deviation = np.std([1, 10, 100, 100])
    assert [0, 9 / deviation, 99 / deviation, 99 / deviation] == pytest.approx(
        of_values(z, column)[0].tolist()
    )


@pytest.mark.parametrize("values", [[0, 1], [-1.0, 2.0], ["a", "b"]])
def test_what_has_no_logarithm_is_refused(values):
    with pytest.raises(PolicyError, match="column x holds values that are no positive numbers"):
        of_values(log, encoded({"x": values}).quasi[0])


def test_texts_by_position_and_by_edits():
    assert (2, 5) == (ham("001000", "101100"), ham("10101", "01010"))
    assert (2, 0, 3, 3) == (
        edit("10101", "01010"),
        edit("", ""),
        edit("", "abc"),
        edit("kitten", "sitting"),
    )
    with pytest.raises(ValueError, match="longer"):
        ham("a", "ab")


def test_hamming_distance_of_binary_rows():
    rows = ["001000", "100101", "010101", "001000", "110111", "011011"]
    table = encoded({f"x{i}": [int(row[i]) for row in rows] for i in range(6)})
    upper = pairwise(table, "hamming")[np.triu_indices(6, 1)]
    assert [4, 4, 0, 6, 3, 2, 4, 2, 5, 4, 2, 3, 6, 3, 3] == upper.tolist()


def test_gower_leaves_out_what_is_null():
    table = encoded({"x": [0, 4, None, None], "y": ["a", "a", "b", None]})
    apart = pairwise(table, "gower")
    assert [0, 1 / 2, 1, 1] == apart[0].tolist()
    assert [1, 1, 1 / 2, 0] == apart[3].tolist()


def test_gower_weighs_the_columns_that_are_there():
    table = encoded(
        {"x": [0, 4, 4], "y": ["a", "b", None], "z": ["c", "c", "c"]},
        rules={"x": {"weight": 2.0}, "y": {"weight": 0.0}},
    )
    assert [0, 2 / 3, 2 / 3] == pytest.approx(pairwise(table, "gower")[0].tolist())


def test_standardized_squares_are_those_of_mdav():
    table = encoded({"x": [1, 2, 3, None], "y": ["a", "b", "a", "a"]})
    variance = np.var([1, 2, 3])
    expected = [0, 1 / variance + 1, 4 / variance, 1]
    assert expected == pytest.approx(pairwise(table, "squared-euclidean")[0].tolist())


def test_weights_multiply_powers():
    table = encoded({"x": [0, 1], "y": [0, 1]}, rules={"x": {"weight": 4.0}})
    names = ("manhattan", "euclidean", "minkowski", "hamming")
    found = [pairwise(table, name)[0, 1] for name in names]
    assert [5, 5**0.5, 5 ** (1 / 3), 5] == pytest.approx(found)


@pytest.mark.parametrize("name", DISTANCES)
@given(table=tables(max_sensitive=0, weights=(0.0, 1.0, 0.25)))
def test_a_distance_is_symmetric_and_a_metric_if_it_says_so(name, table):
    apart = pairwise(table, name)
    assert (apart == apart.T).all()
    assert (apart >= 0).all()
    assert not np.diag(apart).any()
    if DISTANCES[name].is_metric:
        through = (apart[:, :, None] + apart[None, :, :]).min(axis=1)
        assert (apart <= through + 1e-9).all()


def test_what_says_it_is_no_metric_is_none():
    on_a_line = pairwise(encoded({"x": [0, 1, 2]}), "squared-euclidean")
    assert on_a_line[0, 2] > on_a_line[0, 1] + on_a_line[1, 2]
    unknown = pairwise(encoded({"x": [0, None, 1], "y": [0, 0, 0]}), "gower")
    assert unknown[0, 2] > unknown[0, 1] + unknown[1, 2]
    assert {"squared-euclidean", "gower"} == {
        name for name, distance in DISTANCES.items() if not distance.is_metric
    }


@pytest.mark.parametrize("algorithm", ["gather", "gather-outliers", "cellular"])
def test_an_algorithm_whose_bound_needs_a_metric_takes_no_other_distance(algorithm):
    policy = replace(policy_of(["x"]), algorithm=algorithm)
    for name, distance in DISTANCES.items():
        chosen = replace(policy, params={"distance": name})
        if distance.is_metric:
            assert name == make_algorithm(chosen, stages=Stages()).distance
        else:
            with pytest.raises(PolicyError, match=f"{name}' is no metric") as caught:
                make_algorithm(chosen, stages=Stages())
            assert "choose one of manhattan, mixed, euclidean" in caught.value.hint
    with pytest.raises(PolicyError, match="no distance 'chebyshev'"):
        make_algorithm(replace(policy, params={"distance": "chebyshev"}), stages=Stages())


def test_blocks_of_rows_make_the_same_matrix(monkeypatch):
    expected = {name: pairwise(PEOPLE, name).tolist() for name in DISTANCES}
    monkeypatch.setattr(sys.modules[pairwise.__module__], "_CELLS", 40)
    assert expected == {name: pairwise(PEOPLE, name).tolist() for name in DISTANCES}


def test_what_cannot_be_measured_is_refused():
    with pytest.raises(PolicyError, match="no distance 'chebyshev'") as caught:
        pairwise(PEOPLE, "chebyshev")
    assert "manhattan" in caught.value.hint
    with pytest.raises(PolicyError, match=r"of order 0\.5 is no metric"):
        pairwise(PEOPLE, "minkowski", order=0.5)
    with pytest.raises(Unsatisfiable, match="at most 20,000 rows"):
        pairwise(encoded({"x": list(range(20_001))}))


def test_links_of_two_sets():
    points = encoded({"x": [0, 2, 5, 10]})
    between = pairwise(points)[np.ix_([0, 1], [2, 3])]
    assert (3 / 10, 1.0, 13 / 20) == pytest.approx(
        (single_link(between), complete_link(between), average_link(between))
    )
    assert 5.0 == centroid_link(np.array([[0.0, 0], [0, 2]]), np.array([[3.0, 4], [3, 6]]))


def test_correlation_and_cosine():
    x = np.array([1.0, 2, 3])
    assert (1, -1, 0) == pytest.approx(
        (pearson(x, 2 * x + 1), pearson(x, -x), pearson(x, np.ones(3)))
    )
    assert (1, 0, 0.6) == pytest.approx(
        (
            cosine(x, 2 * x),
            cosine(np.zeros(3), x),
            cosine(np.array([1.0, 0.0]), np.array([3.0, 4.0])),
        )
    )


def test_divergences():
    half, skew = np.array([0.5, 0.5]), np.array([0.25, 0.75])
    expected = 0.5 * np.log(2) + 0.5 * np.log(2 / 3)
    assert expected == pytest.approx(kullback_leibler(half, skew))
    assert 0.0 == kullback_leibler(half, half)
    assert np.log(2) == pytest.approx(kullback_leibler(np.array([1.0, 0.0]), half))
    assert float("inf") == kullback_leibler(half, np.array([1.0, 0.0]))


@given(st.lists(st.floats(0.01, 1), min_size=3, max_size=3), st.floats(0.01, 1))
def test_bregman_is_kullback_leibler_or_a_squared_distance(weights, other):
    p = np.array(weights) / sum(weights)
    q = np.array([other, 0.5, 0.5]) / (1 + other)
    squared = bregman(p, q, potential=lambda v: v @ v, gradient=lambda v: 2 * v)
    assert ((p - q) ** 2).sum() == pytest.approx(squared)
    entropic = bregman(
        p, q, potential=lambda v: (v * np.log(v)).sum(), gradient=lambda v: np.log(v) + 1
    )
    assert kullback_leibler(p, q) == pytest.approx(entropic)
