import sys
from dataclasses import replace
from datetime import date
from fractions import Fraction
from pathlib import Path

import naive
import numpy as np
import pytest
from builders import encoded, leaf_tree, policy_of, tables, tree
from hypothesis import given, reject
from hypothesis import strategies as st

from dbanon.anonymization.distances import rows as value_distances
from dbanon.anonymization.distances.rows import (
    DISTANCES,
    edit,
    eq,
    log,
    num,
    pairwise,
    power_sum,
    rank,
    tax,
    z,
)
from dbanon.anonymization.interfaces import Requirement
from dbanon.anonymization.registry import make_algorithm
from dbanon.domain.errors import PolicyError, Unsatisfiable
from dbanon.domain.outcomes import Stages

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


def test_minkowski_takes_an_order():
    table = encoded({"x": [0, 3, 100], "y": [0, 4, 100]})
    orders = ("1", "1.5", "2", "3", "10")
    measured = [pairwise(table, f"minkowski:{order}")[0, 1] * 100 for order in orders]
    expected = [(3 ** float(q) + 4 ** float(q)) ** (1 / float(q)) for q in orders]
    assert expected == pytest.approx(measured)
    assert pairwise(PEOPLE, "minkowski").tolist() == pairwise(PEOPLE, "minkowski:3").tolist()


@pytest.mark.parametrize("order", ["", "0.5", "10.5", "inf", "nan", "three"])
def test_an_order_that_is_none_is_refused(order):
    with pytest.raises(PolicyError, match="order of minkowski is a number from 1 to 10") as caught:
        pairwise(PEOPLE, f"minkowski:{order}")
    assert "minkowski:4" in caught.value.hint


def test_no_other_distance_has_an_order():
    with pytest.raises(PolicyError, match="no distance 'hamming:2'"):
        pairwise(PEOPLE, "hamming:2")


@pytest.mark.parametrize("algorithm", ["gather", "cellular", "k-medoids", "dbscan"])
def test_an_algorithm_takes_a_distance_with_an_order(algorithm):
    params = {"distance": "minkowski:1.5"}
    policy = policy_of(["age", "country"], algorithm=algorithm, params=params)
    chosen = make_algorithm(policy, stages=Stages())
    assert 6 == len(chosen.assign(PEOPLE, Requirement(2), seed=0).group)


@given(table=tables(max_sensitive=0, weights=(0.0, 1.0, 0.25)), order=st.floats(1.0, 10.0))
def test_the_triangle_inequality_holds_for_each_order(table, order):
    apart = pairwise(table, f"minkowski:{order}")
    through = (apart[:, :, None] + apart[None, :, :]).min(axis=1)
    assert (apart <= through + 1e-9).all()


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


@pytest.mark.parametrize("values", [[0, 1], [-1.0, 2.0]])
def test_what_has_no_logarithm_is_refused(values):
    with pytest.raises(PolicyError, match="column x holds values that are no positive numbers"):
        pairwise(encoded({"x": values}), "log")


def test_numbers_of_a_ratio_scale_are_as_far_as_their_logarithms_and_others_as_ever():
    table = encoded({"x": [1, 10, 100], "y": [date(2000, 1, d) for d in (1, 2, 5)], "z": [*"aab"]})
    assert [0, 1 / 2 + 1 / 4, 3] == pytest.approx(pairwise(table, "log")[0].tolist())


def edits(a, b):
    """Return the least number of insertions, deletions and replacements, by trying all."""
    if not a or not b:
        return len(a) + len(b)
    replaced = edits(a[1:], b[1:]) + (a[0] != b[0])
    return min(replaced, edits(a[1:], b) + 1, edits(a, b[1:]) + 1)


def test_texts_by_edits():
    texts = ["10101", "01010", "", "abc", "kitten", "sitting", None]
    apart = of_values(edit, encoded({"x": texts}).quasi[0]) * 7  # characters of the longest
    assert (2, 3, 3) == (apart[0, 1], apart[2, 3], apart[4, 5])
    assert [7] * 6 + [0] == apart[-1].tolist()


@given(st.lists(st.text("ab\U0001f600", max_size=5), min_size=1, max_size=6))
def test_edits_are_the_fewest(texts):
    apart = of_values(edit, encoded({"x": texts}).quasi[0])
    longest = max([1, *map(len, texts)])
    assert [[edits(a, b) / longest for b in texts] for a in texts] == apart.tolist()


def test_texts_of_a_taxonomy_and_values_of_other_kinds_are_not_edited():
    table = encoded(
        {"country": COUNTRY_NAMES, "age": [0, 1, 2, 3, 4, 5]},
        rules={"country": {"taxonomy": "countries"}},
        taxonomies=[COUNTRIES],
    )
    assert pairwise(table, "manhattan").tolist() == pairwise(table, "edit").tolist()
    assert [0, 1 / 2] == pairwise(encoded({"x": ["ab", "ac"]}), "edit")[0].tolist()


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
    try:
        apart = pairwise(table, name)
    except PolicyError:
        assert "log" == name
        reject()
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
    for name in ("cosine", "pearson"):
        turned = pairwise(encoded({"x": [4, 4, 0], "y": [0, 4, 4], "z": [0, 0, 0]}), name)
        assert turned[0, 2] > turned[0, 1] + turned[1, 2]
    assert {"squared-euclidean", "gower", "cosine", "pearson"} == {
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
    with pytest.raises(Unsatisfiable, match="at most 20,000 rows"):
        pairwise(encoded({"x": list(range(20_001))}))


def test_rows_of_one_direction_are_0_apart_and_of_opposite_ones_2():
    columns = {"x": [0, 1, 2, 4, 2], "y": [0, 2, 4, 2, 1], "z": [0, 3, 6, 0, 0]}
    cosine = pairwise(encoded({**columns, "z": [0] * 5}), "cosine")
    assert [0, 1, 1, 1, 1] == cosine[0].tolist()  # which is nowhere
    points = np.array([[1 / 4, 1 / 2], [1 / 2, 1], [1, 1 / 2], [1 / 2, 1 / 4]])
    lengths = np.linalg.norm(points, axis=1)
    expected = 1 - points @ points.T / np.outer(lengths, lengths)
    assert expected == pytest.approx(cosine[1:, 1:], abs=1e-12)
    pearson = pairwise(encoded(columns), "pearson")
    scaled = np.array([columns["x"], columns["y"], columns["z"]]).T / [4, 4, 6]
    expected = 1 - np.corrcoef(scaled[1:])
    assert expected == pytest.approx(pearson[1:, 1:], abs=1e-12)
    assert [0, 1, 1, 1, 1] == pearson[0].tolist()


@pytest.mark.parametrize("name", DISTANCES)
@pytest.mark.parametrize(
    "algorithm", ["k-medoids", "clarans", "divisive", "dbscan", "optics", "chameleon"]
)
def test_every_distance_can_be_chosen_by_name(algorithm, name):
    policy = policy_of(["age", "country"], algorithm=algorithm, params={"distance": name})
    chosen = make_algorithm(policy, stages=Stages())
    assert 6 == len(chosen.assign(PEOPLE, Requirement(2), seed=0).group)


def test_every_distance_is_documented():
    root = Path(__file__).parents[4]
    pages = [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    assert [] == [name for name in DISTANCES if f"`{name}`" not in text]
