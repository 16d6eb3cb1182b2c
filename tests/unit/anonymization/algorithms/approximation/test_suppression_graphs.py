"""Forest, matching and two-factor: few hidden cells."""

import naive
import networkx as nx
import numpy as np
import pytest
from builders import encoded
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import graphs
from selection import at_depth, exhaustive_after

from dbanon.anonymization.algorithms.approximation import forest
from dbanon.anonymization.algorithms.approximation.forest import (
    Forest,
    Matching,
    TwoFactor,
    components,
    cut,
    divide,
    grow,
    lightest_cover,
    lightest_cycles,
    nearest_rows,
)
from dbanon.anonymization.distances.rows import pairwise
from dbanon.anonymization.interfaces import Requirement
from dbanon.anonymization.loss.metrics import publication, suppressed_cells
from dbanon.anonymization.recodings.interval import Interval
from dbanon.anonymization.recodings.label import Label
from dbanon.domain.assignment import Assignment, GroupValues
from dbanon.domain.errors import Unsatisfiable

PATIENTS = [
    (31, "Cauc", "94305"),
    (34, "Cauc", "94307"),
    (27, "Cauc", "94301"),
    (41, "Afr-A", "94305"),
    (41, "Afr-A", "94059"),
    (65, "Hisp", "94042"),
    (46, "Hisp", "94042"),
]
SIX = ["001000", "100101", "010101", "001000", "110111", "011011"]
PAIRS = ["001000", "000000", "111111", "001000", "110111", "110111"]
A, B, C, D, E, F = range(6)


def table_of(rows, **options):
    columns = {f"c{i}": list(values) for i, values in enumerate(zip(*rows, strict=True))}
    return encoded(columns, **options)


def hamming(rows):
    return pairwise(table_of(rows), "hamming")


def hidden(rows, assignment):
    table = table_of(rows)
    values = GroupValues(
        tuple(
            (Interval() if column.taxonomy is None else Label()).publish(column, assignment)
            for column in table.quasi
        ),
        assignment.n_groups,
    )
    return suppressed_cells(publication(table, assignment, values, k=1))


def groups_of(parts, n):
    group = np.full(n, -1, np.int32)
    for number, part in enumerate(parts):
        group[list(part)] = number
    return Assignment(group, len(parts))


def groups(algorithm, rows, k):
    return naive.members(algorithm.assign(table_of(rows), Requirement(k), seed=0))


def links_of(rows, k):
    codes = table_of(rows).codes
    return grow(nearest_rows(codes, np.ones(codes.shape[1]), count=k - 1), k)


def instances(seed, *, alphabet, k, most=9):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(k, most + 1)), int(rng.integers(1, 7))
    return list(map(tuple, rng.integers(0, alphabet, (n, d)).tolist()))


# The patients (k = 2 and k = 3)


def test_the_optimum_of_the_patients_is_known():
    parts = [[0, 1, 2], [3, 4], [5, 6]]
    assert 10 == hidden(PATIENTS, groups_of(parts, 7)) == graphs.fewest_stars(PATIENTS, 2)
    costs = sorted(
        (sum(graphs.stars(PATIENTS, part) for part in p), p) for p in graphs.partitions(range(7), 2)
    )
    assert [(10, parts), 15] == [costs[0], costs[1][0]]
    assert 18 == hidden(PATIENTS, groups_of([[0, 1, 2], [3, 4, 5, 6]], 7))
    assert 18 == graphs.fewest_stars(PATIENTS, 3)


@pytest.mark.parametrize(("algorithm", "k"), [(Forest(), 2), (Matching(), 2)])
def test_the_patients_are_grouped_as_well_as_can_be(algorithm, k):
    assert [[0, 1, 2], [3, 4], [5, 6]] == groups(algorithm, PATIENTS, k)


@pytest.mark.parametrize("algorithm", [Forest(), TwoFactor()])
def test_the_patients_are_grouped_within_the_bound_for_three(algorithm):
    found = algorithm.assign(table_of(PATIENTS), Requirement(3), seed=0)
    assert 18 <= hidden(PATIENTS, found) <= 21


def test_a_row_left_out_hides_all_its_cells():
    assert 3 + 4 + 2 + 2 == hidden(PATIENTS, groups_of([[1, 2], [3, 4], [5, 6]], 7))


