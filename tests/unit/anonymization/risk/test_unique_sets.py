import naive.risk
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dbanon.anonymization.risk.uniqueness import LARGEST, explaining, unique_sets


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


def test_few_columns_explain_what_many_make_unique():
    number = np.arange(1000)
    columns = [("tens", number // 10), ("ones", number % 10)]
    columns += [(f"c{i}", number % (2 + i % 3)) for i in range(20)]
    few, every = explaining(columns)
    assert (set(few.columns), few.share) == ({"tens", "ones"}, 1.0)
    assert (len(every.columns), every.share) == (22, 1.0)
    none, _ = explaining([("c", np.zeros(9, np.int64))])
    assert ((), 0) == (none.columns, none.rows)
