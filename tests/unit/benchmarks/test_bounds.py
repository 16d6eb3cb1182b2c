"""Bounds of the benchmarks beside all partitions of tiny tables."""

from functools import partial
from itertools import combinations

import naive
import numpy as np
import pytest
from benchmarks.bounds.boxes import Boxes, Tuples
from benchmarks.bounds.optimum import best_of_classes, best_publication
from benchmarks.bounds.pairs import mend_by_pairs
from benchmarks.bounds.prices import mend_by_boxes, raise_prices
from benchmarks.bounds.records import sample_bounds
from builders import LETTERS, encoded, policy_of, tree
from hypothesis import given
from hypothesis import strategies as st

from dbanon.anonymization.problem import Problem, solve
from dbanon.domain.outcomes import Stages

SEXES = tree("sexes", {"f": {}, "m": {}})
RULES = {"letter": {"taxonomy": "letters"}, "sex": {"taxonomy": "sexes"}}
ROWS = st.tuples(st.integers(0, 9), st.sampled_from("abcdefg"), st.sampled_from("fm"))
SECONDS = 20.0


def table_of(rows):
    age, letter, sex = (list(values) for values in zip(*rows, strict=True))
    columns = {"age": age, "letter": letter, "sex": sex}
    return encoded(columns, rules=RULES, taxonomies=[LETTERS, SEXES])


@st.composite
def tables(draw, *, sizes=(2, 3, 4)):
    k = draw(st.sampled_from(sizes))
    rows = draw(st.lists(ROWS, min_size=k, max_size=8))
    return table_of(rows), k


def cost_of(table, rows):
    """Return what each of some rows loses in all columns if they are together."""
    return sum(
        naive.cost_of_codes(column, frozenset(column.codes[list(rows)].tolist()))
        for column in table.quasi
    )


def partitions(rows, k):
    """Yield all ways to divide rows into classes of k or more."""
    if not rows:
        yield []
        return
    first, *others = rows
    for size in range(k - 1, len(others) + 1):
        for chosen in combinations(others, size):
            left = [row for row in others if row not in chosen]
            for rest in partitions(left, k):
                yield [(first, *chosen), *rest]


def least_loss(table, k):
    cost = {}

    def loss(rows):
        if rows not in cost:
            cost[rows] = len(rows) * cost_of(table, rows)
        return cost[rows]

    return min(sum(map(loss, classes)) for classes in partitions(tuple(range(table.n_rows)), k))


def published(table, k):
    policy = policy_of(["age", "letter", "sex"], k=k, rules=RULES, algorithm="auto")
    return solve(Problem(table, policy), seed=1, stages=Stages())


def exceeds(table, prices, k):
    """Whether the rows of any class pay more than it loses."""
    paid = prices[Tuples(table).of_row]
    return any(
        paid[list(rows)].sum() > size * cost_of(table, rows) + 1e-9
        for size in range(k, table.n_rows + 1)
        for rows in combinations(range(table.n_rows), size)
    )


@pytest.mark.exhaustive
@given(tables())
def test_no_bound_is_above_the_optimum_which_the_program_finds_and_auto_does_not_undercut(case):
    table, k = case
    tuples, outcome = Tuples(table), published(table, k)
    boxes, optimum = Boxes.of(tuples, k), least_loss(table, k)
    classes = tuples.classes(outcome.assignment.group)
    auto = sum(one.cost for one in classes)
    assert auto == pytest.approx(outcome.loss.ncp * tuples.cells)
    assert auto >= optimum - 1e-9
    raised = raise_prices(tuples.count, partial(mend_by_boxes, boxes), classes, gap=1e-6)
    assert tuples.count @ raised.prices <= optimum + 1e-9
    _, least = sample_bounds(table, k=k, rows=table.n_rows)
    assert least.mean() * tuples.cells <= optimum + 1e-9
    assert best_of_classes(tuples.count, raised.classes, seconds=SECONDS) >= optimum - 1e-9
    found = best_publication(boxes, raised.prices, auto, seconds=SECONDS)
    assert (optimum, optimum) == pytest.approx(tuple(found), abs=1e-6)


@pytest.mark.exhaustive
@given(tables(), st.lists(st.floats(-2.0, 4.0), min_size=8, max_size=8))
def test_no_class_exceeds_prices_that_were_mended(case, drawn):
    table, k = case
    tuples = Tuples(table)
    prices = np.array(drawn)[: len(tuples)]
    mended = mend_by_boxes(Boxes.of(tuples, k), prices)
    assert not exceeds(table, mended.prices, k)
    assert exceeds(table, prices, k) == (len(mended.classes) > 0)
    for one in mended.classes:
        assert k <= one.rows.sum() <= 2 * k - 1
        assert (one.rows <= tuples.count[one.tuples]).all()
        assert one.rows @ prices[one.tuples] > one.cost


@given(tables(sizes=[2]), st.lists(st.floats(-2.0, 4.0), min_size=8, max_size=8))
def test_no_class_exceeds_prices_that_were_mended_by_pairs(case, drawn):
    table, _ = case
    tuples = Tuples(table)
    prices = np.array(drawn)[: len(tuples)]
    mended = mend_by_pairs(tuples, prices)
    assert not exceeds(table, mended.prices, 2)
    for one in mended.classes:
        assert one.cost == pytest.approx(2 * tuples.cost(one.tuples))
        assert one.rows @ prices[one.tuples] > one.cost


@pytest.mark.exhaustive
@given(tables(sizes=[2]))
def test_pairs_bound_the_optimum_from_below(case):
    table, _ = case
    tuples = Tuples(table)
    classes = tuples.classes(published(table, 2).assignment.group)
    raised = raise_prices(tuples.count, partial(mend_by_pairs, tuples), classes, gap=1e-6)
    assert tuples.count @ raised.prices <= least_loss(table, 2) + 1e-9


def test_prices_reach_the_optimum_where_classes_are_apart():
    rows = [(0, "a", "f"), (1, "a", "f"), (1, "a", "f"), (9, "b", "m"), (9, "c", "m")]
    rows += [(9, "c", "m")]
    table, tuples = table_of(rows), Tuples(table_of(rows))
    classes = tuples.classes(np.zeros(6, np.int32))
    raised = raise_prices(
        tuples.count, partial(mend_by_boxes, Boxes.of(tuples, 3)), classes, gap=1e-6
    )
    optimum = least_loss(table, 3)
    assert optimum == pytest.approx(3 * (1 / 9 + 2 / 7))
    assert tuples.count @ raised.prices == pytest.approx(optimum)


def test_the_optimum_is_found_without_good_prices_or_a_good_publication():
    rows = [(age, letter, "f") for age in (0, 1, 8, 9) for letter in "ab"]
    table, tuples = table_of(rows), Tuples(table_of(rows))
    bad = 8 * cost_of(table, range(8))
    found = best_publication(Boxes.of(tuples, 2), np.zeros(8), bad, seconds=SECONDS)
    assert least_loss(table, 2) == pytest.approx(found.at_least) == pytest.approx(found.at_most)
    assert found.at_most < bad


def test_tables_with_null_are_refused():
    columns = {"age": [1, None], "letter": ["a", "b"], "sex": ["f", "m"]}
    with pytest.raises(ValueError, match="NULL"):
        Tuples(encoded(columns, rules=RULES, taxonomies=[LETTERS, SEXES]))