# The six binary rows


def test_the_distances_of_the_six_rows_are_known():
    expected = "AB4 AC4 AD0 AE6 AF3 BC2 BD4 BE2 BF5 CD4 CE2 CF3 DE6 DF3 EF3"
    distances = hamming(SIX)
    for text in expected.split():
        a, b = ("ABCDEF".index(letter) for letter in text[:2])
        assert int(text[2]) == distances[a, b] == distances[b, a]
    assert [0.0] * 6 == distances.diagonal().tolist()


def test_the_forest_links_the_smallest_component_to_the_nearest_row():
    links = links_of(SIX, 3)
    assert [D, C, -1, -1, B, A] == links
    distances = hamming(SIX)
    assert [0, 2, 2, 3] == [distances[row, links[row]] for row in (A, B, E, F)]


def test_the_bounds_of_the_six_rows_are_known():
    distances = hamming(SIX)
    one_tree = [(A, D), (B, C), (E, B), (F, C), (A, F)]
    assert 60 == 6 * sum(distances[edge] for edge in one_tree)
    tree = graph_of(links_of(SIX, 3))
    parts = sorted(map(sorted, divide(links_of(SIX, 3), 3)))
    assert [[A, D, F], [B, C, E]] == parts
    bounds = [3 * sum(distances[tuple(e)] for e in edges_of(tree, set(part))) for part in parts]
    assert ([9, 12], 21) == (bounds, sum(bounds))
    assert 15 == np.sort(distances, axis=1)[:, 2].sum()


def test_the_six_rows_are_grouped_as_well_as_can_be():
    found = Forest().assign(table_of(SIX), Requirement(3), seed=0)
    assert [[A, D, F], [B, C, E]] == naive.members(found)
    assert 18 == hidden(SIX, found) == graphs.fewest_stars(SIX, 3)
    shown = [
        [column + 1 for column in range(6) if len({SIX[row][column] for row in part}) == 1]
        for part in naive.members(found)
    ]
    assert [[1, 3, 4], [3, 4, 6]] == shown
    assert 36 == hidden(SIX, groups_of([range(6)], 6))


def test_the_matching_of_the_six_rows_is_known():
    assert 10 == graphs.fewest_stars(SIX, 2)
    for parts in ([[A, D], [B, C], [E, F]], [[A, D], [B, E], [C, F]]):
        assert 10 == hidden(SIX, groups_of(parts, 6))
    distances = hamming(SIX)
    edges = lightest_cover(distances.astype(np.int64))
    assert 5 == sum(distances[edge] for edge in edges)


def test_the_matching_of_the_pairs_is_known():
    distances = hamming(PAIRS)
    edges = lightest_cover(distances.astype(np.int64))
    assert 2 == sum(distances[edge] for edge in edges)
    for k in (2, 3):
        assert 6 == graphs.fewest_stars(PAIRS, k)
    found = Matching().assign(table_of(PAIRS), Requirement(2), seed=0)
    assert [[A, B, D], [C, E, F]] == naive.members(found)
    assert 6 == hidden(PAIRS, found)
    assert [[A, B, D], [C, E, F]] == groups(TwoFactor(), PAIRS, 3)


