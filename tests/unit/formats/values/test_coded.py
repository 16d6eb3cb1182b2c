import numpy as np
import pyarrow as pa
import pytest

from dbanon.domain.table import ColumnInfo, ColumnKind
from dbanon.formats.values.coded import numbers_of, with_numbers

DECIMAL = ColumnInfo("x", "numeric", "numeric", ColumnKind.DECIMAL)
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


def test_numbers_that_are_none_any_more_are_null():
    column = column_of(["1", "2"])
    before = numbers_of(column, DECIMAL)
    after = np.array([np.nan, 5.0])
    assert [None, "5"] == with_numbers(column, DECIMAL, before=before, after=after).to_pylist()
