from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbanon.anonymization.interfaces import Rows
from dbanon.anonymization.masking.categories import LocalSuppression, Pram, RareToOther
from dbanon.domain.errors import PolicyError

ROWS = st.lists(
    st.tuples(st.integers(-1, 3), st.integers(-1, 3), st.integers(-1, 2), st.integers(0, 9)),
    min_size=1,
    max_size=40,
)


def rows_of(n, *, persons=None, seed=0, n_values=4):
    source = np.random.default_rng(seed)
    persons = np.arange(n) if persons is None else np.array(persons)
    numbers = source.uniform(size=1000)

    def draw(count, *_):
        return source.uniform(1e-12, 1 - 1e-12, (n, count))

    return Rows(persons, draw, lambda: numbers[:n_values])


@given(ROWS, st.integers(1, 6))
def test_rare_values_are_one_that_is_not(drawn, least):
    codes = np.array([row[0] for row in drawn], np.int32)[:, None]
    persons = [row[3] for row in drawn]
    found = RareToOther(least).mask(codes, np.array([4]), rows_of(len(drawn), persons=persons))
    counts = {}
    for code, person in zip(found[:, 0].tolist(), persons, strict=True):
        counts.setdefault(code, set()).add(person)
    everybody = {p for code, p in zip(codes[:, 0], persons, strict=True) if code >= 0}
    shown = {code: len(p) for code, p in counts.items() if code >= 0}
    assert all(n >= min(least, len(everybody)) for n in shown.values())
    assert (codes == -1).tolist() == (found == -1).tolist()


def test_values_of_enough_persons_stay_unless_the_rare_need_company():
    def masked(codes):
        column = np.array(codes, np.int32)[:, None]
        return RareToOther(2).mask(column, np.array([3]), rows_of(len(codes)))[:, 0].tolist()

    assert [0, 0, 0, 3, 3] == masked([0, 0, 0, 1, 2])
    assert [0, 0, 0, 3, 3, 3] == masked([0, 0, 0, 1, 1, 2])
    assert [0, 0, 1, 1, 2, 2] == masked([0, 0, 1, 1, 2, 2])


@given(ROWS, st.integers(1, 6))
def test_values_that_no_row_has_make_no_difference_to_the_rare_ones(drawn, least):
    """Rows that are masked apart lack values of others."""
    codes = np.array([row[0] for row in drawn], np.int32)[:, None]
    rows = rows_of(len(drawn), persons=[row[3] for row in drawn])
    present = np.unique(codes[codes >= 0])
    dense = np.append(np.searchsorted(present, codes[:, 0]), -1)[:-1].astype(np.int32)
    dense = np.where(codes[:, 0] < 0, -1, dense)[:, None]
    alone = RareToOther(least).mask(dense, np.array([len(present)]), rows)
    found = RareToOther(least).mask(codes, np.array([6]), rows)
    names = np.array([*present, 6, -1])
    assert names[alone[:, 0]].tolist() == found[:, 0].tolist()


def test_values_of_five_persons_stay_beside_values_that_are_absent():
    codes = np.array([1, 1, 1, 1, 1], np.int32)[:, None]
    found = RareToOther(3).mask(codes, np.array([3]), rows_of(5))
    assert [1, 1, 1, 1, 1] == found[:, 0].tolist()


def test_pram_has_its_transition_matrix_and_counts_can_be_corrected():
    codes = np.repeat(np.arange(4, dtype=np.int32), [60_000, 30_000, 9_000, 1_000])[:, None]
    found = Pram(0.7).mask(codes, np.array([4]), rows_of(len(codes), seed=3))
    table = np.zeros((4, 4))
    np.add.at(table, (codes[:, 0], found[:, 0]), 1)
    assert table[0] / 60_000 == pytest.approx([0.7, 0.1, 0.1, 0.1], abs=0.01)
    matrix = np.full((4, 4), 0.1) + 0.6 * np.eye(4)
    corrected = np.linalg.solve(matrix.T, table.sum(axis=0))
    assert corrected == pytest.approx([60_000, 30_000, 9_000, 1_000], abs=800)


