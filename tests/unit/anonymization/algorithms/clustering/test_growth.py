"""Greedy k-member clustering and the nearest-neighbour baseline, which share a kernel."""

from fractions import Fraction

import naive
import numpy as np
import pytest
from builders import encoded, leaf_tree, tables_and_requirements, tree
from hypothesis import given
from hypothesis import strategies as st
from naive import greedy

from dbanon.anonymization.algorithms.clustering.growth import (
    KMember,
    NearestNeighbour,
    weighted_heights,
)
from dbanon.anonymization.interfaces import Requirement, typed
from dbanon.anonymization.loss.costs import weighted_costs
from dbanon.domain.assignment import Assignment
from dbanon.domain.errors import PolicyError, TaxonomyError, Unsatisfiable
from dbanon.kernels.boxes.costs import box_costs
from dbanon.kernels.boxes.growth import FAR_FROM_FIRST, FAR_FROM_LAST, NEIGHBOURS, growth

CONTINENTS = {
    "America": {"North": ["USA", "Canada"], "South": ["Brazil", "Mexico"]},
    "Asia": {"West": ["Iran", "Egypt"], "East": ["India", "Japan"]},
}
SMALL = tree("countries", leaf_tree(**CONTINENTS))
EXTENDED = tree("countries", leaf_tree(**CONTINENTS, Europe={"SouthEurope": ["Greece"]}))
JOBS = tree("jobs", {job: {} for job in ["Armed", "Teacher", "Doctor", "Salesman", "Support"]})
RULES = {FAR_FROM_LAST: "far from last", FAR_FROM_FIRST: "far from first", NEIGHBOURS: "neighbours"}


def six_people(countries=EXTENDED):
    return encoded(
        {
            "age": [41, 57, 40, 38, 24, 45],
            "country": ["USA", "India", "Canada", "Iran", "Brazil", "Greece"],
            "job": ["Armed", "Support", "Teacher", "Support", "Doctor", "Salesman"],
        },
        rules={"country": {"taxonomy": "countries"}, "job": {"taxonomy": "jobs"}},
        taxonomies=[countries, JOBS],
    )


def grown(table, order, k, *, l=1, rule=FAR_FROM_LAST, costs=weighted_heights):
    order = np.array(order, np.int64)
    group, n_groups = growth(table.all_codes, order, *costs(table), k, l, rule)
    return naive.members(Assignment(group, n_groups))


def information_loss(table, rows):
    codes = table.codes[rows]
    box = codes.min(axis=0, keepdims=True), codes.max(axis=0, keepdims=True)
    return box_costs(*weighted_heights(table), *box).sum() * len(rows)


@pytest.mark.parametrize(
    ("a", "b", "distance"),
    [
        ("India", "USA", Fraction(1)),
        ("India", "Iran", Fraction(2, 3)),
        ("USA", "Canada", Fraction(1, 3)),
        ("USA", "Brazil", Fraction(2, 3)),
    ],
)
def test_countries_are_as_far_apart_as_their_common_ancestor_is_high(a, b, distance):
    table = encoded(
        {"country": [a, b]}, rules={"country": {"taxonomy": "countries"}}, taxonomies=[SMALL]
    )
    assert float(distance) == pytest.approx(information_loss(table, [0, 1]) / 2)


@pytest.mark.parametrize(
    ("a", "b", "distance"),
    [
        (1, 2, Fraction(82, 33)),
        (1, 3, Fraction(15, 11)),
        (2, 4, Fraction(41, 33)),
        (2, 5, Fraction(3)),
    ],
)
def test_distances_of_the_records_of_byun_et_al(a, b, distance):
    assert float(distance) == pytest.approx(information_loss(six_people(), [a - 1, b - 1]) / 2)


@pytest.mark.parametrize(("ids", "loss"), [([1, 3, 5], Fraction(72, 11)), ([1, 2, 5], Fraction(9))])
def test_losses_of_the_clusters_of_byun_et_al(ids, loss):
    assert float(loss) == pytest.approx(information_loss(six_people(), [i - 1 for i in ids]))


def test_a_country_that_is_no_leaf_is_refused():
    with pytest.raises(TaxonomyError, match="has no leaf for 1 distinct values of column country"):
        six_people(SMALL)


@pytest.mark.parametrize("rule", [FAR_FROM_LAST, FAR_FROM_FIRST])
@pytest.mark.parametrize(
    ("k", "firsts", "groups", "total"),
    [
        (3, [2, 4, 6], [[1, 3, 5], [2, 4, 6]], Fraction(157, 11)),
        (3, [1, 3, 5], [[1, 2, 4], [3, 5, 6]], Fraction(172, 11)),
        (2, [1, 2, 3, 4, 5, 6], [[1, 6], [2, 4], [3, 5]], Fraction(364, 33)),
        (4, [1, 2, 3, 4, 5, 6], [[1, 2, 3, 4, 5, 6]], Fraction(18)),
    ],
)
def test_k_member_makes_the_known_clusters(rule, k, firsts, groups, total):
    table = six_people()
    for first in firsts:
        order = [first - 1, *(row for row in range(6) if row != first - 1)]
        found = grown(table, order, k, rule=rule)
        assert groups == sorted([row + 1 for row in rows] for rows in found)
        assert float(total) == pytest.approx(sum(information_loss(table, r) for r in found))


