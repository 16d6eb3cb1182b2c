import numpy as np
from builders import tables
from hypothesis import given
from hypothesis import strategies as st

from dbanon.domain.assignment import LossReport


@given(tables())
def test_codes_stand_side_by_side_in_the_order_of_the_columns(table):
    codes, everything = table.codes, table.all_codes
    for i, column in enumerate(table.quasi):
        assert column.codes.tolist() == codes[:, i].tolist() == everything[:, i].tolist()
    assert table.sensitive.tolist() == everything[:, len(table.quasi) :].tolist()
    for array in (codes, everything):
        assert (np.int32, True) == (array.dtype, array.flags.c_contiguous)


@given(tables(), st.data())
def test_rows_are_taken_in_the_order_given(table, data):
    rows = data.draw(st.lists(st.integers(0, table.n_rows - 1)))
    part = table.take(np.array(rows, np.int64))
    assert table.all_codes[rows].tolist() == part.all_codes.tolist()
    assert len(rows) == part.n_rows
    assert table.domains is part.domains


def test_rows_suppressed_by_number_are_added_up_over_repetitions():
    def loss(n_rows, n_suppressed, n_sampled):
        return LossReport(n_rows, n_suppressed, 3, 5, 0.5, {}, n_sampled=n_sampled)

    whole = loss(100, 20, 15)
    assert loss(100, 20, 15).among(whole).n_sampled == 15
    for last, suppressed in ((loss(80, 0, 0), 20), (loss(80, 6, 6), 26), (loss(74, 0, 0), 26)):
        found = last.among(whole)
        assert (found.n_suppressed, found.n_sampled) == (suppressed, suppressed - 5)