def test_distances_alone_do_not_tell_the_optimum():
    blocks = ["".join("1" if j // 8 == i else "0" for j in range(40)) for i in range(5)]
    halves = ["10" * 16, "1100" * 8, "11110000" * 4, ("1" * 8 + "0" * 8) * 2, "1" * 16 + "0" * 16]
    for rows, columns in ((blocks, 40), (halves, 30)):
        distances = hamming(rows)
        assert {16.0} == set(distances[np.triu_indices(5, 1)].tolist())
        assert 5 * columns == hidden(rows, groups_of([range(5)], 5))


# Forest


def largest_part(k):
    return max(2 * k - 1, 3 * k - 5)


@pytest.mark.parametrize(("k", "most"), [(2, 3), (3, 5), (4, 7), (5, 10), (6, 13)])
def test_a_part_has_at_most_so_many_rows(k, most):
    assert most == largest_part(k)
    chains = k - 2 if k > 3 else 1  # three chains of k - 2 rows cannot be divided
    whole = [-1, *(0 if row % chains == 0 else row for row in range(most - 1))]
    assert [most] == list(map(len, divide(whole, k)))
    assert 2 == len(divide([*whole, most - 1], k))


def graph_of(links):
    graph = nx.Graph([(row, parent) for row, parent in enumerate(links) if parent >= 0])
    graph.add_nodes_from(range(len(links)))
    return graph


def edges_of(tree, part):
    """Return the edges that connect a part, with the row that joins its pieces if it has some."""
    pieces = list(nx.connected_components(tree.subgraph(part)))
    if len(pieces) > 1:
        (joint,) = [r for r in set(tree) - part if all(set(tree[r]) & piece for piece in pieces)]
        part = part | {joint}
    assert nx.is_connected(tree.subgraph(part))
    return [frozenset(edge) for edge in tree.subgraph(part).edges]


def random_tree(rng, n):
    """Return the parents of a tree that is bushy, long or in between."""
    window = int(rng.integers(1, n + 1))
    parents = [-1, *(int(rng.integers(max(0, row - window), row)) for row in range(1, n))]
    place = rng.permutation(n).tolist()
    links = [0] * n
    for row, parent in enumerate(parents):
        links[place[row]] = -1 if parent < 0 else place[parent]
    return links


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5, 6, 7, 9])
def test_every_tree_divides_into_parts_of_the_right_sizes(k):
    rng = np.random.default_rng(k)
    for _ in range(300):
        links = random_tree(rng, int(rng.integers(k, 8 * k + 5)))
        parts = divide(links, k)
        assert list(range(len(links))) == sorted(row for part in parts for row in part)
        assert k <= min(map(len, parts))
        assert max(map(len, parts)) <= largest_part(k)
        tree = graph_of(links)
        used = [edge for part in parts for edge in edges_of(tree, set(part))]
        assert len(used) == len(set(used))


@pytest.mark.exhaustive
def test_a_tree_of_many_equal_rows_divides():
    assert {5} == set(map(len, divide([-1, *[0] * 99_999], 5)))


@pytest.mark.parametrize("seed", exhaustive_after(12, range(60)))
@pytest.mark.parametrize("k", [2, 3, 4])
def test_the_forest_keeps_its_bound(seed, k):
    rows = instances(seed, alphabet=3, k=k)
    distances = hamming(rows)
    links = links_of(rows, k)
    weight = sum(distances[row, parent] for row, parent in enumerate(links) if parent >= 0)
    lower = np.sort(distances, axis=1)[:, k - 1].sum()
    optimum = graphs.fewest_stars(rows, k)
    found = hidden(rows, Forest().assign(table_of(rows), Requirement(k), seed=0))
    assert weight <= lower <= optimum <= found <= largest_part(k) * weight
    sizes = [len(c) for c in nx.connected_components(graph_of(links))]
    assert min(sizes) >= k
    assert sum(parent < 0 for parent in links) == len(sizes)


@given(st.data())
@settings(max_examples=at_depth(60))
def test_the_nearest_rows_are_those_of_a_sort(data):
    n = data.draw(st.integers(1, 12))
    rows = data.draw(st.lists(st.tuples(*[st.integers(0, 2)] * 3), min_size=n, max_size=n))
    count = data.draw(st.integers(0, n - 1))
    weights = np.array([1.0, 0.5, 0.25])
    found = nearest_rows(np.array(rows, np.int32), weights, count=count)
    for row in range(n):
        apart = [sum(weights[np.not_equal(rows[row], rows[other])]) for other in range(n)]
        others = sorted((other for other in range(n) if other != row), key=lambda r: (apart[r], r))
        assert others[:count] == found[row].tolist()


def test_weights_say_which_columns_matter():
    rows = [(1, 1), (1, 2), (2, 1), (2, 2)]
    for rules, expected in (
        ({"c0": {"weight": 2.0}}, [[0, 1], [2, 3]]),
        ({"c1": {"weight": 2.0}}, [[0, 2], [1, 3]]),
    ):
        for algorithm in (Forest(), Matching()):
            table = table_of(rows, rules=rules)
            found = algorithm.assign(table, Requirement(2), seed=0)
            assert expected == naive.members(found)


