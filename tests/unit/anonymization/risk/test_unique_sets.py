from dataclasses import replace

import naive.risk
import numpy as np
from builders import encoded, grouped, policy_of
from hypothesis import given
from hypothesis import strategies as st

from dbanon.anonymization.released.small_counts import least_rows
from dbanon.anonymization.risk.judge import sets_of
from dbanon.anonymization.risk.unique_sets import LARGEST, unique_sets


def found_in(rows, n_columns):
    names = "abcde"[:n_columns]
    columns = [(name, np.array([row[i] for row in rows])) for i, name in enumerate(names)]
    return {one.columns: one.rows for one in unique_sets(columns)}


@given(
    st.integers(1, 5).flatmap(
        lambda d: st.lists(st.tuples(*[st.integers(0, 3)] * d), min_size=1, max_size=14)
    )
)
def test_minimal_sets_equal_their_twin(rows):
    n_columns = len(rows[0])
    expected = naive.risk.minimal_uniques(rows, n_columns, largest=LARGEST)
    names = {tuple("abcde"[p] for p in places): n for places, n in expected.items()}
    assert names == found_in(rows, n_columns)


def test_what_makes_most_rows_unique_comes_first():
    """Counted by hand: who is unique by one column is no minimal unique by more."""
    rows = [(0, 0, 0), (0, 1, 0), (1, 0, 0), (1, 1, 1), (2, 1, 0)]
    columns = [(name, np.array([row[i] for row in rows])) for i, name in enumerate("abc")]
    first, *others = unique_sets(columns)
    assert (("a", "b"), 4, 0.8) == (first.columns, first.rows, first.share)
    assert {("a",): 1, ("c",): 1, ("a", "c"): 1} == {one.columns: one.rows for one in others}


def test_sparse_codes_are_told_apart():
    rows = [(10**6 + i, i % 3 * 10**9) for i in range(9)]
    assert {("a",): 9} == found_in(rows, 2)


def test_no_rows_and_no_columns_have_no_sets():
    assert () == unique_sets([])
    assert () == unique_sets([("a", np.zeros(0, np.int64))])


def test_of_persons_of_several_rows_a_set_is_told_of_those_that_k_may_have():
    """Eight of twenty rows are alone by the town; three persons have up to four rows, and six."""
    columns = {"age": 10 * [1, 2], "town": [*"abcdefgh", *12 * "i"]}
    released = grouped(encoded(columns), 20 * [0], policy_of(columns, k=2))
    for most, expected in ((4, [8]), (6, [])):
        persons = np.maximum(np.arange(20) - most + 1, 0).astype(np.int32)
        known = replace(released, persons=persons)
        least = least_rows(known, policy_of(columns, k=2))
        assert 2 * most == least
        assert expected == [one.rows for one in sets_of(known, np.arange(20), least=least)]


def test_the_rows_that_a_set_leaves_are_as_many_as_are_told_of():
    """Of twenty rows two share an age: eighteen are alone by it, from which two would follow."""
    columns = {
        "age": [*range(18), 18, 18],
        "ward": 10 * ["x", "y"],
        "town": [*"abcdefgh", *12 * "i"],
    }
    table = encoded(columns)
    released = grouped(table, 20 * [0], policy_of(columns))
    told = {one.columns: one.rows for one in sets_of(released, np.arange(20), least=5)}
    assert {("town",): 8} == told
    every = {one.columns: one.rows for one in sets_of(released, np.arange(18), least=5)}
    assert every == {("town",): 8}  # as nobody is left by age, it would tell how many there are