@pytest.mark.parametrize("n_values", [2, 3, 5, 64, 300])
def test_pram_gives_all_other_values_alike(n_values):
    n = 400 * (n_values - 1)
    codes = np.append(np.zeros(n, np.int32), np.arange(n_values, dtype=np.int32))[:, None]
    rows = rows_of(len(codes), n_values=n_values)
    found = Pram(1e-9).mask(codes, np.array([n_values]), rows)[:n]
    counts = np.bincount(found[:, 0], minlength=n_values)
    assert counts[0] == 0
    spread = (counts[1:] - 400) / 20
    assert np.abs(spread).max() < 5
    assert np.abs((spread**2).mean() - 1) < 4 * (2 / n_values) ** 0.5


def test_a_new_value_is_given_to_few_and_changes_nobody_else():
    """Else every new value is another draw of all rows, and most of their draws are true."""
    n, n_values = 5000, 40
    source = np.random.default_rng(12)
    drawn, values = source.uniform(size=(n, 2)), source.uniform(size=n_values + 1)
    codes = source.integers(0, n_values, (n, 1)).astype(np.int32)

    def masked(n_values, *, last):
        codes[-1] = last
        rows = Rows(np.arange(n), lambda *_: drawn, lambda: values[:n_values])
        return Pram(0.5).mask(codes, np.array([n_values]), rows)[:-1, 0]

    before, after = masked(n_values, last=0), masked(n_values + 1, last=n_values)
    assert set(after[before != after]) == {n_values}
    assert (before != after).mean() == pytest.approx(0.5 / n_values, rel=0.4)


def test_pram_gives_no_value_that_none_of_the_rows_has():
    codes = np.array([[1], [4], [1], [4]] * 50, np.int32)
    found = Pram(0.01).mask(codes, np.array([6]), rows_of(200, n_values=6))
    assert {1, 4} == set(found[:, 0].tolist())
    assert (found != codes).mean() > 0.9


def test_pram_leaves_null_and_what_has_no_other_value():
    codes = np.array([[-1], [0], [0]], np.int32)
    assert codes.tolist() == Pram(0.01).mask(codes, np.array([1]), rows_of(3)).tolist()


@given(ROWS, st.integers(1, 5), st.integers(1, 3))
def test_no_combination_that_is_left_is_rare(drawn, least, size):
    codes = np.array([row[:3] for row in drawn], np.int32)
    persons = [row[3] for row in drawn]
    rows = rows_of(len(drawn), persons=persons)
    found = LocalSuppression(least, size).mask(codes, np.array([4, 4, 3]), rows)
    assert ((found == codes) | (found == -1)).all()
    widths = range(1, size + 1)
    for chosen in (one for width in widths for one in combinations(range(3), width)):
        seen = {}
        for row, person in zip(found[:, list(chosen)].tolist(), persons, strict=True):
            if -1 not in row:
                seen.setdefault(tuple(row), set()).add(person)
        assert all(len(found_in) >= least for found_in in seen.values())


def test_the_value_in_most_rare_combinations_goes():
    codes = np.array([[0, 0, 0], [0, 0, 0], [0, 1, 0]], np.int32)
    found = LocalSuppression(2, 2).mask(codes, np.array([2, 2, 2]), rows_of(3))
    assert [[0, 0, 0], [0, 0, 0], [0, -1, 0]] == found.tolist()


def test_a_rare_value_goes_before_those_beside_it():
    codes = np.array([[0, 0], [0, 0], [1, 0], [1, -1], [2, -1]], np.int32)
    found = LocalSuppression(2, 2).mask(codes, np.array([3, 1]), rows_of(5))
    assert [[0, 0], [0, 0], [1, -1], [1, -1], [-1, -1]] == found.tolist()
    codes = np.array([[0, 0], [0, 0], [1, 0]], np.int32)
    found = LocalSuppression(2, 2).mask(codes, np.array([2, 1]), rows_of(3))
    assert [[0, 0], [0, 0], [-1, 0]] == found.tolist()


@pytest.mark.parametrize(
    "make",
    [
        lambda: RareToOther(0),
        lambda: RareToOther(5, ""),
        lambda: Pram(1.0),
        lambda: Pram(0.0),
        lambda: LocalSuppression(0),
        lambda: LocalSuppression(5, 0),
        lambda: LocalSuppression(5, 3).mask(np.zeros((2, 2)), np.array([1, 1]), None),
    ],
)
def test_parameters_out_of_bounds_are_refused(make):
    with pytest.raises(PolicyError):
        make()