@pytest.mark.parametrize(("k", "total"), [(3, Fraction(157, 11)), (2, Fraction(346, 33))])
def test_the_least_loss_of_any_clustering_is_the_known_one(k, total):
    table = six_people()
    losses = [
        sum(information_loss(table, rows) for rows in groups)
        for groups in greedy.partitions(list(range(6)), k)
    ]
    assert float(total) == pytest.approx(min(losses))


@given(tables_and_requirements(weights=(1.0, 0.25)), st.data())
def test_growth_equals_its_naive_twin(drawn, data):
    table, k, l = drawn
    order = data.draw(st.permutations(range(table.n_rows)))
    rule = data.draw(st.sampled_from(list(RULES)))
    by_height = data.draw(st.booleans())
    costs = weighted_heights if by_height else weighted_costs
    expected = greedy.growth(table, order, k, l, RULES[rule], by_height=by_height)
    assert expected == grown(table, order, k, l=l, rule=rule, costs=costs)


@pytest.mark.parametrize(
    ("algorithm", "rule", "by_height"),
    [
        (KMember(), "far from last", True),
        (KMember(seed_from="first"), "far from first", True),
        (KMember(cost="ncp"), "far from last", False),
        (NearestNeighbour(), "neighbours", True),
    ],
)
@given(drawn=tables_and_requirements(weights=(1.0, 0.25)))
def test_an_algorithm_is_growth_in_an_order_of_chance(algorithm, rule, by_height, drawn):
    table, k, l = drawn
    order = np.random.default_rng(5).permutation(table.n_rows).tolist()
    found = naive.members(algorithm.assign(table, Requirement(k, l), seed=5))
    assert greedy.growth(table, order, k, l, rule, by_height=by_height) == found


@pytest.mark.parametrize("algorithm", [KMember(), NearestNeighbour()])
@given(drawn=tables_and_requirements())
def test_groups_have_k_to_2k_minus_1_rows(algorithm, drawn):
    table, k, _ = drawn
    sizes = [len(g) for g in naive.members(algorithm.assign(table, Requirement(k), seed=1))]
    assert k <= min(sizes) <= max(sizes) <= 2 * k - 1
    assert table.n_rows // k == len(sizes)


def test_groups_of_k_become_diverse_where_the_values_allow_it():
    table = encoded({"x": [1, 1, 1, 1, 9, 9]}, {"disease": ["a", "a", "b", "b", "a", "b"]})
    for algorithm in (KMember(), NearestNeighbour()):
        groups = naive.members(algorithm.assign(table, Requirement(2, 2), seed=0))
        assert [2, 2, 2] == [len(rows) for rows in groups]
        assert all(naive.is_diverse(table, rows, 2) for rows in groups)


def test_a_group_larger_than_k_is_made_when_l_asks_for_it():
    table = encoded({"x": [1, 2, 3, 4, 5, 6]}, {"disease": ["a", "b", "c", "a", "b", "c"]})
    groups = naive.members(KMember().assign(table, Requirement(1, 3), seed=0))
    assert [3, 3] == [len(rows) for rows in groups]


def test_too_few_rows_or_values_for_a_group_make_one_group():
    table = encoded({"x": [1, 2, 3]}, {"disease": ["a", "a", "a"]})
    assert [[0, 1, 2]] == grown(table, [0, 1, 2], 4)
    assert [[0, 1, 2]] == grown(table, [0, 1, 2], 2, l=2)


def test_columns_of_more_values_than_rows_left_are_measured_alike():
    numbers = np.random.default_rng(2).permutation(60).tolist()
    table = encoded({"x": [n if n % 9 else None for n in numbers], "y": [n % 7 for n in numbers]})
    order = list(range(60))
    assert greedy.growth(table, order, 4, 1, "far from last") == grown(table, order, 4)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"seed_from": "last"}, "seed_from of k-member is one of last-added, first"),
        ({"cost": "sse"}, "cost of k-member is one of il, ncp"),
    ],
)
def test_an_unknown_choice_is_refused_with_the_known_ones(parameters, message):
    with pytest.raises(PolicyError, match=message):
        typed("k-member", KMember, parameters)


@pytest.mark.parametrize("algorithm", [KMember(), NearestNeighbour()])
def test_a_large_table_is_refused(algorithm):
    table = encoded({"x": list(range(100_001))})
    with pytest.raises(Unsatisfiable, match="at most 100,000 rows"):
        algorithm.assign(table, Requirement(3), seed=0)
