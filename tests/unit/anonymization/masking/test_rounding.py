import numpy as np
import pytest

from dbanon.anonymization.interfaces import Rows
from dbanon.anonymization.masking.noise import Discretization, Rounding
from dbanon.domain.errors import PolicyError


def masked_by(method, values):
    rows = Rows(np.arange(len(values)), None, None)
    return method.mask(np.array(values, np.float64)[:, None], rows)[:, 0].tolist()


def test_numbers_are_rounded_to_the_even_multiple_of_two():
    assert [0, 0, 10, 20, 20, -10] == masked_by(Rounding(10), [2, 5, 7, 15, 25, -12])
    assert [0.5, 1.0] == masked_by(Rounding(0.25), [0.45, 0.9])


def test_bins_of_one_width_are_half_open_but_for_the_last():
    values = [0, 2.4, 2.5, 5, 9.9, 10]
    assert [1.25, 1.25, 3.75, 6.25, 8.75, 8.75] == masked_by(Discretization(4, "width"), values)


def test_bins_of_quantiles_have_as_many_rows():
    found = masked_by(Discretization(4), range(100))
    assert [25] * 4 == [found.count(value) for value in sorted({*found})]
    assert len({*masked_by(Discretization(10), [1] * 50 + [2, 3])}) <= 3


def test_one_value_stays():
    assert [4, 4] == masked_by(Discretization(3), [4, 4])
    assert [4, 4] == masked_by(Discretization(3, "width"), [4, 4])


@pytest.mark.parametrize(("method", "parameter"), [(Rounding, 0.0), (Discretization, 0)])
def test_no_base_and_no_bins_are_refused(method, parameter):
    with pytest.raises(PolicyError):
        method(parameter)
