import naive
import numpy as np
import pytest
from builders import LETTERS, encoded, tables_and_requirements
from compiled import called
from hypothesis import given
from spaces import WIDE

from dbanon.anonymization.algorithms.partitioning.mondrian import Mondrian, RelaxedMondrian
from dbanon.anonymization.interfaces import Requirement
from dbanon.anonymization.loss.costs import weighted_costs
from dbanon.kernels.boxes.costs import box_costs, group_boxes
from dbanon.kernels.boxes.mondrian import SLOTS, _allocate, _measure, child_slots

STRICT, RELAXED = Mondrian(), RelaxedMondrian()


def groups_of(algorithm, table, *, k, l=1):
    return naive.members(algorithm.assign(table, Requirement(k, l), seed=0))


def work_of(table):
    """Return what a box of all rows works with, measured."""
    work = called(_allocate)(table.n_rows, *weighted_costs(table), 1)
    called(_measure)(table.codes, work)
    return work


def total_cost(table, assignment):
    lo, hi, size = group_boxes(table.codes, assignment.group, assignment.n_groups)
    return float((box_costs(*weighted_costs(table), lo, hi).sum(axis=1) * size).sum())


@given(tables_and_requirements(weights=(1.0, 0.5, 3.0)))
def test_strict_equals_its_naive_twin(drawn):
    table, k, l = drawn
    assert naive.mondrian(table, k, l) == groups_of(STRICT, table, k=k, l=l)


@given(tables_and_requirements())
def test_relaxed_equals_its_naive_twin(drawn):
    table, k, l = drawn
    assert naive.mondrian(table, k, l, relaxed=True) == groups_of(RELAXED, table, k=k, l=l)


@given(tables_and_requirements())
def test_strict_keeps_equal_rows_together(drawn):
    table, k, l = drawn
    group = STRICT.assign(table, Requirement(k, l), seed=0).group
    tuples = {}
    for row, codes in enumerate(zip(*(c.codes.tolist() for c in table.quasi), strict=True)):
        tuples.setdefault(codes, set()).add(int(group[row]))
    assert {1} == {len(groups) for groups in tuples.values()}


@given(tables_and_requirements(max_sensitive=0))
def test_relaxed_groups_that_cost_anything_are_smaller_than_2k(drawn):
    table, k, _ = drawn
    for rows in groups_of(RELAXED, table, k=k):
        assert len(rows) < 2 * k or naive.cost(table, rows) == 0


def test_null_is_cut_off_first():
    table = encoded({"age": [1, 1, 1, 1, 90, 90, None, None]})
    assert [[0, 1, 2, 3], [4, 5], [6, 7]] == groups_of(STRICT, table, k=2)
    assert [[0, 1, 2, 3, 4, 5, 6, 7]] == groups_of(STRICT, table, k=5)
    assert [[0, 1, 2, 3], [4, 5, 6, 7]] == groups_of(STRICT, table, k=3)


def test_few_nulls_do_not_block_a_column():
    table = encoded({"age": [*range(20), None]})
    groups = groups_of(STRICT, table, k=3)
    assert len(groups) >= 5
    assert max(map(len, groups)) < 6


def test_a_taxonomy_is_cut_between_children_of_the_common_ancestor():
    values = list("abcdgef") * 2
    table = encoded({"x": values}, rules={"x": {"taxonomy": "letters"}}, taxonomies=[LETTERS])
    groups = groups_of(STRICT, table, k=6)
    assert [list("abc") * 2, list("dgef") * 2] == sorted(
        [values[row] for row in rows] for rows in groups
    )