def test_null_is_a_value_like_any_other():
    rows = [(None, 1), (1, 2), (None, 3), (1, 4)]
    for algorithm in (Forest(), Matching()):
        assert [[0, 2], [1, 3]] == groups(algorithm, rows, 2)


# Matching and two-factor


@pytest.mark.parametrize("seed", exhaustive_after(8, range(25)))
def test_the_matching_is_the_lightest(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 7))
    weights = np.triu(rng.integers(0, 6, (n, n)), 1)
    weights += weights.T
    edges = lightest_cover(weights)
    assert graphs.least_weight(weights.tolist(), {1, 2}) == sum(weights[a, b] for a, b in edges)
    degrees = np.bincount(np.array(edges).ravel(), minlength=n)
    assert {1, 2} >= set(degrees.tolist())
    assert {2, 3} >= set(map(len, components(edges, n)))


@pytest.mark.parametrize("seed", exhaustive_after(8, range(25)))
def test_the_two_factor_is_the_lightest(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 8))
    weights = np.triu(rng.integers(0, 6, (n, n)), 1)
    weights += weights.T
    cycles = lightest_cycles(weights.astype(np.float64))
    around = sum(
        weights[a, b]
        for cycle in cycles
        for a, b in zip(cycle, [*cycle[1:], cycle[0]], strict=True)
    )
    assert graphs.least_weight(weights.tolist(), {2}) == around
    assert list(range(n)) == sorted(row for cycle in cycles for row in cycle)
    assert min(map(len, cycles)) >= 3


@pytest.mark.parametrize("seed", exhaustive_after(12, range(60)))
@pytest.mark.parametrize(("alphabet", "times_2"), [(2, 3), (4, 4)])
def test_the_matching_keeps_its_bound(seed, alphabet, times_2):
    rows = instances(seed, alphabet=alphabet, k=2)
    found = hidden(rows, Matching().assign(table_of(rows), Requirement(2), seed=0))
    optimum = graphs.fewest_stars(rows, 2)
    assert optimum <= found <= times_2 * optimum / 2


@pytest.mark.parametrize("seed", exhaustive_after(12, range(60)))
@pytest.mark.parametrize(("alphabet", "times"), [(2, 2), (4, 3)])
def test_the_two_factor_keeps_its_bound(seed, alphabet, times):
    rows = instances(seed, alphabet=alphabet, k=3)
    found = hidden(rows, TwoFactor().assign(table_of(rows), Requirement(3), seed=0))
    optimum = graphs.fewest_stars(rows, 3)
    assert optimum <= found <= times * optimum


@pytest.mark.parametrize(
    ("rows", "sizes"),
    [(3, [3]), (5, [5]), (6, [3, 3]), (7, [3, 4]), (8, [4, 4]), (10, [3, 3, 4]), (11, [3, 4, 4])],
)
def test_a_cycle_is_cut_where_it_costs_least(rows, sizes):
    cycle = list(range(rows))
    turned = []

    def cost(part):
        turned.append(tuple(part))
        return 0.0 if part[0] == rows - 2 else 1.0

    parts = cut(cycle, cost)
    assert sizes == sorted(map(len, parts))
    assert cycle == sorted(row for part in parts for row in part)
    if rows > 5:
        assert any(part[0] == rows - 2 for part in parts)
        assert set(cycle) == {part[0] for part in turned}


@pytest.mark.parametrize("algorithm", [Matching(), TwoFactor()])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_rows_are_one_group(algorithm, n):
    assert [list(range(n))] == groups(algorithm, [(i,) for i in range(n)], 1)


@pytest.mark.parametrize("algorithm", [Matching, TwoFactor, Forest])
def test_a_large_table_is_refused(algorithm):
    table = encoded({"x": [1] * (algorithm.MAX_ROWS + 1)})
    with pytest.raises(Unsatisfiable, match="at most"):
        algorithm().assign(table, Requirement(2), seed=0)


def test_a_search_that_takes_too_long_is_given_up(monkeypatch):
    monkeypatch.setattr(forest, "MAX_NODES", 0)
    with pytest.raises(Unsatisfiable, match="no optimum within 0 steps"):
        groups(TwoFactor(), SIX, 3)
