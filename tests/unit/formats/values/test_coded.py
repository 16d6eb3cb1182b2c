import numpy as np
import pyarrow as pa
import pytest

from dbanon.domain.table import ColumnInfo, ColumnKind
from dbanon.formats.column_values import numbers_of, with_numbers, with_numbers_alone

DECIMAL = ColumnInfo("x", "numeric", "numeric", ColumnKind.DECIMAL)
CENTS = ColumnInfo("x", "numeric(9,2)", "numeric", ColumnKind.DECIMAL)
MOMENT = ColumnInfo("x", "timestamp", "timestamp", ColumnKind.TIMESTAMP)
WHOLE = ColumnInfo("x", "bigint", "int8", ColumnKind.INTEGER)


def column_of(texts):
    return pa.array(texts, pa.string()).dictionary_encode()


def unchanged(texts, info):
    column = column_of(texts)
    found = numbers_of(column, info)
    return with_numbers(column, info, before=found, after=found).to_pylist()


@pytest.mark.parametrize(
    ("info", "texts", "expected"),
    [
        (DECIMAL, ["1.00", "1.0", None, "2"], ["1.0", "1.0", None, "2"]),
        (WHOLE, ["9007199254740993", "9007199254740992"], ["9007199254740992"] * 2),
    ],
)
def test_values_that_are_one_number_are_one_value(info, texts, expected):
    """Else a mean or a tail that is the number of all of them leaves each as it was."""
    assert expected == unchanged(texts, info)
    assert expected[::-1] == unchanged(texts[::-1], info)


def test_moments_that_stay_are_what_they_were():
    assert ["2024-01-01 00:00:00"] == unchanged(["2024-01-01 00:00:00"], MOMENT)


@pytest.mark.parametrize(
    ("info", "texts", "after", "expected"),
    [
        (DECIMAL, ["1.00", "1.000001", None], [1.5, 2.0, np.nan], ["1.5", "2", None]),
        (DECIMAL, ["10", "1e3"], [10.0, 1000.0], ["10", "1000"]),
        (CENTS, ["1.00", "2.00"], [1.125, 2.0], ["1.12", "2"]),
        (WHOLE, ["5", "9007199254740993"], [5.0, 2.0**53], ["5", "9007199254740992"]),
    ],
)
def test_numbers_are_written_as_if_there_were_no_others(info, texts, after, expected):
    found = with_numbers_alone(column_of(texts), info, np.array(after))
    assert expected == found.to_pylist()


@pytest.mark.parametrize(
    ("info", "exact", "other"),
    [
        (WHOLE, ["9007199254740992", "-5"], "9007199254740993"),
        (DECIMAL, ["0.1", "123456789012345", "1e20"], "12345678901234567890.5"),
        (DECIMAL, ["0.1234567890123456789", "-9007199254740991.123"], "-9007199254740995"),
    ],
)
def test_a_value_of_more_whole_digits_than_a_float_holds_is_no_number(info, exact, other):
    assert np.isfinite(numbers_of(column_of(exact), info)).all()
    assert [np.inf] == numbers_of(column_of([other]), info).tolist()


def test_numbers_that_are_none_any_more_are_null():
    column = column_of(["1", "2"])
    before = numbers_of(column, DECIMAL)
    after = np.array([np.nan, 5.0])
    assert [None, "5"] == with_numbers(column, DECIMAL, before=before, after=after).to_pylist()
