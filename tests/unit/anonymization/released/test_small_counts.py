"""Counts of the source that may be told."""

from hypothesis import given
from hypothesis import strategies as st

from dbanon.anonymization.released.small_counts import told_rows

PUBLISHED, LEAST = st.integers(0, 10**6), st.integers(2, 50)


@given(PUBLISHED, LEAST, st.data())
def test_a_count_that_differs_by_too_few_rows_is_told_as_the_published_one(published, least, data):
    change = data.draw(st.integers(1 - least, least - 1))
    count = max(published + change, 0)  # more rows than are published, or fewer
    assert published == told_rows(count, published=published, least=least)


@given(PUBLISHED, LEAST, st.data())
def test_any_other_count_is_told_in_steps_of_as_many_rows_as_may_be_told(published, least, data):
    count = data.draw(st.integers(0, 10**6).filter(lambda n: abs(n - published) >= least))
    told = told_rows(count, published=published, least=least)
    assert told >= least
    assert told % max(least, round(count / 1000)) == 0
