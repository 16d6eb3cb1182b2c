from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from dbanon.domain.table import ColumnInfo, ColumnKind
from dbanon.formats.column_values import written


def nearest(declared, number, like="0.5"):
    info = ColumnInfo("x", declared, "numeric", ColumnKind.DECIMAL)
    (found,) = written(np.array([number]), info, pa.array([like])).to_pylist()
    return found


@pytest.mark.parametrize(
    ("declared", "number", "expected"),
    [
        ("numeric(3,1)", 123.4, "99.9"),
        ("numeric(3,1)", -99.97, "-99.9"),
        ("numeric(3,1)", 12.3, "12.3"),
        ("numeric(5,-2)", 1e9, "9999900.0"),
        ("numeric(4)", 12345.0, "9999.0"),
        ("numeric", 12345.0, "12345.0"),
        ("public.amount", 12345.0, "12345.0"),
    ],
)
def test_numbers_are_the_nearest_that_the_type_has(declared, number, expected):
    """Noise goes beyond the greatest number of a type, which PostgreSQL refuses."""
    assert expected == nearest(declared, number)


@pytest.mark.parametrize(
    ("declared", "like", "greatest"),
    [
        ("numeric(38,2)", "0.01", "1e36"),
        ("numeric(20,10)", "0.0000000001", "1e10"),
        ("numeric(20,18)", "0.123456789012345678", "1e2"),
        ("numeric(2,4)", "0.0001", "1e-2"),
    ],
)
def test_numbers_of_many_digits_fit_as_they_are_written(declared, like, greatest):
    found = Decimal(nearest(declared, 1e60, like))
    assert Decimal(greatest) * Decimal("0.98") < found < Decimal(greatest)
