import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbanon.anonymization.interfaces import Rows
from dbanon.anonymization.masking.noise import BottomCoding, TopCoding
from dbanon.domain.errors import PolicyError

VALUES = st.lists(st.tuples(st.integers(-5, 20), st.integers(0, 8)), min_size=1, max_size=40)


def masked_by(method, values, persons=None):
    persons = np.arange(len(values)) if persons is None else np.array(persons)
    rows = Rows(persons, None, None)
    return method.mask(np.array(values, np.float64)[:, None], rows)[:, 0].tolist()


def test_the_tail_begins_where_it_has_enough_persons():
    assert [1, 2, 7, 7, 7] == masked_by(TopCoding(3), [1, 2, 7, 8, 90])
    assert [2, 2, 7, 8, 90] == masked_by(BottomCoding(2), [1, 2, 7, 8, 90])


def test_the_tail_is_shown_as_its_mean():
    assert [1, 2, 35, 35, 35] == masked_by(TopCoding(3, shown="mean"), [1, 2, 7, 8, 90])
    assert [1.5, 1.5, 7, 8, 90] == masked_by(BottomCoding(2, shown="mean"), [1, 2, 7, 8, 90])


@pytest.mark.parametrize(("at", "expected"), [(5.0, [1, 2, 5, 5, 5]), (50.0, [1, 2, 7, 8, 8])])
def test_a_given_threshold_counts_unless_too_few_are_beyond(at, expected):
    assert expected == masked_by(TopCoding(2, at=at), [1, 2, 7, 8, 90])
    mirrored = masked_by(BottomCoding(2, at=-at), [-1, -2, -7, -8, -90])
    assert expected == [-value for value in mirrored]


@given(VALUES, st.integers(1, 6))
def test_a_tail_has_enough_persons_and_no_more_values_than_it_must(drawn, least):
    values, persons = zip(*drawn, strict=True)
    found = masked_by(TopCoding(least), values, persons)
    top = max(found)
    assert found == [min(value, top) for value in values]
    in_tail = {p for v, p in drawn if v >= top}
    assert len(in_tail) >= min(least, len(set(persons)))
    above = {p for v, p in drawn if v > top}
    assert len(above) < least


@pytest.mark.parametrize("method", [TopCoding, BottomCoding])
def test_a_tail_of_nobody_is_refused(method):
    with pytest.raises(PolicyError, match="at least 1"):
        method(0)