def test_equal_leaves_of_a_taxonomy_that_costs_nothing_share_a_slot():
    values = [*WIDE.leaf_labels[:2], *WIDE.leaf_labels[-2:]] * (SLOTS // 4)
    weightless = {"wide": {"taxonomy": "wide", "weight": 0.0}}
    table = encoded({"wide": values}, rules=weightless, taxonomies=[WIDE])
    slots = called(child_slots)(table.codes, 0, work_of(table))
    assert len(set(values)) == slots


@pytest.mark.parametrize("algorithm", [STRICT, RELAXED])
def test_a_weightless_taxonomy_of_many_rows_is_cut(algorithm):
    values = [*WIDE.leaf_labels, None] * 4
    columns = {"wide": values, "x": list(range(len(values)))}
    weightless = {"wide": {"taxonomy": "wide", "weight": 0.0}}
    table = encoded(columns, rules=weightless, taxonomies=[WIDE])
    assert {2, 3} >= {len(rows) for rows in groups_of(algorithm, table, k=2)}


def test_frequent_siblings_are_cut_off_first():
    values = ["m"] * 6 + ["a", "z", "b", "y"]
    groups = groups_of(STRICT, encoded({"x": values}), k=4)
    assert [["m"] * 6, ["a", "z", "b", "y"]] == [[values[r] for r in rows] for rows in groups]


def test_a_weight_decides_between_columns():
    columns = {"x": [1, 1, 2, 2], "y": [1, 2, 1, 2]}
    by_y = encoded(columns, rules={"y": {"weight": 2.0}})
    assert [[0, 1], [2, 3]] == groups_of(STRICT, encoded(columns), k=2)
    assert [[0, 2], [1, 3]] == groups_of(STRICT, by_y, k=2)


def test_a_cut_that_leaves_a_side_without_diversity_is_not_made():
    table = encoded({"x": [1, 1, 2, 2]}, {"disease": ["flu", "flu", "flu", "cold"]})
    assert [[0, 1], [2, 3]] == groups_of(STRICT, table, k=2)
    assert [[0, 1, 2, 3]] == groups_of(STRICT, table, k=2, l=2)


@pytest.mark.parametrize("l", [1, 3])
@pytest.mark.parametrize("algorithm", [STRICT, RELAXED])
def test_columns_of_many_values_are_cut_to_the_end(algorithm, l):
    """Columns finer than the grid, with outliers that leave all other rows in one step of it."""
    random = np.random.default_rng(5)
    n = 3000
    x = np.where(np.arange(n) % 999 == 0, 1e9, 1.0) * random.standard_normal(n)
    leaves = random.integers(0, 900, n)
    table = encoded(
        {"x": x.tolist(), "leaf": [f"{leaf:03}" for leaf in leaves], "y": list(range(n))},
        {"disease": [str(value) for value in random.integers(0, 6, n)]},
    )
    assignment = algorithm.assign(table, Requirement(10, l), seed=0)
    sizes = np.bincount(assignment.group)
    assert 10 <= sizes.min()
    assert sizes.max() < 80
    assert all(naive.is_diverse(table, rows, l) for rows in naive.members(assignment))


@pytest.mark.parametrize("l", [1, 2])
def test_the_one_cut_inside_a_step_of_the_grid_is_found(l):
    values = [*range(300), *[150] * 1000, *[151] * 1000]
    diseases = ["flu", "cold"] * (len(values) // 2)
    table = encoded({"x": values}, {"disease": diseases})
    groups = groups_of(STRICT, table, k=400, l=l)
    assert [1151, 1149] == [len(rows) for rows in groups]
    assert [150, 299] == [max(values[row] for row in rows) for rows in groups]


def test_null_is_cut_off_from_a_taxonomy_of_many_leaves():
    table = encoded({"x": [*[f"{leaf:03}" for leaf in range(200)], None, None, None]})
    assert [200, 201, 202] in groups_of(STRICT, table, k=3)


def test_a_box_whose_children_cannot_part_stays_whole():
    table = encoded(
        {"x": list("addee")}, rules={"x": {"taxonomy": "letters"}}, taxonomies=[LETTERS]
    )
    assert [[0, 1, 2, 3, 4]] == groups_of(STRICT, table, k=2)


def test_a_tree_of_100_000_leaves_is_cut_without_a_table_of_pairs():
    n = 100_000
    leaves = [f"{leaf:05}" for leaf in range(n)]
    table = encoded({"zip": leaves, "age": [leaf % 90 for leaf in range(n)]})
    sizes = np.bincount(STRICT.assign(table, Requirement(100, 1), seed=0).group)
    assert 100 <= sizes.min()
    assert sizes.max() < 2000


def test_siblings_in_another_order_cost_the_same():
    table = encoded(
        {"x": list("gggaabcdef") * 3, "y": list(range(30))},
        rules={"x": {"taxonomy": "letters"}},
        taxonomies=[LETTERS],
    )
    assignment = STRICT.assign(table, Requirement(3, 1), seed=0)
    expected = sum(len(rows) * naive.cost(table, rows) for rows in naive.members(assignment))
    assert expected == pytest.approx(total_cost(table, assignment))
